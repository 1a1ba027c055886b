package relay

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// race is a request with a hedge: a second attempt at another target, begun if the first one got
// no usable response in time.
//
// Each attempt has its own call, with its own context, buffers, guardrails, reservations and log.
// The request's goroutine makes the first one; the timer's goroutine makes the second one and ends
// by closing done. What both read (caller, route, bytes of the body, tree, leaf) was set before
// the timer was started and never changes. The first usable response wins: its side records the
// win under mu and cancels the other. From then on the request's goroutine alone continues with
// the winner's call, after done if that is the second one; the loser writes nothing to the client
// and no record. writeRecord waits for done, so that no attempt outlives its request.
type race struct {
	first  *call
	hedge  *route.Hedge
	cancel context.CancelFunc // of the first attempt
	timer  *time.Timer

	admitted admission.Admitted
	in       body.Body // a copy: its bytes are not changed
	config   plan.UsedConfig
	asked    plan.RequestedLimits
	tree     *route.Tree
	ruled    accounting.PolicyState

	mu     sync.Mutex
	won    *call         // nil: undecided
	second *call         // nil: not begun
	done   chan struct{} // closed at the end of the second attempt; nil: not begun

	response targetResult // of the second attempt, after done
	took     time.Duration
	called   bool // the second attempt called its provider
}

func (c *call) join(r *race) { c.race = r }

// winner returns the call that continues the request.
func (c *call) winner() *call {
	if c.race != nil && c.race.won != nil {
		return c.race.won
	}
	return c
}

// loser returns the attempt whose response is not used, after its end; nil if there is none.
func (c *call) loser() *call {
	r := c.race
	if r == nil {
		return nil
	}
	r.end()
	switch {
	case r.second == nil:
		return nil
	case c == r.second:
		return r.first
	}
	return r.second
}

// raced calls the target of a leaf, and, if its strategy has a hedge, a second one.
func raced(c *call, leaf *route.Leaf, body []byte) targetResult {
	if r := c.race; r != nil && c != r.first && !r.hedge.Stored && storesResponse(c, body) {
		return rejection(fault.New(fault.InvalidConfig, "strategy.hedge", "The second target stores the response, which stored_responses does not allow"))
	}
	if c.race != nil || c.plan.Traversal == nil {
		return attempts(c, leaf, body)
	}
	h := hedgeOf(c, body)
	if h == nil {
		return attempts(c, leaf, body)
	}
	r := &race{
		first: c, hedge: h, admitted: c.req.Admitted(), in: c.body,
		config: c.plan.Config, asked: c.plan.Requested, tree: c.plan.Traversal.Tree(), ruled: c.bill.Copy(),
	}
	c.race = r
	c.req.Ctx, r.cancel = context.WithCancel(c.req.Ctx)
	c.req.Defer(r.cancel)
	began := c.req.Since()
	r.mu.Lock()
	r.timer = time.AfterFunc(h.After, r.run)
	r.mu.Unlock()
	a := attempts(c, leaf, body)
	if usable(&a) && r.claim(c) || !r.begun() {
		return a
	}
	return r.decide(a, c.req.Since()-began)
}

// decide returns the response of the second attempt if it is usable, else that of the first one,
// which has ended without a win.
func (r *race) decide(a targetResult, took time.Duration) targetResult {
	c, status := r.first, a.status()
	if c.req.Ctx.Err() != nil && r.decided() || usable(&a) {
		status = 0 // it was cancelled
		c.bill.Spending.MarkSuperseded()
	} else if a.rejected() {
		status = 0
	}
	<-r.done
	if r.won != r.second {
		if r.called {
			route.HedgeFailed(c.plan.Traversal, r.hedge)
		}
		return a
	}
	abandon(c, &a)
	route.HedgeWon(c.plan.Traversal, r.hedge, status, took)
	s := r.second
	s.reply.to(c.reply.w)
	s.log.Wait(r.hedge.After)
	s.plan.ContinueFrom(&c.plan)
	c.log.Close()
	return r.response
}

// run makes the second attempt. It is the timer's function.
func (r *race) run() {
	r.mu.Lock()
	if r.won != nil || r.admitted.Req.Context().Err() != nil || !r.hedge.Begin() {
		r.mu.Unlock()
		return
	}
	from := r.first.relay
	s := from.calls.Get().(*call)
	s.begin(from, new(response.Recorder), r.admitted.Req, r.admitted.Route, "", nil)
	s.join(r)
	r.second, r.done = s, make(chan struct{})
	r.mu.Unlock()
	defer close(r.done)
	defer func() {
		if v := recover(); v != nil { // no server does
			s.req.Fail("hedge", fmt.Errorf("panic: %T", v))
			r.hedge.EndUnused(0, 0)
			s.log.Close()
		}
	}()
	a := r.attempt(s)
	r.called = len(s.bill.Spending.Attempts) > 0
	if usable(&a) && r.claim(s) {
		r.response = a
		r.cancel()
		return
	}
	r.lose(s, &a)
}

// attempt runs the stages of the second attempt, up to a result that can be sent.
func (r *race) attempt(s *call) targetResult {
	s.req.Share(&r.admitted)
	s.body.Inherit(r.in.Metadata)
	began := s.req.Since()
	defer func() { r.took = s.req.Since() - began }()
	if err := s.req.Lease.Reserve(s.req.Ctx, int64(len(r.in.In))); err != nil {
		return rejection(err)
	}
	// Its own bytes: the transports of both attempts may read them after the end of the request.
	if err := s.body.ReadFrom(bytes.Clone(r.in.In)); err != nil {
		return rejection(err)
	}
	s.target.ResetDemands()
	s.bill.Second(r.ruled)
	s.plan.FollowAs(r.tree, r.config, r.asked)
	a := try(s, r.hedge.Leaf)
	if len(s.bill.Spending.Attempts) > 0 {
		s.bill.Spending.Attempts[0].Repeats(0, r.hedge.After, usage.WaitHedge)
	}
	return a
}

// lose ends the second attempt without a win.
func (r *race) lose(s *call, a *targetResult) {
	cancelled := usable(a) || s.req.Ctx.Err() != nil
	if status := a.status(); !cancelled && !a.rejected() {
		r.hedge.EndUnused(status, 0)
	} else {
		r.hedge.EndUnused(0, r.took)
	}
	if cancelled {
		s.bill.Spending.MarkSuperseded()
	}
	abandon(s, a)
	s.log.Close()
}

// claim records that an attempt has won, and cancels the other one. It returns false if the other
// one has won before.
func (r *race) claim(c *call) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.won == nil {
		r.won = c
		r.timer.Stop()
		if c == r.first && r.second != nil {
			r.second.req.Stop()
		}
	}
	return r.won == c
}

// begun reports whether the second attempt has begun. If not, it will not any more.
func (r *race) begun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.second == nil {
		r.timer.Stop()
		r.won = r.first
	}
	return r.second != nil
}

func (r *race) decided() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.won != nil
}

// end waits for the end of the second attempt.
func (r *race) end() {
	if r.begun() {
		<-r.done
	}
}

// usable reports whether a response ends a race: a successful response.
func usable(a *targetResult) bool {
	return a.fault == nil && !a.soft && (a.cached != nil || a.resp != nil && succeeded(a.status()))
}

// abandon ends a response that is not used. A complete one was charged when it was read; of a
// stream, what has arrived is charged, as after a client's disconnect.
func abandon(c *call, a *targetResult) {
	c.out.patience.Stop()
	switch {
	case a.fault != nil || a.cached != nil || a.resp == nil || a.whole:
		return
	case a.stream.Is():
		_ = a.resp.Body.Close()
		a.resp = nil
		accounting.RecordUsage(&c.bill, a.stream.Meter())
	default:
		a.drop()
		accounting.ChargeAborted(&c.bill, true)
	}
}

// hedged are the request types that may be sent twice: a model responds, and nothing else happens.
var hedged = map[string]bool{
	"chatComplete": true, "complete": true, "messages": true, "messagesCountTokens": true, "createModelResponse": true,
	"embed": true, "rerank": true, "ocr": true, "moderate": true, "imageGenerate": true,
}

// hedgeOf returns the second attempt that a request may have, whose body for the present target is
// sent; nil for none. Requests that the gateway makes itself, such as those of batches and of its
// tool loop, have none, and neither have requests with tools that a provider runs: those may do
// something twice.
func hedgeOf(c *call, sent []byte) *route.Hedge {
	h, q := route.HedgeOf(c.plan.Traversal), &c.req
	switch {
	case h == nil, h.Leaf.PromptID != "", q.Internal != nil, q.Child,
		q.Route.BodyMode != routes.Unified, q.Req.Method != http.MethodPost, !hedged[q.Route.Endpoint], q.Route.InPath, q.Route.Passed() != nil,
		c.body.ID != "", c.body.Form != nil, len(c.body.In) == 0, c.body.Prompt != nil, c.target.Choice.Prompt != nil,
		c.target.Choice.Jobs != nil, accounting.StartsBackground(&c.bill), c.body.Background(),
		!h.Stored && storesResponse(c, sent),
		reference.FindHosted(c.body.In) != nil, reference.FindHosted(sent) != nil:
		return nil
	}
	return h
}

// storesResponse reports whether the client's request, or what is sent to the provider, has the
// response stored.
func storesResponse(c *call, sent []byte) bool {
	stores := ownership.StoresChat
	if c.req.Route.Operation == provider.ResponsesCreate {
		stores = ownership.StoresItems
	}
	return stores(c.body.In) || c.target.SameDialect() && stores(sent)
}

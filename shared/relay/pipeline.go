package relay

import (
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
)

// serveFor runs the pipeline for one request. behalf is the principal of requests that the
// gateway itself makes; nil for requests of clients.
func (r *Relay) serveFor(w http.ResponseWriter, req *http.Request, rt *routes.Route, id string, behalf *admission.InternalCall) {
	c := r.calls.Get().(*call)
	if rt.BodyMode == routes.Socket {
		req = admission.Subprotocols(req)
	}
	c.begin(r, w, req, rt, id, behalf)
	err := admit(c)
	if err == nil {
		err = c.req.Route.Handle(pipeline{c})
	}
	if err != nil {
		reject(c.winner(), err)
	}
	if c.reply.carry.run != nil {
		c.req.Detach()
		c.reply.to(new(response.Recorder)) // drops the reference to the server's writer
		go r.carryOn(c, c.reply.carry)     // ends with the session
		return
	}
	if r.over(c) {
		// Recognized by net/http and by the Lambda host: the connection is aborted.
		panic(http.ErrAbortHandler)
	}
}

// over records the request and returns its frame to the pool.
func (r *Relay) over(c *call) (broken bool) {
	w := c.winner()
	finish(w)
	broken = w.reply.broken
	if other := w.loser(); other != nil {
		other.req.RunDeferred()
		if other == c {
			other = w
		}
		other.reset()
		r.calls.Put(other)
	}
	c.reset()
	r.calls.Put(c)
	return broken
}

// relay tries the targets in the order of the plan and sends the result of the last one.
func relay(c *call) error {
	var last targetResult
	outcome := route.Outcome{}
	for {
		leaf, f := c.plan.Traversal.Next(outcome)
		if f != nil {
			last.drop()
			tellBreakers(c.relay, &c.req, &c.plan)
			return f
		}
		if leaf == nil {
			break
		}
		last.drop()
		c.bill.Planned()
		last = try(c, leaf)
		outcome = outcomeOf(&c.req, &c.plan, &c.out, &c.reply, &last)
		outcome.Latency = latencyOf(&c.winner().bill, outcome)
	}
	tellBreakers(c.relay, &c.req, &c.plan)
	w := c.winner()
	err := send(w, &last)
	if f := fault.From(err); f != nil && f.Source == fault.SourceProvider {
		w.log.EndedBy(f)
	}
	return err
}

// try runs the stages of one target, up to a result that can be sent.
func try(c *call, leaf *route.Leaf) targetResult {
	fresh(c)
	body, err := prepare(c, leaf)
	if err != nil {
		return rejection(err)
	}
	hit, waited, err := c.cache.LookUp(leaf, body)
	c.log.Wait(waited)
	if err != nil {
		return rejection(err)
	}
	if hit != nil {
		if err := c.bill.CountHit(); err != nil {
			return rejection(err)
		}
		return guardOutput(c, leaf, targetResult{cached: hit})
	}
	if createsBatch(&c.req, &c.body) {
		c.bill.ReadRows = func(sum *accounting.BatchSum) error { return readRows(c, sum) }
	}
	if err := c.bill.LimitTarget(); err != nil {
		if next := c.bill.Reroute(leaf, c.req.Route.BodyMode == routes.Raw, err); next != nil {
			return try(c, next)
		}
		return rejection(err)
	}
	if c.target.Choice.Local {
		return guardOutput(c, leaf, respondHere(&c.req, &c.body))
	}
	return raced(c, leaf, body)
}

// attempts calls the target, and retries it as its config requires. Guardrails judge the last
// answer, and may cause another call.
func attempts(c *call, leaf *route.Leaf, body []byte) targetResult {
	schedule := leaf.Retry.Start()
	var waited time.Duration
	for {
		a := attempt(c, body)
		for rotates(c, &a) {
			a.drop()
			a = attempt(c, body)
		}
		if again, plain, ok := askAgain(c, &a); ok {
			a, body = again, plain
		}
		called(&c.bill, &schedule, waited)
		if c.reply.headSent {
			return a // the stream has started and cannot be withdrawn
		}
		tried := schedule.Count()
		wait, again := schedule.Next(a.status(), a.header(), a.connectFailed(), c.relay.Now())
		c.log.Retried(schedule.Count())
		if !again || c.out.bodySpent || c.req.Ctx.Err() != nil {
			if a = guardOutput(c, leaf, a); repeats(c, &schedule, &a) {
				waited = 0
				continue
			}
			return a
		}
		if c.bill.ExtendReservation() != nil {
			c.log.Retried(tried)
			return guardOutput(c, leaf, a) // the existing response is used: after its charge the budget allows no other
		}
		a.drop()
		if err := pause(c.relay, &c.req, &c.log, wait); err != nil {
			return rejection(err)
		}
		waited = wait
	}
}

// admit authenticates the caller and reads headers and body. The further steps before a target
// is called depend on the handler of the route.
func admit(c *call) error {
	if err := c.req.Admit(); err != nil {
		return err
	}
	if err := c.body.Read(); err != nil {
		return err
	}
	return nil
}

// planned finds the targets of the request and counts it against rates. counted is false for a
// connection with messages that are counted instead; a request that settles earlier work was
// counted with that.
func planned(c *call, counted bool) error {
	if err := c.plan.Resolve(c.relay.sources); err != nil {
		return err
	}
	c.target.ResetDemands()
	if !counted || c.req.Settles() {
		return c.bill.ReadPolicies()
	}
	return c.bill.CountRequest()
}

// fresh clears the state of the previous target.
func fresh(c *call) {
	c.target.Loss.Reset()
	c.guards.ResetTarget()
	c.log.Retried(0)
	c.bill.NextTarget()
	c.cache.ResetTarget()
}

// prepare resolves the target of a leaf and builds the body for it.
func prepare(c *call, leaf *route.Leaf) ([]byte, error) {
	c.guards.Judged.Begin(leaf)
	if err := target.Choose(&c.target, leaf); err != nil {
		return nil, err
	}
	if err := guardInput(c.relay, &c.target, &c.guards, leaf); err != nil {
		return nil, err
	}
	return upstreamBody(c.relay, &c.target, &c.out, &c.log)
}

func rejection(err error) targetResult { return targetResult{fault: fault.From(err)} }

// exception reports whether the gateway itself failed: no other target is tried.
func (a *targetResult) exception() bool {
	return a.fault != nil && a.fault.Code == fault.InternalError
}

// connectFailed reports whether there was no response at all.
func (a *targetResult) connectFailed() bool {
	return a.fault != nil && a.fault.Code == fault.ProviderUnreachable
}

func (a *targetResult) header() http.Header {
	if a.resp == nil {
		return a.failed
	}
	return a.resp.Header
}

// pause waits before a retry. It returns an error if the client disconnects.
func pause(r *Relay, q *admission.Request, log *record.Log, d time.Duration) error {
	defer func(from time.Time) { log.Wait(r.Now().Sub(from)) }(r.Now())
	ctx := q.Req.Context()
	if ctx.Err() != nil || d > 0 && !r.Sleep(ctx.Done(), d) {
		return fault.New(fault.RequestTimeout, "", "The client disconnected before a retry")
	}
	return nil
}

// sleep waits for d in real time.
func sleep(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}

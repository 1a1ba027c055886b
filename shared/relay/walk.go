package relay

import (
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/inputbound"
	"gateway/shared/relay/recorder"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
)

// serveFor takes a request through the walk that is made for somebody; behalf is
// nil for those of clients.
//
// The walk: admitted request, body, plan; for each target of the plan guardrails
// of the input, cache, reservation, attempts, guardrails of the output; the reply;
// settled and recorded once. What each stage learned is a type in stages.go.
func (r *Relay) serveFor(w http.ResponseWriter, req *http.Request, rt *routes.Route, id string, behalf *admitted.Behalf) {
	c := r.calls.Get().(*call)
	if rt.Shape == routes.Socket {
		req = asked.Subprotocols(req)
	}
	c.begin(r, w, req, rt)
	c.PathID, c.Behalf = id, behalf
	if behalf != nil {
		behalf.Request = c.ULID
	}
	err := c.admit()
	if err == nil {
		err = c.serve()
	}
	if err != nil {
		c.refuse(err)
	}
	if c.carry.run != nil {
		c.Outlives()
		c.w = new(recorder.Recorder) // nothing keeps what the server writes by
		go r.carryOn(c, c.carry)     // ends with the session
		return
	}
	if r.over(c) {
		// Known to net/http and to the Lambda host: the connection is cut.
		panic(http.ErrAbortHandler)
	}
}

// over ends a walk and gives its memory back.
func (r *Relay) over(c *call) (broken bool) {
	c.finish()
	broken = c.broken
	c.reset()
	r.calls.Put(c)
	return broken
}

// serve answers an admitted request by the stages of its kind.
func (c *call) serve() error {
	switch {
	case c.Route.Protocol != nil:
		return c.governed()
	case c.Mine:
		return c.manage()
	case c.runsTools:
		return c.runTools()
	case c.Route.Turns != "":
		return c.Sessions.converse(c)
	case c.Route.Opens():
		return c.Sessions.await(c)
	case c.Route.Shape == routes.Socket:
		return c.openSession()
	case c.Route.Shape == routes.Listing:
		return c.list()
	case c.Route.Mints != 0:
		return c.mint()
	case c.Route.DryRun != nil:
		return c.rehearse()
	case c.Route.Prompt != nil:
		return c.rendered()
	case c.Route.Composed != nil:
		return c.composed()
	}
	return c.relay()
}

// relay tries targets in the order of the plan and sends the answer of the last one
// that was tried.
func (c *call) relay() error {
	var last answer
	outcome := route.Outcome{}
	for {
		leaf, f := c.Walker.Next(outcome)
		if f != nil {
			last.drop()
			c.tellBreakers()
			return f
		}
		if leaf == nil {
			break
		}
		last.drop()
		c.Planned()
		last = c.try(leaf)
		outcome = c.outcome(&last)
	}
	c.tellBreakers()
	if last.resp == nil && last.fault == nil && last.cached == nil {
		return fault.New(fault.InvalidConfig, "x-gateway-config", "No provider selected, please check the weights")
	}
	err := c.send(&last)
	if f := fault.From(err); f != nil && f.Source == fault.SourceProvider {
		c.endFault = f
	}
	return err
}

// try takes one target through its stages, up to an answer that can be sent.
func (c *call) try(leaf *route.Leaf) answer {
	c.fresh()
	body, err := c.prepare(leaf)
	if err != nil {
		return refusal(err)
	}
	hit, waited, err := c.reuse.LookUp(leaf, body)
	c.waited += waited
	if err != nil {
		return refusal(err)
	}
	if hit != nil {
		if err := c.CountHit(); err != nil {
			return refusal(err)
		}
		return c.guardOutput(leaf, answer{cached: hit})
	}
	if createsBatch(&c.sender) {
		c.Bill.ReadRows = func(sum *inputbound.Sum) error { return readRows(&c.sender, sum) }
	}
	if err := c.LimitTarget(); err != nil {
		if next := c.Reroute(leaf, c.Route.Shape == routes.Raw, err); next != nil {
			return c.try(next)
		}
		return refusal(err)
	}
	if c.To.Local {
		return c.guardOutput(leaf, c.answerHere())
	}
	return c.attempts(leaf, body)
}

// attempts calls the target, and calls it again as its config says. Guardrails judge the
// last answer, and may have the target called once more.
func (x *exchanges) attempts(leaf *route.Leaf, body []byte) answer {
	schedule := leaf.Retry.Start()
	var waited time.Duration
	for {
		a := x.attempt(body)
		if again, plain, ok := x.askAgain(&a); ok {
			a, body = again, plain
		}
		x.called(&schedule, waited)
		if x.headSent {
			return a // the stream has begun; nothing can be taken back
		}
		tried := schedule.Count()
		wait, again := schedule.Next(a.status(), a.header(), a.connectFailed(), x.Now())
		x.retries = schedule.Count()
		if !again || x.bodySpent {
			if a = x.guardOutput(leaf, a); x.repeats(&schedule, &a) {
				waited = 0
				continue
			}
			return a
		}
		if x.CoverAgain() != nil {
			x.retries = tried
			return x.guardOutput(leaf, a) // the answer that came is kept: after its charge the budget has no room for another
		}
		a.drop()
		if err := x.sleep(wait); err != nil {
			return refusal(err)
		}
		waited = wait
	}
}

package relay

import (
	"context"
	"net/http"
	"time"

	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// tellBreakers shares the state of targets with other processes.
func tellBreakers(r *Relay, q *admission.Request, pl *plan.Plan) {
	s := pl.BreakersOf
	switch {
	case s == nil || !s.Untold():
	case r.RecordAfterBody:
		q.After(func() { s.Publish(nil) })
	default:
		s.PublishSoon()
	}
}

// outcomeOf judges the response of a target for routing.
func outcomeOf(q *admission.Request, pl *plan.Plan, up *outbound, rw *reply, a *answer) route.Outcome {
	o := route.Outcome{Status: a.status(), Exception: a.exception(), Refused: a.cached != nil || a.refused()}
	// Once a head was sent, or the client or its body is gone, no other target can be tried.
	o.Final = rw.headSent || up.bodySpent || q.Req.Context().Err() != nil
	o.Coming = a.fault == nil && a.cached == nil && a.resp != nil && o.Status < 300
	if a.fault != nil && o.Refused {
		pl.Walker.Refused(a.fault.Code, o.Status)
	}
	return o
}

// latencyOf is the latency of the target that was tried last; 0 if it was not called.
func latencyOf(bill *accounting.Bill, o route.Outcome) time.Duration {
	if at := bill.Purse.Last(); at != nil && !o.Refused {
		return at.Latency
	}
	return 0
}

// settleBreakers reports to breakers how a response ended that had started successfully. A
// response that the client has abandoned does not count against its provider.
func settleBreakers(c *call) {
	if c.plan.Walker == nil {
		return
	}
	status := http.StatusOK
	switch {
	case c.reply.gone:
	case c.log.Outcome().ProviderFault != nil:
		status = c.log.Outcome().ProviderFault.Status()
	case c.reply.broken:
		status = http.StatusBadGateway
	}
	c.plan.Walker.Settle(status)
	tellBreakers(c.relay, &c.req, &c.plan)
}

// called records in the last attempt which retry it was and how long it waited.
func called(bill *accounting.Bill, s *route.Schedule, waited time.Duration) {
	at := bill.Purse.Last()
	if at == nil || s.Used() == 0 {
		return
	}
	reason := usage.WaitBackoff
	if s.Named() {
		reason = usage.WaitNamed
	}
	at.Repeats(s.Used(), waited, reason)
}

// failAside reports a failure that no request sees.
func (r *Relay) failAside(where string, err error) {
	r.fault(where, "", err)
}

// Close ends realtime sessions (see Drain) and waits until the breaker state of this process is
// shared, and for asynchronous guardrails.
func (r *Relay) Close() {
	r.sessions.End()
	r.breakers.Close()
	r.guards.Close()
}

// beginPatience starts the timeouts of an attempt.
func beginPatience(tg *target.Target, up *outbound, ctx context.Context) context.Context {
	var firstToken, idle time.Duration
	if tg.Stream && tg.Req.Route.Client != nil && tg.Req.Route.Shape == routes.Unified {
		firstToken, idle = tg.Plan.Requested.Over(tg.To.Leaf.FirstToken, tg.To.Leaf.Idle)
	}
	ctx, release := up.patience.Begin(ctx, tg.To.Timeout, firstToken, idle)
	if release != nil {
		tg.Req.After(release)
	}
	return ctx
}

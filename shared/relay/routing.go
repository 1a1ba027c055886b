package relay

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// tellBreakers shares the state of targets with other processes.
func tellBreakers(r *Relay, q *admission.Request, pl *plan.Plan) {
	s := pl.BreakersOf
	switch {
	case s == nil || !s.HasPending():
	case r.RecordAfterBody:
		q.Defer(func() { s.Publish(nil) })
	default:
		s.PublishSoon()
	}
}

// outcomeOf judges the response of a target for routing.
func outcomeOf(q *admission.Request, pl *plan.Plan, up *outbound, rw *reply, a *targetResult) route.Outcome {
	o := route.Outcome{Status: a.status(), Exception: a.exception(), Rejected: a.cached != nil || a.rejected()}
	// Once a head was sent, or the client or its body is gone, no other target can be tried.
	o.Final = rw.headSent || up.bodySpent || q.Req.Context().Err() != nil
	o.Pending = a.fault == nil && a.cached == nil && a.resp != nil && o.Status < 300
	if a.fault != nil && o.Rejected {
		pl.Traversal.Reject(a.fault.Code, o.Status)
	}
	return o
}

// latencyOf is the latency of the target that was tried last; 0 if it was not called.
func latencyOf(bill *accounting.Bill, o route.Outcome) time.Duration {
	if at := bill.Spending.Last(); at != nil && !o.Rejected {
		return at.Latency
	}
	return 0
}

// settleBreakers reports to breakers how a response ended that had started successfully. A
// response that the client has abandoned does not count against its provider.
func settleBreakers(c *call) {
	if c.plan.Traversal == nil {
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
	c.plan.Traversal.Settle(status)
	tellBreakers(c.relay, &c.req, &c.plan)
}

// called records in the last attempt which retry it was and how long it waited.
func called(bill *accounting.Bill, s *route.Schedule, waited time.Duration) {
	at := bill.Spending.Last()
	if at == nil || s.Retries() == 0 {
		return
	}
	reason := usage.WaitBackoff
	if s.Named() {
		reason = usage.WaitNamed
	}
	at.Repeats(s.Retries(), waited, reason)
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
	if tg.Stream && tg.Req.Route.Client != nil && tg.Req.Route.BodyMode == routes.Unified {
		firstToken, idle = tg.Plan.Requested.Effective(tg.Choice.Leaf.FirstToken, tg.Choice.Leaf.Idle)
	}
	ctx, release := up.patience.StartAttempt(ctx, tg.Choice.Timeout, firstToken, idle)
	if release != nil {
		tg.Req.Defer(release)
	}
	return ctx
}

// rotates reports whether the target is called again because another of its credentials can
// replace the one that the provider rejected or limited. Each credential is tried at most once
// before the target counts as failed.
func rotates(c *call, a *targetResult) bool {
	switch {
	case !target.Rotates(&c.target, a.status()):
		return false // before the budget is asked to cover another call
	case c.reply.headSent || c.out.bodySpent || a.connectFailed():
		return false // the request cannot be repeated, or the credential was not judged
	case c.req.Req.Context().Err() != nil || c.req.Ctx.Err() != nil || c.bill.ExtendReservation() != nil:
		return false
	}
	return target.NextCredential(&c.target, a.status())
}

// askAgain retries at a host that rejected added parameters without them, once for each. ok is
// false if there were none to omit.
func askAgain(c *call, a *targetResult) (again targetResult, body []byte, ok bool) {
	if a.fault == nil {
		return *a, nil, false
	}
	again = *a
	left := c.target.RejectedFields(nil)
	for again.fault != nil && !c.reply.headSent && !c.out.bodySpent && !again.rejected() {
		refused := c.target.RejectedFields(again.fault)
		if refused == 0 {
			break
		}
		before := c.target.Choice
		c.target.OmitAdded(refused)
		plain, err := upstreamBody(c.relay, &c.target, &c.out, &c.log)
		if err != nil { // the target requires it: its rejection remains
			c.target.Choice = before
			if restored, err := upstreamBody(c.relay, &c.target, &c.out, &c.log); err == nil { // the attempt may have overwritten it
				body, ok = restored, true
			}
			break
		}
		again.drop()
		again, body, ok = attempt(c, plain), plain, true
		left |= refused
	}
	if ok && (again.fault == nil || c.reply.headSent) {
		c.target.CacheRejected(left)
	}
	return again, body, ok
}

// withAttempts adds the earlier attempts to an error's body, for clients that accept extensions
// of the schema. An error of a single attempt is unchanged.
func withAttempts(tg *target.Target, bill *accounting.Bill, body []byte) []byte {
	if tg.Plan.Traversal == nil || tg.StrictOpenAI() || len(body) == 0 || body[0] != '{' {
		return body
	}
	refused, skips := 0, tg.Plan.Traversal.Skips(nil)
	for i := range skips {
		if skips[i].Reason == usage.SkipRejected {
			refused++
		}
	}
	if len(bill.Spending.Attempts)+refused < 2 {
		return body
	}
	return wire.Splice(nil, body, wire.InsertAt(0, "attempts", appendAttempts(bill, nil, skips)))
}

// appendAttempts writes the calls, then the targets that the gateway rejected.
func appendAttempts(bill *accounting.Bill, dst []byte, skips []usage.Skip) []byte {
	dst = append(dst, '[')
	for i := range bill.Spending.Attempts {
		a := &bill.Spending.Attempts[i]
		dst = appendAttempt(dst, a.OptionIndex, a.Provider, a.Model, a.Status, a.ErrorCode)
	}
	for i := range skips {
		if s := &skips[i]; s.Reason == usage.SkipRejected {
			dst = appendAttempt(dst, s.Path, "", "", s.Status, s.Code)
		}
	}
	return append(dst, ']')
}

func appendAttempt(dst []byte, option, provider, model string, status int, code string) []byte {
	if dst[len(dst)-1] == '}' {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"option_index":`...)
	dst = wire.AppendJSONString(dst, option)
	for _, f := range [...]struct{ name, value string }{{"provider", provider}, {"model", model}, {"code", code}} {
		if f.value != "" {
			dst = append(append(append(dst, `,"`...), f.name...), `":`...)
			dst = wire.AppendJSONString(dst, f.value)
		}
	}
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	return append(dst, '}')
}

// rejected reports whether the gateway itself rejected the target. A timeout is the target's.
func (a *targetResult) rejected() bool {
	return a.fault != nil && a.fault.Source != fault.SourceProvider && a.fault.Code != fault.RequestTimeout
}

package relay

import (
	"context"
	"net/http"
	"time"

	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// tellBreakers tells other processes what the walk learned of targets.
func (o *outbound) tellBreakers() {
	s := o.BreakersOf
	switch {
	case s == nil || !s.Untold():
	case o.RecordAfterBody:
		o.After(func() { s.Tell(nil) })
	default:
		s.TellSoon()
	}
}

// outcome judges the answer of a target for the walk.
func (x *exchanges) outcome(a *answer) route.Outcome {
	o := route.Outcome{Status: a.status(), Exception: a.exception(), Refused: a.cached != nil || a.refused()}
	// Once a head has gone out, or the client or its body is gone, no other target can be
	// tried.
	o.Final = x.headSent || x.bodySpent || x.Req.Context().Err() != nil
	o.Coming = a.fault == nil && a.cached == nil && a.resp != nil && o.Status < 300
	if a.fault != nil && o.Refused {
		x.Walker.Refused(a.fault.Code, o.Status)
	}
	return o
}

// settleBreakers tells breakers how an answer ended that had begun well. An answer that the
// client no longer wants says nothing against its provider.
func (l *logbook) settleBreakers() {
	if l.Walker == nil {
		return
	}
	status := http.StatusOK
	switch {
	case l.gone:
	case l.endFault != nil:
		status = l.endFault.Status()
	case l.broken:
		status = http.StatusBadGateway
	}
	l.Walker.Settle(status)
	l.tellBreakers()
}

// called notes in the last attempt which retry it was and what it waited for.
func (bk *books) called(s *route.Schedule, waited time.Duration) {
	at := bk.Purse.Last()
	if at == nil || s.Used() == 0 {
		return
	}
	at.Retry, at.Wait, at.WaitReason = s.Used(), waited, usage.WaitBackoff
	if s.Named() {
		at.WaitReason = usage.WaitNamed
	}
}

// failAside reports a failure that no request sees.
func (r *Relay) failAside(where string, err error) {
	r.fault(where, "", err)
}

// Close ends realtime sessions (see Drain) and waits until what this process knows of
// breakers is told to others, and for guardrails that run beside requests.
func (r *Relay) Close() {
	r.sessions.End()
	r.breakers.Close()
	r.guards.Close()
}

// beginPatience bounds the times of an attempt.
func (o *outbound) beginPatience(ctx context.Context) context.Context {
	var firstToken, idle time.Duration
	if o.Stream && o.Route.Client != nil && o.Route.Shape == routes.Unified {
		firstToken, idle = o.Asked.Over(o.To.Leaf.FirstToken, o.To.Leaf.Idle)
	}
	ctx, release := o.patience.Begin(ctx, o.To.Timeout, firstToken, idle)
	if release != nil {
		o.After(release)
	}
	return ctx
}

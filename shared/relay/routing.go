package relay

import (
	"context"
	"net/http"
	"time"

	"gateway/shared/route"
	"gateway/shared/usage"
)

// decided puts what the walk was decided on into the record, and tells other
// processes what it has learned of targets so far.
func (c *call) decided() {
	c.rec.Draws = c.walker.Draws(c.rec.Draws[:0])
	c.rec.Breakers = c.walker.Breakers(c.rec.Breakers[:0])
	c.rec.Matches = c.walker.Matches(c.rec.Matches[:0])
	c.rec.Skips = c.walker.Skips(c.rec.Skips[:0])
	c.tellBreakers()
}

// tellBreakers tells other processes what the walk learned of targets.
func (c *call) tellBreakers() {
	s := c.breakersOf
	switch {
	case s == nil || !s.Untold():
	case c.RecordAfterBody:
		c.afterwards = append(c.afterwards, func() { s.Tell(nil) })
	default:
		s.TellSoon()
	}
}

// outcome judges the answer of a target for the walk.
func (c *call) outcome(a *answer) route.Outcome {
	o := route.Outcome{Status: a.status(), Exception: a.exception(), Refused: a.cached != nil || a.refused()}
	// Once a head has gone out, or the client's body or the client itself has
	// gone, there is nothing to be sent to another target.
	o.Final = c.headSent || c.bodySpent || c.req.Context().Err() != nil
	o.Coming = a.fault == nil && a.cached == nil && a.resp != nil && o.Status < 300
	if a.fault != nil && o.Refused {
		c.walker.Refused(a.fault.Code, o.Status)
	}
	return o
}

// settleBreakers tells breakers how the answer ended that had begun well. One that
// nobody wants any more says nothing against its provider.
func (c *call) settleBreakers() {
	if c.walker == nil {
		return
	}
	status := http.StatusOK
	switch {
	case c.gone:
	case c.endFault != nil:
		status = c.endFault.Status()
	case c.broken:
		status = http.StatusBadGateway
	}
	c.walker.Settle(status)
	c.tellBreakers()
}

// called notes in the last attempt which retry it was and what it waited for.
func (c *call) called(s *route.Schedule, waited time.Duration) {
	n := len(c.rec.Attempts)
	if n == 0 || s.Used() == 0 {
		return
	}
	at := &c.rec.Attempts[n-1]
	at.Retry, at.Wait, at.WaitReason = s.Used(), waited, usage.WaitBackoff
	if s.Named() {
		at.WaitReason = usage.WaitNamed
	}
}

// background reports a failure that no request sees.
func (r *Relay) background(where string, err error) {
	if r.Faults != nil {
		r.Faults(where, err)
		return
	}
	logFault(where, "", err)
}

// Close waits until what this process knows of breakers is told to others.
func (r *Relay) Close() { r.breakers.Close() }

// beginPatience bounds the times of an attempt.
func (c *call) beginPatience(ctx context.Context) context.Context {
	var firstToken, idle time.Duration
	if c.stream && c.rt.Client != nil && c.rt.Shape == Unified {
		firstToken, idle = c.asked.Over(c.to.leaf.FirstToken, c.to.leaf.Idle)
	}
	ctx, release := c.patience.Begin(ctx, c.to.timeout, firstToken, idle)
	if release != nil {
		c.afterwards = append(c.afterwards, release)
	}
	return ctx
}

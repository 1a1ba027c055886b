package relay

import (
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/record"
	"gateway/shared/relay/target"
	"gateway/shared/route"
)

// fresh clears the state of the previous target.
func fresh(c *call) {
	c.target.Loss.Reset()
	c.guards.Fresh()
	c.log.Retried(0)
	c.bill.NextTarget()
	c.cache.Fresh()
}

// prepare resolves the target of a leaf and builds the body for it.
func prepare(c *call, leaf *route.Leaf) ([]byte, error) {
	if err := target.Choose(&c.target, leaf); err != nil {
		return nil, err
	}
	if err := guardInput(c.relay, &c.target, &c.guards, leaf); err != nil {
		return nil, err
	}
	return upstreamBody(c.relay, &c.target, &c.out, &c.log)
}

func refusal(err error) answer { return answer{fault: fault.From(err)} }

// exception reports whether the gateway itself failed: no other target is tried.
func (a *answer) exception() bool {
	return a.fault != nil && a.fault.Code == fault.InternalError
}

// connectFailed reports whether there was no response at all.
func (a *answer) connectFailed() bool {
	return a.fault != nil && a.fault.Code == fault.ProviderUnreachable
}

func (a *answer) header() http.Header {
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

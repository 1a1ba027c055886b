package relay

import (
	"net/http"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/route"
)

// fresh forgets what the target before left.
func (ca *answerCache) fresh() {
	ca.Loss.Reset()
	ca.guards.Fresh()
	ca.retries, ca.Heard.Model, ca.Heard.Served = 0, "", chat.Served{}
	ca.reuse.Fresh()
}

// prepare chooses the target of a leaf and makes the body for it.
func (rq *requests) prepare(leaf *route.Leaf) ([]byte, error) {
	if err := rq.Choose(leaf); err != nil {
		return nil, err
	}
	if err := rq.guardInput(leaf); err != nil {
		return nil, err
	}
	return rq.upstreamBody()
}

func refusal(err error) answer { return answer{fault: fault.From(err)} }

// exception tells whether the gateway itself failed: no other target is tried.
func (a *answer) exception() bool {
	return a.fault != nil && a.fault.Code == fault.InternalError
}

// connectFailed tells whether no answer came at all.
func (a *answer) connectFailed() bool {
	return a.fault != nil && a.fault.Code == fault.ProviderUnreachable
}

func (a *answer) header() http.Header {
	if a.resp == nil {
		return a.failed
	}
	return a.resp.Header
}

// sleep waits before a retry, unless the client goes.
func (o *outbound) sleep(d time.Duration) error {
	defer func(from time.Time) { o.waited += o.Now().Sub(from) }(o.Now())
	ctx := o.Req.Context()
	if ctx.Err() != nil || d > 0 && !o.Sleep(ctx.Done(), d) {
		return fault.New(fault.RequestTimeout, "", "The client went away before a retry")
	}
	return nil
}

// sleep waits by the machine's clock.
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

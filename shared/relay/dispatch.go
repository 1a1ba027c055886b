package relay

import (
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/route"
)

// relay tries targets in the order of the route and sends the answer of the last
// one that was tried.
func (c *call) relay() error {
	var last answer
	outcome := route.Outcome{}
	for {
		leaf, f := c.walker.Next(outcome)
		if f != nil {
			last.drop()
			c.decided()
			return f
		}
		if leaf == nil {
			break
		}
		last.drop()
		last = c.try(leaf)
		outcome = c.outcome(&last)
	}
	c.decided()
	if last.resp == nil && last.fault == nil && last.cached == nil {
		return fault.New(fault.InvalidConfig, "x-gateway-config", "No provider selected, please check the weights")
	}
	err := c.send(&last)
	if f := fault.From(err); f != nil && f.Source == fault.SourceProvider {
		c.endFault = f
	}
	return err
}

// try calls one target, with its retries.
func (c *call) try(leaf *route.Leaf) answer {
	c.loss.Reset()
	c.rec.RetryCount = 0
	c.caching, c.rec.CacheStatus = nil, cacheDisabled
	if err := c.choose(leaf); err != nil {
		return refusal(err)
	}
	if err := c.effective(); err != nil {
		return refusal(err)
	}
	body, err := c.upstreamBody()
	if err != nil {
		return refusal(err)
	}
	if hit, err := c.lookUp(leaf, body); err != nil {
		return refusal(err)
	} else if hit != nil {
		return answer{cached: hit}
	}
	if err := c.limitTarget(); err != nil {
		return refusal(err)
	}
	if c.to.local {
		return c.answerHere()
	}
	schedule := leaf.Retry.Start()
	var waited time.Duration
	for {
		a := c.attempt(body)
		if again, plain, ok := c.askAgain(&a); ok {
			a, body = again, plain
		}
		c.called(&schedule, waited)
		if c.headSent {
			return a // the stream has begun; nothing can be taken back
		}
		wait, again := schedule.Next(a.status(), a.header(), a.connectFailed(), c.Now())
		c.rec.RetryCount = schedule.Count()
		if !again || c.bodySpent {
			return a
		}
		a.drop()
		if err := c.sleep(wait); err != nil {
			return refusal(err)
		}
		waited = wait
	}
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
	ctx := o.req.Context()
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

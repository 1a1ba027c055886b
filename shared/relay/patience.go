package relay

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/route"
)

// Headers that bound the times of streams, in milliseconds. They beat every
// level of a config; 0 switches a config's bound off.
const (
	headerFirstToken = "X-Gateway-First-Token-Timeout"
	headerStreamIdle = "X-Gateway-Stream-Idle-Timeout"
)

// patienceAsked are the bounds that a request's headers ask for.
type patienceAsked struct {
	firstToken, idle       time.Duration
	hasFirstToken, hasIdle bool
}

// readPatience reads the headers.
func (a *patienceAsked) readPatience(h http.Header) (err error) {
	if a.firstToken, a.hasFirstToken, err = milliseconds(h, headerFirstToken); err != nil {
		return err
	}
	a.idle, a.hasIdle, err = milliseconds(h, headerStreamIdle)
	return err
}

func milliseconds(h http.Header, name string) (time.Duration, bool, error) {
	v := one(h, name)
	if v == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	most := route.MaxStreamTimeout.Milliseconds()
	if err != nil || n < 0 || n > most {
		return 0, false, fault.Invalid(strings.ToLower(name), "must be a whole number of milliseconds from 0 to %d", most)
	}
	return time.Duration(n) * time.Millisecond, true, nil
}

// Which time of an attempt ran out.
const (
	lateHead int32 = 1 + iota
	lateFirstToken
	lateIdle
)

// patience ends an attempt whose time is over. It makes a timer only where a
// time is bounded. The zero value has endless patience.
type patience struct {
	head, firstToken, idle time.Duration // 0: not bounded
	started                time.Time
	watch                  *watch // nil: nothing is bounded
	begun                  bool   // the first content came
}

// watch is the part of patience that its timer sees. It outlives the call.
type watch struct {
	cancel context.CancelFunc
	timer  *time.Timer
	phase  atomic.Int32 // what the timer waits for
	late   atomic.Int32 // what ran out; 0: nothing
}

func (w *watch) expire() {
	w.late.CompareAndSwap(0, w.phase.Load())
	w.cancel()
}

// begin starts the patience with one attempt.
func (c *call) beginPatience(ctx context.Context) context.Context {
	c.routing.patience.stop()
	p := &c.routing.patience
	*p = patience{head: c.to.timeout}
	if c.stream && c.rt.Client != nil && c.rt.Shape == Unified {
		p.firstToken, p.idle = c.to.leaf.FirstToken, c.to.leaf.Idle
		if asked := &c.routing.asked; asked.hasFirstToken {
			p.firstToken = asked.firstToken
		}
		if asked := &c.routing.asked; asked.hasIdle {
			p.idle = asked.idle
		}
	}
	if p.head == 0 && p.firstToken == 0 && p.idle == 0 {
		return ctx
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel}
	p.started, p.watch = time.Now(), w
	c.afterwards = append(c.afterwards, func() {
		w.timer.Stop()
		cancel()
	})
	w.timer = time.AfterFunc(time.Hour, w.expire)
	w.timer.Stop()
	switch {
	case p.firstToken > 0 && (p.head == 0 || p.firstToken <= p.head):
		p.wait(lateFirstToken, p.firstToken)
	case p.head > 0:
		p.wait(lateHead, p.head)
	}
	return ctx
}

func (p *patience) wait(phase int32, d time.Duration) {
	p.watch.phase.Store(phase)
	p.watch.timer.Reset(max(d, 0))
}

// headCame: the head of the answer is there. False: too late.
func (p *patience) headCame() bool {
	if p.watch == nil {
		return true
	}
	if p.watch.phase.Load() == lateHead {
		if !p.watch.timer.Stop() {
			p.watch.late.CompareAndSwap(0, lateHead) // it has just run out
		}
		if p.watch.late.Load() == 0 && p.firstToken > 0 {
			p.wait(lateFirstToken, p.firstToken-time.Since(p.started))
		}
	}
	return p.watch.late.Load() == 0
}

// arrived: something of a stream came; content tells whether there has been
// content.
func (p *patience) arrived(content bool) {
	if p.watch == nil || !content {
		return
	}
	if p.begun && p.idle == 0 {
		return
	}
	p.begun = true
	p.watch.timer.Stop()
	if p.idle > 0 {
		p.wait(lateIdle, p.idle)
	}
}

// stop ends the patience; what ran out is still known.
func (p *patience) stop() {
	if p.watch != nil {
		p.watch.timer.Stop()
	}
}

// late is the refusal for the time that ran out; nil when none did.
func (p *patience) late() *fault.Fault {
	if p.watch == nil {
		return nil
	}
	switch p.watch.late.Load() {
	case lateHead:
		return fault.Newf(fault.RequestTimeout, "x-gateway-request-timeout", "Request exceeded the timeout sent in the request: %dms", p.head.Milliseconds())
	case lateFirstToken:
		return fault.Newf(fault.RequestTimeout, "x-gateway-first-token-timeout", "The first content of the stream did not come within the first token timeout: %dms", p.firstToken.Milliseconds())
	case lateIdle:
		return fault.Newf(fault.RequestTimeout, "x-gateway-stream-idle-timeout", "The stream was silent for longer than the idle timeout: %dms", p.idle.Milliseconds())
	}
	return nil
}

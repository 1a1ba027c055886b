package plan

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/route"
)

// Headers that limit the times of streams, in milliseconds. They override every level of a
// config; 0 disables a config's limit.
const (
	headerFirstToken = "X-Gateway-First-Token-Timeout"
	headerStreamIdle = "X-Gateway-Stream-Idle-Timeout"
)

// RequestedLimits are the limits in a request's headers.
type RequestedLimits struct {
	firstToken, idle       time.Duration
	hasFirstToken, hasIdle bool
}

// Read reads the headers; each is an integer number of milliseconds.
func (a *RequestedLimits) Read(h http.Header) (err error) {
	if a.firstToken, a.hasFirstToken, err = milliseconds(h, headerFirstToken); err != nil {
		return err
	}
	a.idle, a.hasIdle, err = milliseconds(h, headerStreamIdle)
	return err
}

// Effective returns the limits in force: the headers override a config.
func (a *RequestedLimits) Effective(firstToken, idle time.Duration) (time.Duration, time.Duration) {
	if a.hasFirstToken {
		firstToken = a.firstToken
	}
	if a.hasIdle {
		idle = a.idle
	}
	return firstToken, idle
}

func milliseconds(h http.Header, name string) (time.Duration, bool, error) {
	var v string
	if all := h[name]; len(all) > 0 {
		v = all[0]
	}
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

// The timeout of an attempt that expired.
const (
	lateHead int32 = 1 + iota
	lateFirstToken
	lateIdle
)

// AttemptTimeouts ends an attempt on timeout. It creates a timer only if there is a timeout. The zero
// value has none.
type AttemptTimeouts struct {
	head, firstToken, idle time.Duration // 0: no limit
	started                time.Time
	watch                  *watch // nil: no limits
	timer                  *time.Timer
	begun                  bool // the first content has arrived
}

// watch is the part that the timer's goroutine uses. It outlives the call.
type watch struct {
	cancel context.CancelFunc
	phase  atomic.Int32 // what the timer waits for
	late   atomic.Int32 // the timeout that expired; 0: none
}

func (w *watch) expire() {
	w.late.CompareAndSwap(0, w.phase.Load())
	w.cancel()
}

// StartAttempt starts the timeouts of one attempt and stops those of the previous one. The context ends
// on timeout. release must be called after the attempt's response is done; it is nil if there is
// no limit.
func (p *AttemptTimeouts) StartAttempt(ctx context.Context, head, firstToken, idle time.Duration) (bounded context.Context, release func()) {
	p.Stop()
	*p = AttemptTimeouts{head: head, firstToken: firstToken, idle: idle}
	if head == 0 && firstToken == 0 && idle == 0 {
		return ctx, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watch{cancel: cancel}
	timer := time.AfterFunc(time.Hour, w.expire)
	timer.Stop()
	p.started, p.watch, p.timer = time.Now(), w, timer
	switch {
	case firstToken > 0 && (head == 0 || firstToken <= head):
		p.wait(lateFirstToken, firstToken)
	case head > 0:
		p.wait(lateHead, head)
	}
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

func (p *AttemptTimeouts) wait(phase int32, d time.Duration) {
	p.watch.phase.Store(phase)
	p.timer.Reset(max(d, 0))
}

// HeadArrived records that the head of the response has arrived; it returns false if it is too
// late.
func (p *AttemptTimeouts) HeadArrived() bool {
	if p.watch == nil {
		return true
	}
	if p.watch.phase.Load() == lateHead {
		if !p.timer.Stop() {
			p.watch.late.CompareAndSwap(0, lateHead) // it has just expired
		}
		if p.watch.late.Load() == 0 && p.firstToken > 0 {
			p.wait(lateFirstToken, p.firstToken-time.Since(p.started))
		}
	}
	return p.watch.late.Load() == 0
}

// PartArrived records that part of a stream has arrived; content: it has had content.
func (p *AttemptTimeouts) PartArrived(content bool) {
	if p.watch == nil || !content {
		return
	}
	if p.begun && p.idle == 0 {
		return
	}
	p.begun = true
	p.timer.Stop()
	if p.idle > 0 {
		p.wait(lateIdle, p.idle)
	}
}

// Stop stops the timeouts; an expired one is still known.
func (p *AttemptTimeouts) Stop() {
	if p.watch != nil {
		p.timer.Stop()
	}
}

// TimeoutFault returns the fault for the timeout that expired; nil if none did.
func (p *AttemptTimeouts) TimeoutFault() *fault.Fault {
	if p.watch == nil {
		return nil
	}
	switch p.watch.late.Load() {
	case lateHead: // clients of other gateways compare this text; a config may have set the timeout, too
		return fault.Newf(fault.RequestTimeout, "x-gateway-request-timeout", "Request exceeded the timeout sent in the request: %dms", p.head.Milliseconds())
	case lateFirstToken:
		return fault.Newf(fault.RequestTimeout, "x-gateway-first-token-timeout", "The first content of the stream did not arrive within the first token timeout (that header, or first_token_timeout of the config): %dms", p.firstToken.Milliseconds())
	case lateIdle:
		return fault.Newf(fault.RequestTimeout, "x-gateway-stream-idle-timeout", "The stream was silent for longer than the idle timeout (that header, or stream_idle_timeout of the config): %dms", p.idle.Milliseconds())
	}
	return nil
}

// Again is the time between keep-alives on a stream with a head that was sent before its first
// content.
const Again = 15 * time.Second

// Hold limits how long data is held back while its owner blocks in reads. The holder of its lock
// may access the data. The owner has the lock except while it reads; only then can the timer's
// goroutine release the data.
type Hold struct {
	mu    sync.Mutex
	over  bool
	timer *time.Timer
	let   func()
}

// NewHold starts to hold; the caller has the lock and must call End. let is called after most,
// and then every Again, until End.
func NewHold(most time.Duration, let func()) *Hold {
	h := &Hold{let: let}
	h.mu.Lock()
	h.timer = time.AfterFunc(most, h.release)
	return h
}

// Read reads with the lock released.
func (h *Hold) Read(from io.Reader, p []byte) (int, error) {
	h.mu.Unlock()
	n, err := from.Read(p)
	h.mu.Lock()
	return n, err
}

// End returns the held data to its owner; from then on the timer releases nothing.
func (h *Hold) End() {
	h.over = true
	h.timer.Stop()
	h.mu.Unlock()
}

func (h *Hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	h.let()
	h.timer.Reset(Again)
}

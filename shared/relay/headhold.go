package relay

import (
	"net/http"
	"sync"
	"time"
)

// keepAliveEvery is the time between the signs of life on a stream whose head
// has gone out before its first content.
const keepAliveEvery = 15 * time.Second

// headHold keeps the head of a stream back until its first content, so that an
// error before it is answered with its own status and other targets can still be
// tried. Its time is bounded, whatever the provider does: the head then goes
// out from the timer's goroutine while the call waits in a read.
//
// The lock is the right to touch the call. The call has it except while it
// reads.
type headHold struct {
	mu    sync.Mutex
	c     *call
	a     *answer
	over  bool
	timer *time.Timer
}

// hold starts to hold the head of a's stream. The caller has the lock and must
// call end.
func (c *call) hold(a *answer, most time.Duration) *headHold {
	h := &headHold{c: c, a: a}
	h.mu.Lock()
	h.timer = time.AfterFunc(most, h.release)
	return h
}

// read reads from the provider with the lock given away.
func (h *headHold) read(p []byte) (int, error) {
	body := h.a.resp.Body
	h.mu.Unlock()
	n, err := body.Read(p)
	h.mu.Lock()
	return n, err
}

// end gives the call back to itself: nothing is released any more.
func (h *headHold) end() {
	h.over = true
	h.timer.Stop()
	h.mu.Unlock()
}

// release sends the head and what was held, and a sign of life, then one every
// keepAliveEvery while nothing comes.
func (h *headHold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	c := h.c
	c.streamHead(h.a)
	if held := c.heldBuf; len(held.b) > 0 {
		c.captureAnswer(held.b)
		c.write(held.b)
		held.b = held.b[:0]
	}
	sign := c.signOfLife()
	c.captureAnswer(sign)
	c.write(sign)
	c.flush()
	h.timer.Reset(keepAliveEvery)
}

var (
	commentSign = []byte(": keep-alive\n\n")
	pingSign    = []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
)

// signOfLife is what clients of the route's dialect pass over: a comment, or the
// ping event where the dialect has one.
func (c *call) signOfLife() []byte {
	if c.rt.Client.Name() == "anthropic.messages" {
		return pingSign
	}
	return commentSign
}

// streamHead sends the head of a stream.
func (c *call) streamHead(a *answer) {
	h := c.w.Header()
	h["Content-Type"] = eventStream
	h["Cache-Control"] = noCache
	c.answerHeaders(a.resp.Header)
	c.head(http.StatusOK)
}

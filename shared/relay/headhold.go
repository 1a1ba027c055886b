package relay

import (
	"net/http"
	"sync"
	"time"

	"gateway/shared/chat"
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
	s     *streams
	a     *answer
	over  bool
	timer *time.Timer
}

// hold starts to hold the head of a's stream. The caller has the lock and must
// call end.
func (st *streams) hold(a *answer, most time.Duration) *headHold {
	h := &headHold{s: st, a: a}
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
	s := h.s
	s.streamHead(h.a)
	if held := s.heldBuf; len(held.B) > 0 {
		s.captureAnswer(held.B)
		s.write(held.B)
		held.B = held.B[:0]
	}
	sign := s.signOfLife()
	s.captureAnswer(sign)
	s.write(sign)
	s.flush()
	h.timer.Reset(keepAliveEvery)
}

var (
	commentSign = []byte(": keep-alive\n\n")
	pingSign    = []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
)

// signOfLife is what clients of the route's dialect pass over: a comment, or the
// ping event where the dialect has one.
func (st *streams) signOfLife() []byte {
	if st.Route.Client.Name() == "anthropic.messages" {
		return pingSign
	}
	if _, framed := st.Route.Client.(chat.FramedWriter); framed {
		return nil // such streams have no place for one
	}
	return commentSign
}

// streamHead sends the head of a stream.
func (st *streams) streamHead(a *answer) {
	if st.headSent {
		return
	}
	h := st.w.Header()
	h["Content-Type"] = eventStream
	if own, ok := st.Route.Client.(chat.FramedWriter); ok {
		h["Content-Type"] = own.StreamType()
	}
	h["Cache-Control"] = noCache
	st.answerHeaders(a.resp.Header)
	st.head(st.guards.Status(http.StatusOK))
	if told := st.guards.FirstEvent(st.Route.Endpoint, st.Strict()); len(told) > 0 {
		st.captureAnswer(told)
		st.write(told)
	}
}

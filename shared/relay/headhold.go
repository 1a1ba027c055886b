package relay

import (
	"net/http"
	"time"

	"gateway/shared/chat"
	"gateway/shared/relay/patience"
)

// hold keeps the head of a's stream back until its first content, so that an error
// before it is answered with its own status and other targets can still be tried. Its
// time is bounded, whatever the provider does.
func (st *streams) hold(a *answer, most time.Duration) *patience.Hold {
	return patience.NewHold(most, func() { st.showSign(a) })
}

// showSign sends the head and what was held, and a sign of life.
func (st *streams) showSign(a *answer) {
	st.streamHead(a)
	if held := st.heldBuf; len(held.B) > 0 {
		st.captureAnswer(held.B)
		st.write(held.B)
		held.B = held.B[:0]
	}
	sign := st.signOfLife()
	st.captureAnswer(sign)
	st.write(sign)
	st.flush()
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
	st.head(st.guards.Verdict.Status(http.StatusOK))
	if told := st.guards.FirstEvent(st.Route.Endpoint, st.Strict()); len(told) > 0 {
		st.captureAnswer(told)
		st.write(told)
	}
}

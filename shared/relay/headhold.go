package relay

import (
	"net/http"
	"time"

	"gateway/shared/chat"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/record"
)

// holdHead holds the head of a's stream back until its first content, so that an error before it
// gets its own status and other targets can still be tried. The time is limited, whatever the
// provider does.
func holdHead(c *call, a *answer, most time.Duration) *plan.Hold {
	return plan.NewHold(most, func() {
		// Only one attempt of a race may send, and the second one only after it was chosen.
		if c.race == nil || c == c.race.first && c.race.claim(c) {
			showSign(c, a)
		}
	})
}

// showSign sends the head and the held bytes, and a keep-alive.
func showSign(c *call, a *answer) {
	streamHead(c, a)
	if held := c.stream.heldBuf; len(held.B) > 0 {
		c.log.Body(record.Response, held.B)
		c.reply.write(held.B)
		held.B = held.B[:0]
	}
	sign := signOfLife(&c.req)
	c.log.Body(record.Response, sign)
	c.reply.write(sign)
	c.reply.flush()
}

var (
	commentSign = []byte(": keep-alive\n\n")
	pingSign    = []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
)

// signOfLife returns bytes that clients of the route's dialect ignore: a comment, or the ping
// event if the dialect has one.
func signOfLife(q *admission.Request) []byte {
	if q.Route.Client.Name() == "anthropic.messages" {
		return pingSign
	}
	if _, framed := q.Route.Client.(chat.FramedWriter); framed {
		return nil // such streams have no place for one
	}
	return commentSign
}

// streamHead sends the head of a stream.
func streamHead(c *call, a *answer) {
	if c.reply.headSent {
		return
	}
	h := c.reply.w.Header()
	h["Content-Type"] = eventStream
	if own, ok := c.req.Route.Client.(chat.FramedWriter); ok {
		h["Content-Type"] = own.StreamType()
	}
	h["Cache-Control"] = noCache
	answerHeaders(c, a.resp.Header)
	c.reply.head(c.guards.Verdict.Status(http.StatusOK))
	if told := c.guards.FirstEvent(c.req.Route.Endpoint, c.target.Strict()); len(told) > 0 {
		c.log.Body(record.Response, told)
		c.reply.write(told)
	}
}

package relay

import (
	"gateway/shared/relay/chosen"
	"net/http"
	"strconv"

	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/egress/buffer"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/turn"
)

// sendCached answers with a kept answer: no provider is called and nothing is
// paid.
func sendCached(c *call, a *reused.Answer) error {
	e := a.Entry
	c.cache.Use(e)
	out := e.Body
	h := c.reply.w.Header()
	if a.Whole != nil {
		out = replayed(c, a.Whole)
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
	} else {
		h["Content-Type"] = jsonType
		out = c.guards.Told(c.guards.Taken.Restored(out), false)
		h["Content-Length"] = []string{strconv.Itoa(len(out))}
	}
	answerHeaders(c, nil)
	sendWhole(c, c.guards.Verdict.Status(http.StatusOK), out)
	return nil
}

// replayed is a whole answer as a stream in the client's dialect.
func replayed(c *call, r *chat.Response) []byte {
	o := options(c)
	o.Request = c.body.LegacyOnly()
	return streamTold(c, turn.Replay(r, c.req.Route.Client.NewStreamEncoder(o)))
}

// gather begins to collect a stream that is to be kept, or judged at its end.
func gather(c *call, a *answer) {
	judged := c.guards.JudgesEnd()
	if !c.cache.Keeps() && !judged && !chosen.StoresItems(&c.target) {
		return
	}
	if a.stream.Translated() {
		a.stream.Gather(cache.MaxBody, c.target.Decoded != nil && c.target.Decoded.HiddenAnswer, judged, nil)
		return
	}
	a.stream.Gather(cache.MaxBody, false, judged, c.req.Route.Client.NewStreamDecoder(&c.target.To.Traits))
}

// keepStream stores a stream that has ended: for the cache, and its items for later references.
func keepStream(c *call, a *answer) {
	stores := chosen.StoresItems(&c.target)
	if !c.cache.Keeps() && !stores {
		return
	}
	whole := a.stream.Gathered()
	if whole == nil {
		return
	}
	enc := buffer.New()
	defer enc.Free()
	enc.B = encodeWhole(c, enc.B, a, whole)
	if c.cache.Keeps() {
		c.cache.Keep(enc.B)
	}
	if stores {
		chosen.StoreItems(&c.target, enc.B)
	}
}

// encodeWhole writes a stream that was put together as a whole answer.
func encodeWhole(c *call, dst []byte, a *answer, whole *chat.Response) []byte {
	o := options(c)
	if !a.stream.Translated() || c.target.SameDialect() {
		o.Request = c.body.LegacyOnly()
	}
	whole.Attribute(c.target.To.Dialect.Name())
	return c.req.Route.Client.EncodeResponse(dst, whole, o)
}

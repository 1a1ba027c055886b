package relay

import (
	"net/http"
	"strconv"

	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/egress/buffer"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/response"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/target"
)

// sendCached sends a cached response: no provider is called and nothing is charged.
func sendCached(c *call, a *reused.Answer) error {
	e := a.Entry
	c.cache.Use(e)
	out := e.Body
	h := c.reply.w.Header()
	if a.Decoded != nil {
		out = replayed(&c.target, &c.guards, a.Decoded)
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
	} else {
		h["Content-Type"] = jsonType
		out = c.guards.WithResults(c.guards.Taken.Restored(out), false)
		h["Content-Length"] = []string{strconv.Itoa(len(out))}
	}
	answerHeaders(c, nil)
	sendWhole(c, c.guards.Verdict.Status(http.StatusOK), out)
	return nil
}

// replayed returns a complete response as a stream in the client's dialect.
func replayed(tg *target.Target, gs *guardrail.State, r *chat.Response) []byte {
	o := target.Options(tg)
	o.Request = tg.Body.LegacyOnly()
	return streamTold(tg, gs, response.Replay(r, tg.Req.Route.Client.NewStreamEncoder(o)))
}

// gather starts to assemble a stream that is cached, or judged at its end.
func gather(tg *target.Target, gs *guardrail.State, ca *reused.Cache, a *answer) {
	judged := gs.JudgesEnd()
	if !ca.Stores() && !judged && !target.StoresItems(tg) {
		return
	}
	if a.stream.Translated() {
		a.stream.Gather(cache.MaxBody, tg.Decoded != nil && tg.Decoded.HiddenAnswer, judged, nil)
		return
	}
	a.stream.Gather(cache.MaxBody, false, judged, tg.Req.Route.Client.NewStreamDecoder(&tg.To.Traits))
}

// keepStream stores a finished stream: in the cache, and its items for later references.
func keepStream(tg *target.Target, ca *reused.Cache, a *answer) {
	stores := target.StoresItems(tg)
	if !ca.Stores() && !stores {
		return
	}
	whole := a.stream.Gathered()
	if whole == nil {
		return
	}
	enc := buffer.New()
	defer enc.Free()
	enc.B = encodeWhole(tg, enc.B, a, whole)
	if ca.Stores() {
		ca.Keep(enc.B)
	}
	if stores {
		target.StoreItems(tg, enc.B)
	}
}

// encodeWhole writes an assembled stream as a complete response.
func encodeWhole(tg *target.Target, dst []byte, a *answer, whole *chat.Response) []byte {
	o := target.Options(tg)
	if !a.stream.Translated() || tg.SameDialect() {
		o.Request = tg.Body.LegacyOnly()
	}
	whole.Attribute(tg.To.Dialect.Name())
	return tg.Req.Route.Client.EncodeResponse(dst, whole, o)
}

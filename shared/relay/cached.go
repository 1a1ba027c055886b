package relay

import (
	"net/http"
	"strconv"

	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/turn"
)

// sendCached answers with a kept answer: no provider is called and nothing is
// paid.
func (s *sender) sendCached(a *reused.Answer) error {
	e := a.Entry
	s.Heard.Finish, s.reuse.Hit = e.Finish, e
	if e.Model != "" {
		s.Heard.Model = e.Model
	}
	out := e.Body
	h := s.w.Header()
	if a.Whole != nil {
		out = s.replayed(a.Whole)
		h["Content-Type"], h["Cache-Control"] = eventStream, noCache
	} else {
		h["Content-Type"] = jsonType
		out = s.guards.Told(s.guards.Taken.Restored(out), false)
		h["Content-Length"] = []string{strconv.Itoa(len(out))}
	}
	s.answerHeaders(nil)
	s.sendWhole(s.guards.Verdict.Status(http.StatusOK), out)
	return nil
}

// replayed is a whole answer as a stream in the client's dialect.
func (ca *answerCache) replayed(r *chat.Response) []byte {
	o := ca.options()
	o.Request = ca.LegacyOnly()
	return ca.streamTold(turn.Replay(r, ca.Route.Client.NewStreamEncoder(o)))
}

// gather begins to collect a stream that is to be kept, or judged at its end.
func (ca *answerCache) gather(a *answer) {
	judged := ca.guards.JudgesEnd()
	if !ca.reuse.Keeps() && !judged {
		return
	}
	if a.stream.Translated() {
		a.stream.Gather(cache.MaxBody, ca.Decoded != nil && ca.Decoded.HiddenAnswer, judged, nil)
		return
	}
	a.stream.Gather(cache.MaxBody, false, judged, ca.Route.Client.NewStreamDecoder(&ca.To.Traits))
}

// keepStream keeps a stream that has come whole.
func (ca *answerCache) keepStream(a *answer) {
	if !ca.reuse.Keeps() {
		return
	}
	whole := a.stream.Gathered()
	if whole == nil {
		return
	}
	enc := pooled.New()
	defer enc.Free()
	enc.B = ca.encodeWhole(enc.B, a, whole)
	ca.reuse.Keep(enc.B)
}

// encodeWhole writes a stream that was put together as a whole answer.
func (ca *answerCache) encodeWhole(dst []byte, a *answer, whole *chat.Response) []byte {
	o := ca.options()
	if !a.stream.Translated() || ca.SameDialect() {
		o.Request = ca.LegacyOnly()
	}
	whole.Attribute(ca.To.Dialect.Name())
	return ca.Route.Client.EncodeResponse(dst, whole, o)
}

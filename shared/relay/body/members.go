package body

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// TextIn returns a top-level field of a JSON body as text; numbers verbatim, "" if it is absent.
func TextIn(src []byte, name string) string {
	raw, ok := member(src, name)
	if !ok || len(raw) == 0 || wire.IsNull(raw) {
		return ""
	}
	if s, err := wire.ScanString(raw, name); err == nil {
		return s
	}
	return string(raw)
}

// member returns a top-level field of a JSON body.
func member(body []byte, name string) (json.RawMessage, bool) {
	if len(body) == 0 {
		return nil, false
	}
	var w wire.Walk
	if wire.NewKeySet(name).Walk(body, &w) != nil || w.Spans[0].Absent() {
		return nil, false
	}
	return json.RawMessage(w.Spans[0].Of(body)), true
}

// AsParams returns the access function of conditions to top-level fields of the body.
func (b *Body) AsParams() func(name string) (json.RawMessage, bool) {
	if b.params == nil {
		b.params = b.param
	}
	return b.params
}

// param returns a top-level field of the client's body for a condition.
func (b *held) param(name string) (json.RawMessage, bool) { return member(b.In, name) }

var backgroundKey = wire.NewKeySet("background")

// Background reports whether the response only acknowledges a background response.
func (b *Body) Background() bool {
	if b.Req.Route.Endpoint != "createModelResponse" {
		return false
	}
	return RequestsBackground(b.In)
}

// RequestsBackground reports whether the body requests a background response; an unreadable one may.
func RequestsBackground(body []byte) bool {
	var w wire.Walk
	if backgroundKey.Walk(body, &w) != nil {
		return true
	}
	return w.Spans[0].Present(body) && string(w.Spans[0].Of(body)) != "false"
}

// LegacyOnly returns the settings of the request that still apply to a response in the client's
// own format: whether calls are read as function_call.
func (b *Body) LegacyOnly() *chat.Request {
	r, err := b.Req.Route.Client.DecodeRequest(b.In)
	if err != nil || !r.Legacy {
		return nil
	}
	return &chat.Request{Legacy: true}
}

// clipRunes cuts s to at most n characters.
func clipRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// MaxModel limits the name of a model in bytes: an ARN, the longest of them, has at most 2,048
// characters. Records, cubes and messages contain names several times.
const MaxModel = 2048

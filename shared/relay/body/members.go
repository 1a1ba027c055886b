package body

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// TextIn gives a top-level member of a JSON body as text; numbers as they stand,
// "" when it is not there.
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

// member gives a top-level member of a JSON body.
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

// AsParams gives the top-level fields of the body to conditions.
func (b *Body) AsParams() func(name string) (json.RawMessage, bool) {
	if b.params == nil {
		b.params = b.param
	}
	return b.params
}

// param gives a top-level field of the client's body to a condition.
func (b *held) param(name string) (json.RawMessage, bool) { return member(b.In, name) }

var backgroundKey = wire.NewKeySet("background")

// Background tells whether the answer only acknowledges a response that is made later.
func (b *Body) Background() bool {
	if b.Req.Route.Endpoint != "createModelResponse" {
		return false
	}
	return AsksBackground(b.In)
}

// AsksBackground tells whether the body of a response asks for it to be made in
// the background; one that cannot be read may.
func AsksBackground(body []byte) bool {
	var w wire.Walk
	if backgroundKey.Walk(body, &w) != nil {
		return true
	}
	return w.Spans[0].Present(body) && string(w.Spans[0].Of(body)) != "false"
}

// LegacyOnly is what of the request still counts for an answer that is already in
// the client's shape: whether calls are read as function_call.
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

// MaxModel bounds the name of a model in bytes: an ARN, the longest of them, has
// at most 2,048 characters. Records, cubes and messages hold names several times.
const MaxModel = 2048

package response

import (
	"bytes"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// MaxPartial limits a truncated response that is parsed, in bytes: it needs twice its size in
// memory.
const MaxPartial = 4 << 20

// Partial is the received part of a truncated or unreadable response.
type Partial struct {
	Meter      chat.Meter
	InUsage    bool // truncated within its usage
	HasContent bool // it contains a part of the requested content
	HasFields  bool // truncated after its first field
	HasError   bool // it has a top-level error
	completed  []byte
}

// HasOutput reports whether part of a response was received.
func (b *Partial) HasOutput() bool {
	return b.HasContent || b.HasFields && !b.HasError
}

// complete completes the JSON of a truncated response; ok is false if that is impossible.
func complete(body []byte) (b Partial, ok bool) {
	mended, open := wire.RepairTruncated(body)
	if mended == nil {
		return b, false
	}
	for _, name := range open {
		b.InUsage = b.InUsage || aboutUsage(name)
	}
	b.HasFields = open != nil && len(mended) > len("{}")
	b.HasError = isErrorBody(mended)
	b.completed = mended
	return b, true
}

// PartialConversation reads a truncated response in the dialect d.
func PartialConversation(d chat.Provider, t *chat.Traits, body []byte) (b Partial, ok bool) {
	if b, ok = complete(body); !ok {
		return b, false
	}
	b.Meter = upstream.Passer(d).MeterResponse(b.completed)
	if r, err := d.DecodeResponse(b.completed, t); err == nil {
		told := r.Meter()
		if b.Meter.OutputBytes = told.OutputBytes; !b.Meter.Usage.IsReported() {
			b.Meter.Usage = told.Usage
		}
		b.HasContent = len(r.Choices) > 0 && len(r.Choices[0].Parts) > 0
	}
	b.HasContent = b.HasContent || b.Meter.OutputBytes > 0
	b.HasFields = b.HasFields && b.Meter.Err == nil
	return b, true
}

// PartialTranslated reads a truncated response that c translates.
func PartialTranslated(c chat.Translator, a *chat.TranslatorRequest, body []byte) (b Partial, ok bool) {
	if b, ok = complete(body); !ok {
		return b, false
	}
	if _, _, got, err := c.DecodeResponse(nil, b.completed, nil, a); err == nil || got.Usage.IsReported() {
		b.Meter = got
	}
	return b, true
}

// PartialOperation reads a truncated response with meter; nil if it reports no usage.
func PartialOperation(meter func([]byte) chat.Meter, body []byte) (b Partial, ok bool) {
	if b, ok = complete(body); ok && meter != nil {
		b.Meter = meter(b.completed)
	}
	return b, ok
}

// aboutUsage reports whether providers report usage in a field of this name.
func aboutUsage(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "usage") || strings.Contains(name, "tokens") || strings.Contains(name, "billed")
}

var errorKey = wire.NewKeySet("error")

// isErrorBody reports whether a body has a top-level error.
func isErrorBody(body []byte) bool {
	var w wire.Walk
	if errorKey.Walk(body, &w) != nil {
		return false
	}
	return w.Spans[0].Present(body) && !wire.IsNull(w.Spans[0].Of(body))
}

// IsEnclosed reports whether a passed-through response can be a complete JSON object or list: it
// is not empty, not a web page and not truncated. The content between the brackets is not read.
func IsEnclosed(out []byte) bool {
	out = bytes.Trim(out, " \t\r\n")
	if len(out) < 2 {
		return false
	}
	first, last := out[0], out[len(out)-1]
	return first == '{' && last == '}' || first == '[' && last == ']'
}

// Package came tells what came of answers that are not whole, and estimates usage that
// nobody reported.
package came

import (
	"bytes"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// MaxRead bounds the answers that are read for what came of them, in bytes: they
// stand in memory twice for that.
const MaxRead = 4 << 20

// Beginning is what came of an answer that broke off or cannot be read.
type Beginning struct {
	Meter   chat.Meter
	Within  bool // it broke off within its usage
	Made    bool // a part of what was asked for is there
	Begun   bool // it broke off behind its first member
	Refused bool // it has an error at its top
	mended  []byte
}

// Answered tells whether something of an answer came.
func (b *Beginning) Answered() bool {
	return b.Made || b.Begun && !b.Refused
}

// mend makes JSON of the beginning of an answer; ok is false where there is none.
func mend(body []byte) (b Beginning, ok bool) {
	mended, open := wire.RepairTruncated(body)
	if mended == nil {
		return b, false
	}
	for _, name := range open {
		b.Within = b.Within || aboutUsage(name)
	}
	b.Begun = open != nil && len(mended) > len("{}")
	b.Refused = saysError(mended)
	b.mended = mended
	return b, true
}

// Conversation reads the beginning of an answer in the dialect d.
func Conversation(d chat.Provider, t *chat.Traits, body []byte) (b Beginning, ok bool) {
	if b, ok = mend(body); !ok {
		return b, false
	}
	b.Meter = upstream.Passer(d).MeterResponse(b.mended)
	if r, err := d.DecodeResponse(b.mended, t); err == nil {
		told := r.Meter()
		if b.Meter.OutputBytes = told.OutputBytes; !b.Meter.Usage.Known() {
			b.Meter.Usage = told.Usage
		}
		b.Made = len(r.Choices) > 0 && len(r.Choices[0].Parts) > 0
	}
	b.Made = b.Made || b.Meter.OutputBytes > 0
	b.Begun = b.Begun && b.Meter.Err == nil
	return b, true
}

// Carried reads the beginning of an answer that c translates.
func Carried(c chat.Translator, a *chat.Asked, body []byte) (b Beginning, ok bool) {
	if b, ok = mend(body); !ok {
		return b, false
	}
	if _, _, got, err := c.DecodeResponse(nil, b.mended, nil, a); err == nil || got.Usage.Known() {
		b.Meter = got
	}
	return b, true
}

// Operation reads the beginning of an answer that meter reads; nil: it tells nothing.
func Operation(meter func([]byte) chat.Meter, body []byte) (b Beginning, ok bool) {
	if b, ok = mend(body); ok && meter != nil {
		b.Meter = meter(b.mended)
	}
	return b, ok
}

// aboutUsage tells the members under which providers tell usage.
func aboutUsage(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "usage") || strings.Contains(name, "tokens") || strings.Contains(name, "billed")
}

var errorKey = wire.NewKeySet("error")

// saysError tells whether a body has an error at its top.
func saysError(body []byte) bool {
	var w wire.Walk
	if errorKey.Walk(body, &w) != nil {
		return false
	}
	return w.Spans[0].Present(body) && !wire.IsNull(w.Spans[0].Of(body))
}

// Enclosed reports whether an answer that is passed on as it came can be a JSON
// object or list: it is not empty, no page and not cut. What stands between the
// brackets is not read.
func Enclosed(out []byte) bool {
	out = bytes.Trim(out, " \t\r\n")
	if len(out) < 2 {
		return false
	}
	first, last := out[0], out[len(out)-1]
	return first == '{' && last == '}' || first == '[' && last == ']'
}

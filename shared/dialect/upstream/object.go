package upstream

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Object writes JSON into B. A field or element gets its comma automatically.
type Object struct{ B []byte }

// Begin opens an object after what dst holds.
func Begin(dst []byte) *Object { return &Object{B: append(dst, '{')} }

// comma writes a comma unless an object or a list has just been opened.
func (o *Object) comma() {
	if n := len(o.B); n > 0 && o.B[n-1] != '{' && o.B[n-1] != '[' && o.B[n-1] != ':' {
		o.B = append(o.B, ',')
	}
}

// Key and Open are not inlined: because B grows in them, they would be in a thousand
// places, 0.4 MB of every binary, and no translation is measurably faster.

// Key begins a field. name needs no escapes.
//
//go:noinline
func (o *Object) Key(name string) {
	o.comma()
	o.B = append(append(append(o.B, '"'), name...), `":`...)
}

// Open begins an object or list, as an element or as the value of Key.
//
//go:noinline
func (o *Object) Open(bracket byte) {
	o.comma()
	o.B = append(o.B, bracket)
}

// Close ends an object or list.
func (o *Object) Close(bracket byte) { o.B = append(o.B, bracket) }

// Text writes a string element.
func (o *Object) Text(s string) {
	o.comma()
	o.B = wire.AppendJSONString(o.B, s)
}

// Element writes an element that is JSON already.
func (o *Object) Element(raw []byte) {
	o.comma()
	o.B = append(o.B, raw...)
}

// Str writes a string field.
func (o *Object) Str(name, value string) {
	o.Key(name)
	o.B = wire.AppendJSONString(o.B, value)
}

// StrIf writes a string field that is not empty.
func (o *Object) StrIf(name, value string) {
	if value != "" {
		o.Str(name, value)
	}
}

// Int writes an integer.
func (o *Object) Int(name string, n int64) {
	o.Key(name)
	o.B = strconv.AppendInt(o.B, n, 10)
}

// IntIf writes an integer if it is set.
func (o *Object) IntIf(name string, n chat.Opt[int64]) {
	if n.Set {
		o.Int(name, n.Value)
	}
}

// FloatIf writes a number if it is set.
func (o *Object) FloatIf(name string, n chat.Opt[float64]) {
	if n.Set {
		o.Key(name)
		o.B = strconv.AppendFloat(o.B, n.Value, 'g', -1, 64)
	}
}

// Bool writes true or false.
func (o *Object) Bool(name string, v bool) {
	o.Key(name)
	o.B = strconv.AppendBool(o.B, v)
}

// Raw writes a field with a value in JSON.
func (o *Object) Raw(name string, value []byte) {
	o.Key(name)
	o.B = append(o.B, value...)
}

// List writes a list of strings.
func (o *Object) List(name string, values []string) {
	o.Key(name)
	o.Open('[')
	for _, v := range values {
		o.Text(v)
	}
	o.Close(']')
}

// ListIf writes a list of strings that is not empty.
func (o *Object) ListIf(name string, values []string) {
	if len(values) > 0 {
		o.List(name, values)
	}
}

// OptString reads a string; anything else counts as absent.
func OptString(d *wire.Decoder) string {
	if d.Kind() != wire.KindString {
		d.Skip()
		return ""
	}
	return d.Str()
}

// Count reads a number of at least 0, see OptNumber, into n; anything else counts as absent.
func Count(d *wire.Decoder, n *chat.Opt[int64]) {
	if v, ok := OptNumber(d); ok && v >= 0 {
		*n = chat.Some(v)
	}
}

// TotalTokens reads {total_tokens} of an operation that only has prompt tokens.
func TotalTokens(d *wire.Decoder, u *pricing.Usage) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		if string(key) == "total_tokens" {
			var n chat.Opt[int64]
			if Count(d, &n); n.Set {
				u.Set(pricing.Input, n.Value)
			}
		}
	}
}

// Clone copies raw, which aliases a body that will be reused.
func Clone(raw []byte) []byte {
	if raw == nil {
		return nil
	}
	return append([]byte(nil), raw...)
}

// OptionalCount is a count plus one, so that 0 means "not given". It takes half the memory of an
// optional count, which matters if many are stored during a stream.
type OptionalCount int64

// Get is the count; 0 when it was not given.
func (k OptionalCount) Get() int64 { return max(0, int64(k)-1) }

// Read reads an integer of at least 0; anything else leaves k as it was.
func (k *OptionalCount) Read(d *wire.Decoder) {
	if n, ok := OptNumber(d); ok && n >= 0 {
		*k = OptionalCount(n + 1)
	}
}

// OptNumber reads a count that may be written as a string. ok is false, and the value is
// skipped, for anything that is not a number.
func OptNumber(d *wire.Decoder) (n int64, ok bool) {
	switch d.Kind() {
	case wire.KindNumber:
		return Number(d), true
	case wire.KindString:
		text := strings.TrimSpace(d.Str())
		if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') { // ParseFloat also reads "inf"
			return 0, false
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, false
		}
		return units(v), true
	}
	d.Skip()
	return 0, false
}

// Number reads a count in any form that hosts write. A part of a unit counts as one
// one, and a number too large to count becomes pricing.MaxUnits. It returns -1 for
// negative numbers, by which some hosts mean "not known".
func Number(d *wire.Decoder) int64 {
	v, err := strconv.ParseFloat(string(d.Num()), 64)
	if err != nil && v == 0 {
		return -1
	}
	return units(v)
}

func units(v float64) int64 {
	switch {
	case v < 0 || math.IsNaN(v):
		return -1
	case v >= pricing.MaxUnits:
		return pricing.MaxUnits
	}
	return int64(math.Ceil(v))
}

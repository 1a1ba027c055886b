package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"gateway/shared/fault"
)

// Decoder reads a JSON value from front to back, for translations. It checks
// the syntax as it goes, so the body need not be checked before.
//
//	d := wire.NewDecoder(body)
//	for key := range d.Object {
//		switch string(key) {
//		case "model":
//			model = d.Str()
//		case "messages":
//			for i := range d.Array { ... }
//		}
//	}
//	return d.End()
//
// The first error stays: every later read gives a zero value and the loops
// end. It is a *fault.Fault (400) that names the JSON path. A field that the
// loop did not read is skipped; so is the rest of a value after a break.
type Decoder struct {
	b       []byte
	i       int
	last    int // where the value read last starts, for Fail
	key     Span
	depth   int
	base    string
	err     error
	scratch []byte
}

// NewDecoder reads body.
func NewDecoder(body []byte) *Decoder { return &Decoder{b: body} }

// NewDecoderAt reads raw, a value that is at path base in a larger body.
func NewDecoderAt(raw []byte, base string) *Decoder { return &Decoder{b: raw, base: base} }

// Reset makes d read body from its start and forget its error.
func (d *Decoder) Reset(body []byte) {
	*d = Decoder{b: body, scratch: d.scratch[:0]}
}

// Err is the first error so far.
func (d *Decoder) Err() error { return d.err }

// End checks that nothing but white space follows and gives the first error.
func (d *Decoder) End() error {
	if d.err == nil {
		if i := skipSpace(d.b, d.i); i < len(d.b) {
			d.broken(i, trailing)
		}
	}
	return d.err
}

// Fail makes a fault about the value that was read last the decoder's error, unless it has
// one. format is put after the path of the value: Fail("must be positive") gives
// "messages[3].n must be positive".
func (d *Decoder) Fail(format string, args ...any) {
	d.failAt(d.last, format, args...)
}

// FailWith makes err the decoder's error, unless it has one.
func (d *Decoder) FailWith(err error) {
	if d.err == nil {
		d.err = err
	}
}

// Path is the path of the value that was read last. It reads the body again.
func (d *Decoder) Path() string { return d.pathAt(d.last) }

// Offset is where the next read starts.
func (d *Decoder) Offset() int { return d.i }

// KeySpan is the place of the key that an Object loop gave last, with its quotes.
func (d *Decoder) KeySpan() Span { return d.key }

func (d *Decoder) pathAt(offset int) string {
	path := PathAt(d.b, offset)
	switch {
	case d.base == "":
		return path
	case path == "" || path[0] == '[':
		return d.base + path
	}
	return d.base + "." + path
}

func (d *Decoder) failAt(offset int, format string, args ...any) {
	if d.err != nil {
		return
	}
	path := d.pathAt(offset)
	name := path
	if name == "" {
		name = "The body"
	}
	d.err = fault.Invalid(path, "%s %s", name, fmt.Sprintf(format, args...))
}

func (d *Decoder) broken(offset int, why problem) {
	if d.err == nil {
		d.err = fault.Invalid(d.pathAt(min(offset, len(d.b)-1)), "The body is not valid JSON: %s at byte %d", problemText[why], offset)
	}
}

// at moves to the next value and reports whether there is one to read.
func (d *Decoder) at() bool {
	if d.err != nil {
		return false
	}
	d.i = skipSpace(d.b, d.i)
	d.last = d.i
	if d.i >= len(d.b) {
		d.broken(d.i, cutShort)
		return false
	}
	return true
}

// Kind returns the kind of the next value, without reading it. It is not inlined: at 400
// places its code would cost more than the calls.
//
//go:noinline
func (d *Decoder) Kind() Kind {
	if !d.at() {
		return KindNone
	}
	return kindOf[d.b[d.i]]
}

// Null reads the next value if it is null and reports whether it was.
func (d *Decoder) Null() bool {
	if d.Kind() != KindNull {
		return false
	}
	return d.Skip()
}

// Skip skips the next value; false when there is an error.
func (d *Decoder) Skip() bool { return d.Raw() != nil }

// Raw returns the bytes of the next value, which alias the body; nil when there is an
// error.
func (d *Decoder) Raw() []byte {
	if !d.at() {
		return nil
	}
	end, why := skipValue(d.b, d.i, MaxDepth-d.depth)
	if why != fine {
		d.broken(end, why)
		return nil
	}
	start := d.i
	d.i = end
	return d.b[start:end:end]
}

// expect moves to the next value and fails unless it is of kind.
func (d *Decoder) expect(kind Kind) bool {
	if !d.at() {
		return false
	}
	switch got := kindOf[d.b[d.i]]; got {
	case kind:
		return true
	case KindNone:
		_, why := skipScalar(d.b, d.i)
		d.broken(d.i, why)
	default:
		d.failAt(d.i, "must be %s, not %s", kind, got)
	}
	return false
}

// inside reads the next value, a string, and returns the text between its quotes.
func (d *Decoder) inside() ([]byte, bool) {
	if !d.expect(KindString) {
		return nil, false
	}
	end, why := skipString(d.b, d.i+1)
	if why != fine {
		d.broken(end, why)
		return nil, false
	}
	in := d.b[d.i+1 : end-1]
	d.i = end
	return in, true
}

// RawStr returns the next value, a string, with its quotes and escapes. It aliases the
// body. To copy it is the cheapest way to pass a text on.
func (d *Decoder) RawStr() []byte {
	if !d.expect(KindString) {
		return nil
	}
	return d.Raw()
}

// Str reads a string.
func (d *Decoder) Str() string {
	in, ok := d.inside()
	if !ok {
		return ""
	}
	if bytes.IndexByte(in, '\\') < 0 {
		if utf8.Valid(in) {
			return string(in)
		}
		return string(appendValid(nil, in))
	}
	// A text of valid UTF-8 is never longer than its escaped form.
	text := appendUnescaped(make([]byte, 0, len(in)), in)
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// Bytes reads a string. The result aliases the body or the decoder and is
// valid until the next call of Bytes.
func (d *Decoder) Bytes() []byte {
	in, ok := d.inside()
	if !ok {
		return nil
	}
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return in
	}
	d.scratch = appendUnescaped(d.scratch[:0], in)
	return d.scratch
}

// Bool reads true or false.
func (d *Decoder) Bool() bool {
	if !d.expect(KindBool) {
		return false
	}
	raw := d.Raw()
	return len(raw) > 0 && raw[0] == 't'
}

// Num returns the bytes of the next value, a number.
func (d *Decoder) Num() []byte {
	if !d.expect(KindNumber) {
		return nil
	}
	return d.Raw()
}

// Int reads an integer; 5.0 and 1e3 are integers too.
func (d *Decoder) Int() int64 {
	raw := d.Num()
	if raw == nil {
		return 0
	}
	n, ok := parseInt(raw)
	if !ok {
		d.Fail("must be a whole number")
	}
	return n
}

// Float reads a number.
func (d *Decoder) Float() float64 {
	raw := d.Num()
	if raw == nil {
		return 0
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		d.Fail("is too large a number")
		return 0
	}
	return f
}

// Object reads an object: for key := range d.Object { read the value }. key
// aliases the body and is valid inside the loop's body.
func (d *Decoder) Object(yield func(key []byte) bool) {
	if !d.enter(KindObject) {
		return
	}
	wanted := true
	for first := true; d.more('}', first); first = false {
		if d.b[d.i] != '"' {
			d.broken(d.i, unexpected)
			return
		}
		end, why := skipString(d.b, d.i+1)
		if why != fine {
			d.broken(end, why)
			return
		}
		key := d.b[d.i+1 : end-1]
		d.key = Span{d.i, end}
		if bytes.IndexByte(key, '\\') >= 0 {
			key = appendUnescaped(nil, key)
		}
		if end = skipSpace(d.b, end); end >= len(d.b) || d.b[end] != ':' {
			d.broken(end, orCut(d.b, end))
			return
		}
		d.i = end + 1
		if !d.at() {
			return
		}
		start := d.i
		if wanted {
			wanted = yield(key)
		}
		if d.i == start && d.err == nil {
			d.Skip()
		}
	}
}

// Array reads an array: for i := range d.Array { read the element }.
func (d *Decoder) Array(yield func(i int) bool) {
	if !d.enter(KindArray) {
		return
	}
	wanted := true
	for n := 0; d.more(']', n == 0); n++ {
		start := d.i
		d.last = start
		if wanted {
			wanted = yield(n)
		}
		if d.i == start && d.err == nil {
			d.Skip()
		}
	}
}

func (d *Decoder) enter(kind Kind) bool {
	if !d.expect(kind) {
		return false
	}
	if d.depth >= MaxDepth {
		d.broken(d.i, tooDeep)
		return false
	}
	d.depth++
	d.i++
	return true
}

// more moves to the next field and reports whether there is one. At the closing bracket it
// leaves the container.
func (d *Decoder) more(closing byte, first bool) bool {
	if d.err != nil {
		return false
	}
	d.i = skipSpace(d.b, d.i)
	if d.i >= len(d.b) {
		d.broken(d.i, cutShort)
		return false
	}
	if d.b[d.i] == closing {
		d.i++
		d.depth--
		return false
	}
	if first {
		return true
	}
	if d.b[d.i] != ',' {
		d.broken(d.i, unexpected)
		return false
	}
	if d.i = skipSpace(d.b, d.i+1); d.i >= len(d.b) {
		d.broken(d.i, cutShort)
		return false
	}
	return true
}

package wire

import (
	"bytes"
	"math"
	"strconv"
	"unicode/utf8"

	"gateway/shared/fault"
)

// Span is the place of a value in a body. The zero Span is an absent value.
type Span struct{ Start, End int }

// Of returns the bytes of the span in body; nil when it is absent.
func (s Span) Of(body []byte) []byte {
	if s.Absent() {
		return nil
	}
	return body[s.Start:s.End]
}

// Absent reports that the object does not have the key.
func (s Span) Absent() bool { return s.End == 0 }

// Present reports that the key exists, with a value other than null.
func (s Span) Present(body []byte) bool { return !s.Absent() && !IsNull(body[s.Start:s.End]) }

// IsNull reports whether raw is the literal null.
func IsNull(raw []byte) bool { return string(raw) == "null" }

// KindOf returns the kind of the JSON value raw by its first byte.
func KindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return KindNone
	}
	return kindOf[raw[0]]
}

// Kind is the kind of a JSON value.
type Kind uint8

const (
	KindNone Kind = iota // no value
	KindObject
	KindArray
	KindString
	KindNumber
	KindBool
	KindNull
)

var kindOf = func() (t [256]Kind) {
	t['{'], t['['], t['"'], t['n'], t['t'], t['f'], t['-'] = KindObject, KindArray, KindString, KindNull, KindBool, KindBool, KindNumber
	for c := '0'; c <= '9'; c++ {
		t[c] = KindNumber
	}
	return t
}()

// String names the kind as in "must be a string".
func (k Kind) String() string {
	return [...]string{"no value", "an object", "an array", "a string", "a number", "a boolean", "null"}[k]
}

func wrongKind(raw []byte, field, want string) *fault.Fault {
	return fault.Invalid(field, "%s must be %s, not %s", field, want, KindOf(raw))
}

// ScanString reads raw, a checked value, as a string. The fault names field.
func ScanString(raw []byte, field string) (string, error) {
	b, err := ScanStringBytes(raw, field)
	return string(b), err
}

// ScanStringBytes is ScanString without the copy: the result aliases raw when
// the string has no escapes.
func ScanStringBytes(raw []byte, field string) ([]byte, error) {
	if KindOf(raw) != KindString {
		return nil, wrongKind(raw, field, "a string")
	}
	in := raw[1 : len(raw)-1]
	if bytes.IndexByte(in, '\\') < 0 && utf8.Valid(in) {
		return in, nil
	}
	return appendUnescaped(nil, in), nil
}

// ScanBool reads raw, a checked value, as a boolean.
func ScanBool(raw []byte, field string) (bool, error) {
	if KindOf(raw) != KindBool {
		return false, wrongKind(raw, field, "true or false")
	}
	return raw[0] == 't', nil
}

// ScanInt parses raw, a checked value, as an integer. 5.0 and 1e3 are integers; a number
// outside int64 is rejected.
func ScanInt(raw []byte, field string) (int64, error) {
	if KindOf(raw) != KindNumber {
		return 0, wrongKind(raw, field, "a whole number")
	}
	if n, ok := parseInt(raw); ok {
		return n, nil
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && f != math.Trunc(f) {
		return 0, fault.Invalid(field, "%s must be a whole number", field)
	}
	return 0, fault.Invalid(field, "%s must be a whole number between %d and %d", field, int64(math.MinInt64), int64(math.MaxInt64))
}

// ScanFloat reads raw, a checked value, as a number.
func ScanFloat(raw []byte, field string) (float64, error) {
	if KindOf(raw) != KindNumber {
		return 0, wrongKind(raw, field, "a number")
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0, fault.Invalid(field, "%s is too large a number", field)
	}
	return f, nil
}

// parseInt reads a checked JSON number that is complete and fits.
func parseInt(raw []byte) (int64, bool) {
	if !bytes.ContainsAny(raw, ".eE") {
		n, err := strconv.ParseInt(string(raw), 10, 64)
		return n, err == nil
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

const (
	// MaxMetadataHeader is how many bytes of metadata JSON are read.
	MaxMetadataHeader = 16 << 10
	// MaxMetadataValue is how many characters a metadata value may have;
	// longer values are cut.
	MaxMetadataValue = 128
)

// ParseMetadata parses a metadata header, a JSON object. Strings are truncated to
// MaxMetadataValue characters, numbers and booleans become text, and null, arrays and
// objects are omitted. If the header is not a JSON object or is longer than
// MaxMetadataHeader, ok is false and the map is nil: the header then counts as empty. The
// caller has checked that it is UTF-8.
func ParseMetadata(header string) (metadata map[string]string, ok bool) {
	if len(header) > MaxMetadataHeader {
		return nil, false
	}
	d := NewDecoder([]byte(header))
	if d.Kind() != KindObject {
		return nil, false
	}
	metadata = map[string]string{}
	for key := range d.Object {
		if !utf8.Valid(key) {
			continue
		}
		name := string(key)
		switch d.Kind() {
		case KindString:
			metadata[name] = cutMetadata(d.Str())
		case KindNumber, KindBool:
			metadata[name] = cutMetadata(string(d.Raw()))
		}
	}
	if d.End() != nil {
		return nil, false
	}
	return metadata, true
}

// cutMetadata truncates s to MaxMetadataValue characters.
func cutMetadata(s string) string {
	if len(s) <= MaxMetadataValue {
		return s
	}
	n := 0
	for i := range s {
		if n == MaxMetadataValue {
			return s[:i]
		}
		n++
	}
	return s
}

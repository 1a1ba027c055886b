package otlp

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// field is one field of a message: its number, and its value as a number or as bytes.
type field struct {
	num int
	n   uint64
	b   []byte
}

// fields calls f for each field of a message, in its order.
func fields(b []byte, f func(field) error) error {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<29-1 {
			return errCut
		}
		b = b[n:]
		at := field{num: int(key >> 3)}
		switch key & 7 {
		case varint:
			if at.n, n = binary.Uvarint(b); n <= 0 {
				return errCut
			}
		case fixed64:
			if n = 8; len(b) < n {
				return errCut
			}
			at.n = binary.LittleEndian.Uint64(b)
		case bytes:
			size, head := binary.Uvarint(b)
			if head <= 0 || size > uint64(len(b)-head) {
				return errCut
			}
			n = head + int(size)
			at.b = b[head:n]
		case fixed32:
			if n = 4; len(b) < n {
				return errCut
			}
			at.n = uint64(binary.LittleEndian.Uint32(b))
		default:
			return errCut // none of these messages has groups
		}
		if err := f(at); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

const fixed32 = 5

// within calls f for the fields of each message of a field.
func within(b []byte, num int, f func([]byte) error) error {
	return fields(b, func(x field) error {
		if x.num != num {
			return nil
		}
		return f(x.b)
	})
}

// ReadTraces reads an ExportTraceServiceRequest in protobuf.
func ReadTraces(b []byte) ([]ReceivedSpan, error) { return readAll(b, readSpan) }

// ReadLogs reads an ExportLogsServiceRequest in protobuf.
func ReadLogs(b []byte) ([]ReceivedSpan, error) { return readAll(b, readRecord) }

// readAll reads resources and scopes, which have the same field numbers in both requests.
func readAll(b []byte, read func([]byte, *ReceivedSpan) error) (out []ReceivedSpan, err error) {
	err = within(b, 1, func(of []byte) error {
		var origin []Attr
		if err := within(of, 1, func(r []byte) (err error) {
			origin, err = readAttrs(r, 1)
			return err
		}); err != nil {
			return err
		}
		return within(of, 2, func(scope []byte) error {
			from := ReceivedSpan{Origin: origin}
			if err := within(scope, 1, func(b []byte) error { return readScope(b, &from) }); err != nil {
				return err
			}
			return within(scope, 2, func(one []byte) error {
				if len(out) == MaxRecords {
					return errMany
				}
				out = append(out, from)
				return read(one, &out[len(out)-1])
			})
		})
	})
	return out, err
}

func readScope(b []byte, t *ReceivedSpan) error {
	return fields(b, func(x field) error {
		switch x.num {
		case 1:
			t.Scope = plain(x.b)
		case 2:
			t.Version = plain(x.b)
		}
		return nil
	})
}

func readSpan(b []byte, t *ReceivedSpan) (err error) {
	if t.Attrs, err = readAttrs(b, 9); err != nil {
		return err
	}
	return fields(b, func(x field) error {
		switch x.num {
		case 1:
			t.Trace = t.rawID(x.b, traceLen)
		case 2:
			t.ID = t.rawID(x.b, spanLen)
		case 4:
			t.Parent = t.rawID(x.b, spanLen)
		case 5:
			t.Name = plain(x.b)
		case 7:
			t.Start = at(x.n)
		case 8:
			t.End = at(x.n)
		case 11:
			return readEvent(x.b, t)
		case 15:
			return fields(x.b, func(s field) error {
				switch s.num {
				case 2:
					t.Message = plain(s.b)
				case 3:
					t.Status = int(s.n & 3)
				}
				return nil
			})
		}
		return nil
	})
}

func readEvent(b []byte, t *ReceivedSpan) (err error) {
	if len(t.Events) == maxEvents {
		return errEvents
	}
	var e ReceivedEvent
	if e.Attrs, err = readAttrs(b, 3); err != nil {
		return err
	}
	err = within(b, 2, func(name []byte) error { e.Name = plain(name); return nil })
	t.Events = append(t.Events, e)
	return err
}

func readRecord(b []byte, t *ReceivedSpan) (err error) {
	if t.Attrs, err = readAttrs(b, 6); err != nil {
		return err
	}
	var observed uint64
	err = fields(b, func(x field) (err error) {
		switch x.num {
		case 1:
			t.Start = at(x.n)
		case 5:
			t.Body, err = readValue(x.b, 0)
		case 9:
			t.Trace = t.rawID(x.b, traceLen)
		case 10:
			t.ID = t.rawID(x.b, spanLen)
		case 11:
			observed = x.n
		case 12:
			t.Name = plain(x.b)
		}
		return err
	})
	if t.Start.IsZero() {
		t.Start = at(observed)
	}
	t.End = t.Start
	return err
}

// readAttrs reads the attributes of a message, which are in the field num.
func readAttrs(b []byte, num int) (out []Attr, err error) {
	err = within(b, num, func(pair []byte) error {
		if len(out) == maxAttrs {
			return errAttrs
		}
		if out == nil {
			out = make([]Attr, 0, usualAttrs)
		}
		one, err := readPair(pair, 0)
		out = append(out, one)
		return err
	})
	return out, err
}

// readPairs reads a list of keys and values within a value.
func readPairs(b []byte, depth int) (map[string]any, error) {
	out := map[string]any{}
	err := within(b, 1, func(pair []byte) error {
		if len(out) == maxAttrs {
			return errAttrs
		}
		one, err := readPair(pair, depth)
		out[one.Key] = one.Value
		return err
	})
	return out, err
}

func readPair(pair []byte, depth int) (a Attr, err error) {
	err = fields(pair, func(x field) (err error) {
		switch x.num {
		case 1:
			a.Key = plain(x.b)
		case 2:
			a.Value, err = readValue(x.b, depth)
		}
		return err
	})
	return a, err
}

// readValue reads an AnyValue; nil for one that is empty.
func readValue(b []byte, depth int) (v any, err error) {
	if depth > maxNested {
		return nil, errNested
	}
	err = fields(b, func(x field) (err error) {
		switch x.num {
		case 1:
			v = plain(x.b)
		case 2:
			v = x.n != 0
		case 3:
			v = int64(x.n)
		case 4:
			f := math.Float64frombits(x.n)
			if v = f; math.IsNaN(f) || math.IsInf(f, 0) {
				v = strconv.FormatFloat(f, 'g', -1, 64) // JSON has no such number
			}
		case 5:
			list := []any{}
			err = within(x.b, 1, func(one []byte) error {
				value, err := readValue(one, depth+1)
				list = append(list, value)
				return err
			})
			v = list
		case 6:
			v, err = readPairs(x.b, depth+1)
		case 7:
			v = base64.StdEncoding.EncodeToString(x.b)
		}
		return err
	})
	return v, err
}

// plain is a text in which invalid UTF-8 is replaced.
func plain(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}

// ReceivedSpan is a span or a log record received from another system. Values of attributes are
// strings, bools, int64, float64, []any and map[string]any; bytes become base64.
// Attributes are in the order in which they were sent; a key may occur twice.
type ReceivedSpan struct {
	Origin            []Attr    // attributes of the resource
	Scope, Version    string    // of the instrumentation that reports it
	Trace, ID, Parent string    // lower-case hexadecimal; "": none, or one of zeros only
	BadID             bool      // one of them is no id: not hexadecimal, or of another length
	Name              string    // of the span, or of the log's event
	Start, End        time.Time // the same for a log record; zero: not given
	Attrs             []Attr
	Events            []ReceivedEvent
	Status            int // StatusOK, StatusError, or 0
	Message           string
	Body              any // of a log record
}

// ReceivedEvent is something that happened within a span.
type ReceivedEvent struct {
	Name  string
	Attrs []Attr
}

// Text returns the text of an attribute; "" if there is none.
func Text(attrs []Attr, key string) string {
	for i := range attrs {
		if attrs[i].Key == key {
			s, _ := attrs[i].Value.(string)
			return s
		}
	}
	return ""
}

// Limits of a request. A request that exceeds one of them is rejected completely.
const (
	MaxRecords = 1000 // spans or log records of a request
	maxAttrs   = 512  // of one thing
	maxEvents  = 256  // of a span
	maxNested  = 16   // nesting of lists and maps

	usualAttrs = 16 // initial capacity of attributes
)

var (
	errCut    = errors.New("is truncated, or is not a protobuf of this message")
	errAttrs  = fmt.Errorf("has more than %d attributes in one place", maxAttrs)
	errEvents = fmt.Errorf("has more than %d events in a span", maxEvents)
	errNested = fmt.Errorf("nests values deeper than %d", maxNested)
	errMany   = fmt.Errorf("has more than %d entries; make the exporter's batches smaller", MaxRecords)
)

func at(nanoseconds uint64) time.Time {
	if nanoseconds == 0 || nanoseconds > 1<<63-1 {
		return time.Time{}
	}
	return time.Unix(0, int64(nanoseconds)).UTC()
}

// Lengths of ids in bytes.
const (
	traceLen = 16
	spanLen  = 8
)

// hexID reads an id of n bytes in hexadecimal, in either case.
func (t *ReceivedSpan) hexID(text []byte, n int) string {
	if len(text) == 0 {
		return ""
	}
	var b [traceLen]byte
	if len(text) != 2*n {
		t.BadID = true
		return ""
	}
	if _, err := hex.Decode(b[:], text); err != nil {
		t.BadID = true
		return ""
	}
	return t.rawID(b[:n], n)
}

// rawID reads an id of n bytes.
func (t *ReceivedSpan) rawID(b []byte, n int) string {
	if len(b) != n {
		t.BadID = t.BadID || len(b) > 0
		return ""
	}
	for _, c := range b {
		if c != 0 {
			return hex.EncodeToString(b)
		}
	}
	return ""
}

// Rejected is the response, in protobuf, to a request of which n entries were not accepted;
// it is empty if all were. The answers to both requests have the same shape.
func Rejected(n int, why string) []byte {
	if n == 0 {
		return []byte{}
	}
	return message(nil, 1, func(b []byte) []byte { return text(number(b, 1, uint64(n)), 2, why) })
}

// RejectedStatus is a google.rpc.Status in protobuf, the response to a rejected request.
func RejectedStatus(code int, why string) []byte { return text(number(nil, 1, uint64(code)), 2, why) }

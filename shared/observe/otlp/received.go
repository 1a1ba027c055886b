package otlp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

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
	MaxTold   = 1000 // spans or log records of a request
	maxAttrs  = 512  // of one thing
	maxEvents = 256  // of a span
	maxNested = 16   // nesting of lists and maps

	usualAttrs = 16 // initial capacity of attributes
)

var (
	errCut    = errors.New("is truncated, or is not a protobuf of this message")
	errAttrs  = fmt.Errorf("has more than %d attributes in one place", maxAttrs)
	errEvents = fmt.Errorf("has more than %d events in a span", maxEvents)
	errNested = fmt.Errorf("nests values deeper than %d", maxNested)
	errMany   = fmt.Errorf("has more than %d entries; make the exporter's batches smaller", MaxTold)
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

// Rejected is the answer, in protobuf, to a request of which n entries were not accepted;
// it is empty if all were. The answers to both requests have the same shape.
func Rejected(n int, why string) []byte {
	if n == 0 {
		return []byte{}
	}
	return message(nil, 1, func(b []byte) []byte { return text(number(b, 1, uint64(n)), 2, why) })
}

// Refused is a google.rpc.Status in protobuf, the answer to a rejected request.
func Refused(code int, why string) []byte { return text(number(nil, 1, uint64(code)), 2, why) }

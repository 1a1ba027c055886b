package otlp

import (
	stdbytes "bytes"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// jsonReader reads requests in the JSON form of OTLP: names in camel case, ids in
// hexadecimal, 64-bit numbers as strings or numbers. Unknown fields are skipped, and null is
// the same as an absent field.
type jsonReader struct {
	dec  *wire.Decoder
	keys map[string]string // attribute keys seen so far, so that each is allocated once
}

// maxKeys limits jsonReader.keys.
const maxKeys = 1 << 10

// ReadJSONTraces reads an ExportTraceServiceRequest in JSON.
func ReadJSONTraces(b []byte) ([]ReceivedSpan, error) {
	return readJSON(b, [...]string{"resourceSpans", "scopeSpans", "spans"}, (*jsonReader).span)
}

// ReadJSONLogs reads an ExportLogsServiceRequest in JSON.
func ReadJSONLogs(b []byte) ([]ReceivedSpan, error) {
	return readJSON(b, [...]string{"resourceLogs", "scopeLogs", "logRecords"}, (*jsonReader).record)
}

// readJSON goes through resources and scopes, which have the same form in both requests.
// names are the fields of resources, scopes and entries.
func readJSON(b []byte, names [3]string, read func(*jsonReader, *ReceivedSpan)) (out []ReceivedSpan, err error) {
	if !utf8.Valid(b) {
		return nil, fault.Invalid("", "The body is not valid UTF-8")
	}
	if wire.KindOf(stdbytes.TrimSpace(b)) != wire.KindObject {
		return nil, fault.Invalid("", "The body must be a JSON object")
	}
	r := &jsonReader{wire.NewDecoder(b), map[string]string{}}
	r.fields(func(key []byte) {
		if string(key) != names[0] {
			return
		}
		r.list(func() {
			// The resource may come after its spans.
			first := len(out)
			var origin []Attr
			r.fields(func(key []byte) {
				switch string(key) {
				case "resource":
					r.fields(func(key []byte) {
						if string(key) == "attributes" {
							origin = r.attrs()
						}
					})
				case names[1]:
					r.list(func() { out = r.scope(out, names[2], read) })
				}
			})
			for i := first; i < len(out); i++ {
				out[i].Origin = origin
			}
		})
	})
	if err := r.dec.End(); err != nil {
		return nil, err
	}
	return out, nil
}

// scope appends the entries of one instrumentation.
func (r *jsonReader) scope(out []ReceivedSpan, entries string, read func(*jsonReader, *ReceivedSpan)) []ReceivedSpan {
	first := len(out)
	var of ReceivedSpan
	r.fields(func(key []byte) {
		switch string(key) {
		case "scope":
			r.fields(func(key []byte) {
				switch string(key) {
				case "name":
					of.Scope = r.dec.Str()
				case "version":
					of.Version = r.dec.Str()
				}
			})
		case entries:
			r.list(func() {
				if len(out) == MaxRecords {
					r.dec.FailWith(errMany)
					return
				}
				out = append(out, ReceivedSpan{})
				read(r, &out[len(out)-1])
			})
		}
	})
	for i := first; i < len(out); i++ {
		out[i].Scope, out[i].Version = of.Scope, of.Version
	}
	return out
}

// fields calls f for each field of an object with a value that is not null. A field may not
// occur twice: readers would disagree about which of them counts.
func (r *jsonReader) fields(f func(key []byte)) {
	var seen [24]string
	n := 0
	for key := range r.dec.Object {
		for i := range n {
			if seen[i] == string(key) {
				r.dec.Fail("has the field %.40q twice", key)
				return
			}
		}
		if n < len(seen) {
			seen[n] = r.key(key)
			n++
		}
		if !r.dec.Null() {
			f(key)
		}
	}
}

// list calls f for each element of an array.
func (r *jsonReader) list(f func()) {
	for range r.dec.Array {
		f()
	}
}

// key returns a key as a string.
func (r *jsonReader) key(b []byte) string {
	if known, ok := r.keys[string(b)]; ok {
		return known
	}
	s := string(b)
	if len(r.keys) < maxKeys {
		r.keys[s] = s
	}
	return s
}

func (r *jsonReader) span(t *ReceivedSpan) {
	r.fields(func(key []byte) {
		switch string(key) {
		case "traceId":
			t.Trace = t.hexID(r.dec.Bytes(), traceLen)
		case "spanId":
			t.ID = t.hexID(r.dec.Bytes(), spanLen)
		case "parentSpanId":
			t.Parent = t.hexID(r.dec.Bytes(), spanLen)
		case "name":
			t.Name = r.dec.Str()
		case "startTimeUnixNano":
			t.Start = r.time()
		case "endTimeUnixNano":
			t.End = r.time()
		case "attributes":
			t.Attrs = r.attrs()
		case "events":
			r.list(func() { r.event(t) })
		case "status":
			r.fields(func(key []byte) {
				switch string(key) {
				case "message":
					t.Message = r.dec.Str()
				case "code":
					t.Status = r.code()
				}
			})
		}
	})
}

func (r *jsonReader) event(t *ReceivedSpan) {
	if len(t.Events) == maxEvents {
		r.dec.FailWith(errEvents)
		return
	}
	var e ReceivedEvent
	r.fields(func(key []byte) {
		switch string(key) {
		case "name":
			e.Name = r.dec.Str()
		case "attributes":
			e.Attrs = r.attrs()
		}
	})
	t.Events = append(t.Events, e)
}

func (r *jsonReader) record(t *ReceivedSpan) {
	var observed time.Time
	r.fields(func(key []byte) {
		switch string(key) {
		case "timeUnixNano":
			t.Start = r.time()
		case "observedTimeUnixNano":
			observed = r.time()
		case "eventName":
			t.Name = r.dec.Str()
		case "body":
			t.Body = r.value(0)
		case "attributes":
			t.Attrs = r.attrs()
		case "traceId":
			t.Trace = t.hexID(r.dec.Bytes(), traceLen)
		case "spanId":
			t.ID = t.hexID(r.dec.Bytes(), spanLen)
		}
	})
	if t.Start.IsZero() {
		t.Start = observed
	}
	t.End = t.Start
}

// number returns the digits of a number, which may be written as a string.
func (r *jsonReader) number() []byte {
	if r.dec.Kind() == wire.KindString {
		return r.dec.Bytes()
	}
	return r.dec.Num()
}

func (r *jsonReader) int() int64 {
	raw := r.number()
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil && r.dec.Err() == nil {
		r.dec.Fail("must be a whole number of 64 bits, not %.40q", raw)
	}
	return n
}

func (r *jsonReader) time() time.Time { return at(uint64(r.int())) }

// code is a status: a number, or its name.
func (r *jsonReader) code() int {
	switch string(r.number()) {
	case "1", "STATUS_CODE_OK":
		return StatusOK
	case "2", "STATUS_CODE_ERROR":
		return StatusError
	}
	return 0
}

func (r *jsonReader) attrs() (out []Attr) {
	for range r.dec.Array {
		if len(out) == maxAttrs {
			r.dec.FailWith(errAttrs)
			return nil
		}
		if out == nil {
			out = make([]Attr, 0, usualAttrs)
		}
		out = append(out, r.pair(0))
	}
	return out
}

func (r *jsonReader) pair(depth int) (a Attr) {
	for key := range r.dec.Object {
		switch string(key) {
		case "key":
			a.Key = r.key(r.dec.Bytes())
		case "value":
			if !r.dec.Null() {
				a.Value = r.value(depth)
			}
		}
	}
	return a
}

// value reads an AnyValue; nil for an empty one.
func (r *jsonReader) value(depth int) (v any) {
	if depth > maxNested {
		r.dec.FailWith(errNested)
		return nil
	}
	for key := range r.dec.Object {
		if r.dec.Null() {
			continue
		}
		switch string(key) {
		case "stringValue", "bytesValue":
			v = r.dec.Str()
		case "boolValue":
			v = r.dec.Bool()
		case "intValue":
			v = r.int()
		case "doubleValue":
			v = r.real()
		case "arrayValue":
			list := []any{}
			r.fields(func(key []byte) {
				if string(key) == "values" {
					r.list(func() { list = append(list, r.value(depth+1)) })
				}
			})
			v = list
		case "kvlistValue":
			pairs := map[string]any{}
			r.fields(func(key []byte) {
				if string(key) == "values" {
					r.list(func() {
						if len(pairs) == maxAttrs {
							r.dec.FailWith(errAttrs)
							return
						}
						one := r.pair(depth + 1)
						pairs[one.Key] = one.Value
					})
				}
			})
			v = pairs
		}
	}
	return v
}

// real reads a number. Numbers that JSON cannot have are strings, and stay strings.
func (r *jsonReader) real() any {
	raw := string(r.number())
	x, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return strings.Clone(raw)
	}
	return x
}

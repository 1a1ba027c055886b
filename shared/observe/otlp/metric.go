package otlp

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// Metric is a counter or, with Bounds, a histogram of the time from Start to End. Each
// request only reports the increase, unless the metric is Cumulative.
type Metric struct {
	Name, Unit, Doc string
	Bounds          []float64 // of a histogram's buckets, ascending; nil for a counter
	Points          []Point
	Cumulative      bool // points count from the start of the process, not from the point before
}

// Add adds what another point of the same series has counted.
func (p *Point) Add(o *Point) {
	if o.Start.Before(p.Start) {
		p.Start = o.Start
	}
	if o.End.After(p.End) {
		p.End = o.End
	}
	if o.Count > 0 && p.Count > 0 {
		p.Min, p.Max = min(p.Min, o.Min), max(p.Max, o.Max)
	}
	p.Sum, p.Count = p.Sum+o.Sum, p.Count+o.Count
	for i := range min(len(p.Buckets), len(o.Buckets)) {
		p.Buckets[i] += o.Buckets[i]
	}
}

// Point is the values of one set of attributes.
type Point struct {
	Attrs      []Attr
	Start, End time.Time
	Sum        float64 // an integer for a counter
	Count      uint64
	Min, Max   float64
	Buckets    []uint64 // one more than Bounds
}

// Observe adds a value to a point of a histogram.
func (p *Point) Observe(x float64, bounds []float64) {
	if p.Buckets == nil {
		p.Buckets = make([]uint64, len(bounds)+1)
		p.Min, p.Max = x, x
	}
	p.Sum, p.Count, p.Min, p.Max = p.Sum+x, p.Count+1, min(p.Min, x), max(p.Max, x)
	at, _ := slices.BinarySearch(bounds, x) // a bound belongs to the bucket below it
	p.Buckets[at]++
}

// Temporalities of values.
const (
	delta      = 1
	cumulative = 2
)

func (m *Metric) temporality() uint64 {
	if m.Cumulative {
		return cumulative
	}
	return delta
}

// Metrics is an ExportMetricsServiceRequest.
func Metrics(o *Origin, metrics []Metric) []byte {
	return o.request(func(b []byte) []byte {
		for i := range metrics {
			b = message(b, 2, metrics[i].append)
		}
		return b
	})
}

func (m *Metric) append(b []byte) []byte {
	b = text(text(text(b, 1, m.Name), 2, m.Doc), 3, m.Unit)
	if m.Bounds == nil {
		return message(b, 7, func(b []byte) []byte {
			for i := range m.Points {
				b = message(b, 1, m.Points[i].count)
			}
			return number(number(b, 2, m.temporality()), 3, 1) // it only increases
		})
	}
	return message(b, 9, func(b []byte) []byte {
		for i := range m.Points {
			b = message(b, 1, func(b []byte) []byte { return m.Points[i].spread(b, m.Bounds) })
		}
		return number(b, 2, m.temporality())
	})
}

// count is a NumberDataPoint.
func (p *Point) count(b []byte) []byte {
	b = instant(instant(b, 2, p.Start), 3, p.End)
	return attributes(word(b, 6, uint64(int64(p.Sum))), 7, p.Attrs)
}

// spread is a HistogramDataPoint.
func (p *Point) spread(b []byte, bounds []float64) []byte {
	b = instant(instant(b, 2, p.Start), 3, p.End)
	b = real(word(b, 4, p.Count), 5, p.Sum)
	b = message(b, 6, func(b []byte) []byte {
		for _, n := range p.Buckets {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	})
	b = message(b, 7, func(b []byte) []byte {
		for _, x := range bounds {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		return b
	})
	return real(real(attributes(b, 9, p.Attrs), 11, p.Min), 12, p.Max)
}

// Wire types of protobuf.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
)

func tag(b []byte, field, wire int) []byte {
	return binary.AppendUvarint(b, uint64(field<<3|wire))
}

// message appends what fill appends as one field.
func message(b []byte, field int, fill func([]byte) []byte) []byte {
	return raw(b, field, fill(nil))
}

func raw(b []byte, field int, v []byte) []byte {
	return append(binary.AppendUvarint(tag(b, field, bytes), uint64(len(v))), v...)
}

// text appends a string, unless it is empty, which is the default.
func text(b []byte, field int, s string) []byte {
	if s == "" {
		return b
	}
	return append(binary.AppendUvarint(tag(b, field, bytes), uint64(len(s))), s...)
}

func number(b []byte, field int, n uint64) []byte {
	if n == 0 {
		return b
	}
	return binary.AppendUvarint(tag(b, field, varint), n)
}

func word(b []byte, field int, n uint64) []byte {
	return binary.LittleEndian.AppendUint64(tag(b, field, fixed64), n)
}

func real(b []byte, field int, x float64) []byte { return word(b, field, math.Float64bits(x)) }

func instant(b []byte, field int, t time.Time) []byte { return word(b, field, uint64(t.UnixNano())) }

// Attr is an attribute. Its value is a string, bool, int64, float64 or []string.
type Attr struct {
	Key   string
	Value any
}

// Fields of KeyValue and AnyValue.
func (a *Attr) append(b []byte) []byte {
	return message(text(b, 1, a.Key), 2, func(b []byte) []byte { return anyValue(b, a.Value) })
}

func anyValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(binary.AppendUvarint(tag(b, 1, bytes), uint64(len(v))), v...)
	case bool:
		n := uint64(0)
		if v {
			n = 1
		}
		return binary.AppendUvarint(tag(b, 2, varint), n)
	case int64:
		return binary.AppendUvarint(tag(b, 3, varint), uint64(v))
	case float64:
		return real(b, 4, v)
	case []string:
		return message(b, 5, func(b []byte) []byte {
			for _, s := range v {
				b = message(b, 1, func(b []byte) []byte { return anyValue(b, s) })
			}
			return b
		})
	}
	return b
}

func attributes(b []byte, field int, attrs []Attr) []byte {
	for i := range attrs {
		b = message(b, field, attrs[i].append)
	}
	return b
}

// Origin is the sender: the resource's attributes, and the name and version of the
// instrumentation.
type Origin struct {
	Resource      []Attr
	Name, Version string
	Schema        string // URL of the schema of its names; "" for none
}

// request appends the parts that both requests have around their spans or metrics.
func (o *Origin) request(fill func([]byte) []byte) []byte {
	return message(nil, 1, func(b []byte) []byte {
		b = message(b, 1, func(b []byte) []byte { return attributes(b, 1, o.Resource) })
		return message(b, 2, func(b []byte) []byte {
			b = message(b, 1, func(b []byte) []byte { return text(text(b, 1, o.Name), 2, o.Version) })
			return text(fill(b), 3, o.Schema)
		})
	})
}

// Kinds of spans.
const (
	KindInternal = 1
	KindServer   = 2
	KindClient   = 3
)

// Codes of a span's status.
const (
	StatusOK    = 1
	StatusError = 2
)

// Span is one span. Parent is all zero for a root.
type Span struct {
	Trace      [16]byte
	ID, Parent [8]byte
	Name       string
	Kind       int
	Start, End time.Time
	Attrs      []Attr
	Events     []Event
	Status     int
	Message    string // of the status
}

// Event is something that happened at a time within a span.
type Event struct {
	At    time.Time
	Name  string
	Attrs []Attr
}

// Traces is an ExportTraceServiceRequest.
func Traces(o *Origin, spans []Span) []byte {
	return o.request(func(b []byte) []byte {
		for i := range spans {
			b = message(b, 2, spans[i].append)
		}
		return b
	})
}

// sampled is the flag of a span that is recorded.
const sampled = 1

func (s *Span) append(b []byte) []byte {
	b = raw(raw(b, 1, s.Trace[:]), 2, s.ID[:])
	if s.Parent != [8]byte{} {
		b = raw(b, 4, s.Parent[:])
	}
	b = number(text(b, 5, s.Name), 6, uint64(s.Kind))
	b = instant(instant(b, 7, s.Start), 8, s.End)
	b = attributes(b, 9, s.Attrs)
	for i := range s.Events {
		e := &s.Events[i]
		b = message(b, 11, func(b []byte) []byte { return attributes(text(instant(b, 1, e.At), 2, e.Name), 3, e.Attrs) })
	}
	b = message(b, 15, func(b []byte) []byte { return number(text(b, 2, s.Message), 3, uint64(s.Status)) })
	return binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, 16<<3|5), sampled)
}

package otlp

import (
	"encoding/binary"
	"time"
)

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

// Package events splits a stream of server-sent events into complete events without
// copying them, so that a dialect can inspect a stream while forwarding it.
package events

import (
	"bytes"
	"sync"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Event is one complete event of a stream.
type Event struct {
	// Raw is the event unchanged, with its closing blank line. It may be changed in
	// place.
	Raw []byte
	// Name is the value of the event line; nil when there is none.
	Name []byte
	// Data is the data; it is a part of Raw if the event has one data line.
	Data []byte
	// At is where Data starts in Raw, -1 if it has several lines.
	At int
}

// Splitter cuts bytes into events. The zero Splitter is ready.
type Splitter struct {
	in     []byte  // what has not been read
	own    []byte  // the splitter's buffer, which contains in if held is set
	pooled *[]byte // own, when it comes from the pool
	held   bool
	line   int // of in: start of the line that has not ended
	seen   int // of in: up to here no line end was found
	joined []byte
	eol    byte // line end: '\n' (also after '\r'), or '\r' alone; 0 if unknown yet
	began  bool
}

// Feed returns the splitter the next bytes, which it may change. Then Next must be called
// until it is false; after that the caller may use the bytes again.
func (s *Splitter) Feed(in []byte) error {
	if len(s.in) == 0 {
		s.in, s.held = in, false
		return nil
	}
	if len(s.in)+len(in) > wire.DefaultMaxEvent {
		return fault.Newf(fault.InvalidProviderResponse, "", "The provider sent a stream event of more than %d bytes", wire.DefaultMaxEvent)
	}
	s.copyUnread()
	if need := len(s.in) + len(in); need > cap(s.own) {
		s.widen(need)
	}
	// in may follow bytes that were already read: it moves to the front.
	n := copy(s.own[:cap(s.own)], s.in)
	s.own = append(s.own[:n], in...)
	s.in = s.own
	return nil
}

// Larger buffers are reused by later streams: a fast stream needs one for the piece of an
// event between two reads.
const (
	smallOwn = 4 << 10
	largeOwn = 64 << 10
)

var owned = sync.Pool{New: func() any { b := make([]byte, 0, largeOwn); return &b }}

// widen returns own with capacity for n bytes. It copies in, and drops other content of
// own.
func (s *Splitter) widen(n int) {
	old := s.pooled
	s.pooled = nil
	switch {
	case n <= smallOwn:
		s.own = make([]byte, 0, max(n, 2*cap(s.own)))
	case n <= largeOwn:
		s.pooled = owned.Get().(*[]byte)
		s.own = (*s.pooled)[:0]
	default:
		s.own = make([]byte, 0, n+n/4)
	}
	s.own = append(s.own, s.in...)
	s.in = s.own
	if old != nil {
		owned.Put(old)
	}
}

// copyUnread copies the unread bytes, which belong to the caller.
func (s *Splitter) copyUnread() {
	if s.held || len(s.in) == 0 {
		return
	}
	s.own = append(s.own[:0], s.in...)
	s.in, s.held = s.own, true
}

// Next returns the next complete event; false if more bytes are needed.
func (s *Splitter) Next(e *Event) bool {
	if s.eol == 0 && !s.findEOL() {
		s.copyUnread()
		return false
	}
	end := s.eventEnd()
	if end == 0 {
		s.copyUnread()
		return false
	}
	s.take(e, end)
	return true
}

// Last returns the remainder at the end of the stream, an event without its blank line;
// false if there is none. No more bytes may be fed afterwards.
func (s *Splitter) Last(e *Event) bool {
	if len(s.in) == 0 {
		if s.pooled != nil { // nothing that was given out is valid any longer
			owned.Put(s.pooled)
			s.in, s.own, s.pooled = nil, nil, nil
		}
		return false
	}
	if s.eol == 0 {
		s.eol = '\n'
	}
	s.take(e, len(s.in))
	return true
}

func (s *Splitter) take(e *Event, end int) {
	raw := s.in[:end:end]
	s.in = s.in[end:]
	s.line, s.seen = 0, 0
	s.parse(e, raw)
	s.began = true
}

// findEOL learns the line end from the first line.
func (s *Splitter) findEOL() bool {
	for i, c := range s.in[s.seen:] {
		if c != '\n' && c != '\r' {
			continue
		}
		at := s.seen + i
		s.seen = at
		switch {
		case c == '\n':
			s.eol = '\n'
		case at+1 == len(s.in):
			return false
		case s.in[at+1] == '\n':
			s.eol = '\n'
		default:
			s.eol = '\r'
		}
		return true
	}
	s.seen = len(s.in)
	return false
}

// eventEnd is the index after the blank line that ends the first event of in; 0 when it has
// not come. Bytes are not searched twice.
func (s *Splitter) eventEnd() int {
	for {
		n := bytes.IndexByte(s.in[s.seen:], s.eol)
		if n < 0 {
			s.seen = len(s.in)
			return 0
		}
		end := s.seen + n + 1
		length := end - s.line // of the line, with its end
		s.line, s.seen = end, end
		if length == 1 || length == 2 && s.in[end-2] == '\r' {
			return end
		}
	}
}

// parse finds name and data of an event.
func (s *Splitter) parse(e *Event, raw []byte) {
	*e = Event{Raw: raw, At: -1}
	lines := 0
	i := 0
	if !s.began && bytes.HasPrefix(raw, []byte("\xef\xbb\xbf")) {
		i = 3
	}
	for i < len(raw) {
		end := bytes.IndexByte(raw[i:], s.eol)
		next := i + end + 1
		if end < 0 {
			end, next = len(raw)-i, len(raw)
		}
		line := raw[i : i+end]
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		at := i
		i = next
		switch {
		case bytes.HasPrefix(line, []byte("data:")):
			value := line[5:]
			at += 5
			if len(value) > 0 && value[0] == ' ' {
				value, at = value[1:], at+1
			}
			switch lines {
			case 0:
				e.Data, e.At = value, at
			case 1:
				s.joined = append(append(append(s.joined[:0], e.Data...), '\n'), value...)
				e.Data, e.At = s.joined, -1
			default:
				s.joined = append(append(s.joined, '\n'), value...)
				e.Data = s.joined
			}
			lines++
		case bytes.HasPrefix(line, []byte("event:")):
			e.Name = bytes.TrimPrefix(line[6:], []byte(" "))
		}
	}
}

// Output gathers, in place, the part of a stream that is sent on: it only overwrites bytes
// that have been read already.
type Output struct {
	buf []byte
	n   int
}

// Start begins a new output over the bytes that are about to be read.
func (s *Splitter) Start(o *Output) { o.buf, o.n = s.in, 0 }

// Reset begins a new output over buf.
func (o *Output) Reset(buf []byte) { o.buf, o.n = buf, 0 }

// Add appends b, a part of the input or of no more bytes than were read.
func (o *Output) Add(b []byte) {
	o.n += copy(o.buf[o.n:], b)
}

// Grow ensures capacity for n bytes more than were read.
func (o *Output) Grow(n int) {
	buf := make([]byte, len(o.buf)+n)
	copy(buf, o.buf[:o.n])
	o.buf = buf
}

// Bytes is the output so far.
func (o *Output) Bytes() []byte { return o.buf[:o.n] }

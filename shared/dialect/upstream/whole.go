package upstream

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// maxWhole bounds an answer that is gathered, in bytes.
const maxWhole = 64 << 20

// NewWhole reads the plain response of a provider that does not stream, for a client that
// wants a stream: the answer is replayed once it has come.
func NewWhole(w chat.AnswerReader, t *chat.Traits) chat.StreamDecoder { return &whole{w: w, t: t} }

type whole struct {
	Stream
	w      chat.AnswerReader
	t      *chat.Traits
	signed []chat.Signed
}

// Signed implements chat.StreamDecoder.
func (s *whole) Signed() []chat.Signed { return s.signed }

// Parser implements chat.Framed: the answer is one event.
func (*whole) Parser() chat.EventParser { return new(gather) }

// Event implements chat.StreamDecoder.
func (s *whole) Event(_ string, data []byte, emit func(*chat.Delta) error) error {
	r, err := s.w.DecodeResponse(data, s.t)
	if err != nil {
		return s.Fail(fault.From(err))
	}
	s.M, s.signed = r.Meter(), r.Signed()
	return r.Replay(emit)
}

// gather emits one event for a complete JSON object, as soon as it has arrived.
type gather struct {
	b       []byte
	depth   int
	text    bool // inside of a string
	escaped bool
	done    bool
}

// Feed implements chat.EventParser.
func (g *gather) Feed(in []byte, emit func(string, []byte) error) error {
	if g.done {
		return nil
	}
	if len(g.b)+len(in) > maxWhole {
		return fault.Newf(fault.InvalidProviderResponse, "", "The answer is larger than %d bytes", maxWhole)
	}
	g.b = append(g.b, in...)
	for _, c := range in {
		switch {
		case g.escaped:
			g.escaped = false
		case g.text:
			g.escaped, g.text = c == '\\', c != '"'
		case c == '"':
			g.text = true
		case c == '{' || c == '[':
			g.depth++
		case c == '}' || c == ']':
			if g.depth--; g.depth <= 0 {
				g.done = true
			}
		}
	}
	if !g.done {
		return nil
	}
	return emit("", g.b)
}

// End implements chat.EventParser. The decoder rejects anything but a complete object.
func (g *gather) End(emit func(string, []byte) error) error {
	if g.done || len(g.b) == 0 {
		return nil
	}
	return emit("", g.b)
}

// Lines cuts a stream of JSON objects, one a line. Lines may begin with "data:".
// At the end it gives the event EndOfStream.
type Lines struct{ b []byte }

// EndOfStream is the event that Lines and Events give at the end, for wires that
// have no terminal event of their own.
const EndOfStream = "end of stream"

// Feed implements chat.EventParser.
func (l *Lines) Feed(in []byte, emit func(string, []byte) error) error {
	for {
		n := bytes.IndexByte(in, '\n')
		if n < 0 {
			break
		}
		line := in[:n]
		if len(l.b) > 0 {
			l.b = append(l.b, line...)
			line = l.b
		}
		in = in[n+1:]
		err := l.line(line, emit)
		l.b = l.b[:0]
		if err != nil {
			return err
		}
	}
	if len(l.b)+len(in) > wire.DefaultMaxEvent {
		return fault.Newf(fault.InvalidProviderResponse, "", "The provider sent a stream event of more than %d bytes", wire.DefaultMaxEvent)
	}
	l.b = append(l.b, in...)
	return nil
}

func (*Lines) line(line []byte, emit func(string, []byte) error) error {
	line = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(line), []byte("data:")))
	if len(line) == 0 {
		return nil
	}
	return emit("", line)
}

// End implements chat.EventParser.
func (l *Lines) End(emit func(string, []byte) error) error {
	if err := l.line(l.b, emit); err != nil {
		return err
	}
	return emit(EndOfStream, nil)
}

// Events is the parser of server-sent events. It gives an EndOfStream after them.
type Events struct{ wire.SSEParser }

// End implements chat.EventParser.
func (e *Events) End(emit func(string, []byte) error) error {
	if err := e.SSEParser.End(emit); err != nil {
		return err
	}
	return emit(EndOfStream, nil)
}

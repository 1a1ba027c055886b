package upstream

import (
	"bytes"
	"io"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/events"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// maxWhole bounds a response that is gathered, in bytes.
const maxWhole = 64 << 20

// NewBufferedDecoder reads the plain response of a provider that does not stream, for a client that
// wants a stream: the response is replayed once it has come.
func NewBufferedDecoder(w chat.ResponseReader, t *chat.Traits) chat.StreamDecoder {
	return &whole{w: w, t: t}
}

type whole struct {
	Stream
	w      chat.ResponseReader
	t      *chat.Traits
	signed []chat.Signed
}

// Signed implements chat.StreamDecoder.
func (s *whole) Signed() []chat.Signed { return s.signed }

// Parser implements chat.Framed: the response is one event.
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
		return fault.Newf(fault.InvalidProviderResponse, "", "The response is larger than %d bytes", maxWhole)
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

// Passer meters responses of d that are forwarded: by d itself if it can, otherwise by
// decoding. It is nil for nil.
func Passer(d chat.Provider) chat.Passer {
	if d == nil {
		return nil
	}
	if own, ok := d.(chat.Passer); ok {
		return own
	}
	return passer{d}
}

type passer struct{ d chat.ResponseReader }

// MeterResponse implements chat.Passer.
func (p passer) MeterResponse(body []byte) chat.Meter { return Meter(p.d, body) }

// NewStreamFilter implements chat.Passer.
func (p passer) NewStreamFilter(*chat.FilterOptions) chat.StreamFilter {
	return NewFilter(p.d.NewStreamDecoder(&chat.Traits{}))
}

// Meter reads what accounting need of a plain response by decoding it.
func Meter(d chat.ResponseReader, body []byte) chat.Meter {
	r, err := d.DecodeResponse(body, &chat.Traits{})
	if err != nil {
		return chat.Meter{Err: fault.From(err)}
	}
	return r.Meter()
}

// Filter forwards a stream and meters it with the decoder of its dialect. An event that
// the decoder cannot read ends the stream. It is dropped, unless the stream has a
// separate framing.
type Filter struct {
	dec    chat.StreamDecoder
	parser chat.EventParser // of streams that are not server-sent events
	split  events.Splitter
	out    events.Output
	began  bool
	failed bool // an error was seen
	passed bool // and it is the provider's own, which has been given out
}

// NewFilter returns a filter for the stream that dec reads.
func NewFilter(dec chat.StreamDecoder) *Filter {
	f := &Filter{dec: dec}
	if framed, ok := dec.(chat.Framed); ok {
		f.parser = framed.Parser()
	}
	return f
}

// Meter implements chat.StreamFilter.
func (f *Filter) Meter() chat.Meter { return f.dec.Meter() }

// Passed implements chat.StreamFilter.
func (f *Filter) Passed() bool { return f.passed }

func ignore(*chat.Delta) error { return nil }

func (f *Filter) event(name string, data []byte) error { return f.dec.Event(name, data, ignore) }

// fail notes the error of an event.
func (f *Filter) fail(err error) {
	if err != nil {
		f.failed, f.passed = true, fault.From(err).Code != fault.InvalidProviderResponse
	}
}

// Feed implements chat.StreamFilter.
func (f *Filter) Feed(in []byte) ([]byte, error) {
	if f.failed {
		return nil, nil
	}
	if f.parser != nil {
		from := 0
		if !f.began { // it may be the end of a binary stream that was cut at any place
			from = max(0, wire.EventStreamStart(in))
			f.began = len(in) > 0
		}
		f.fail(f.parser.Feed(in[from:], f.event))
		return in, nil
	}
	if err := f.split.Feed(in); err != nil {
		return nil, err
	}
	f.split.Start(&f.out)
	var e events.Event
	for !f.failed && f.split.Next(&e) {
		if f.look(&e) {
			f.out.Add(e.Raw)
		}
	}
	return f.out.Bytes(), nil
}

// End implements chat.StreamFilter.
func (f *Filter) End() []byte {
	if f.failed {
		return nil
	}
	if f.parser != nil {
		f.fail(f.parser.End(f.event))
		_ = f.dec.End()
		return nil
	}
	var e events.Event
	if !f.split.Last(&e) {
		_ = f.dec.End()
		return nil
	}
	found := f.look(&e)
	defer func() { _ = f.dec.End() }()
	if found && (f.dec.Meter().Complete || f.failed) {
		return append([]byte(nil), e.Raw...)
	}
	return nil // a piece of an event: the stream was cut
}

// look meters one event and reports whether it is for the client.
func (f *Filter) look(e *events.Event) bool {
	if e.Data != nil {
		f.fail(f.event(string(e.Name), e.Data))
	}
	return !f.failed || f.passed
}

// Stream is what decoders of streams have in common: the meter, the first and the last
// delta, and pieces in valid UTF-8. A decoder embeds it and adds Event.
type Stream struct {
	M       chat.Meter
	D       wire.Decoder
	out     chat.Delta
	scratch []byte
	began   bool
	stopped bool
}

// Meter implements chat.StreamDecoder.
func (s *Stream) Meter() chat.Meter { return s.M }

// Signed implements chat.StreamDecoder: these wires sign no reasoning.
func (s *Stream) Signed() []chat.Signed { return nil }

// End implements chat.StreamDecoder.
func (s *Stream) End() error {
	switch {
	case s.M.Err != nil:
		return s.M.Err
	case !s.M.Complete:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// Fail stores the provider's error and returns it.
func (s *Stream) Fail(f *fault.Fault) error {
	s.M.Err = f
	return f
}

// Unreadable is Fail for an event that is not JSON of the expected shape.
func (s *Stream) Unreadable(cause error) error {
	return s.Fail(UnreadableFault(cause))
}

// Emit passes a delta on, with a DeltaStart before the first one.
func (s *Stream) Emit(d chat.Delta, emit func(*chat.Delta) error) error {
	if !s.began {
		s.began = true
		if d.Kind != chat.DeltaStart {
			s.out = chat.Delta{Kind: chat.DeltaStart, ID: s.M.ID, Model: s.M.Model}
			if err := emit(&s.out); err != nil {
				return err
			}
		}
	}
	s.out = d
	return emit(&s.out)
}

// Piece emits d, which has a piece of content as JSON: a JSON string with its quotes.
// Empty pieces are omitted.
func (s *Stream) Piece(d chat.Delta, emit func(*chat.Delta) error) error {
	if len(d.JSON) <= 2 {
		return nil
	}
	s.M.Started = true
	s.M.OutputBytes += int64(wire.TextLen(d.JSON))
	s.M.Chunks++
	if !utf8.Valid(d.JSON) {
		s.scratch = wire.AppendJSONString(s.scratch[:0], wire.AppendUnquoted(nil, d.JSON))
		d.JSON = s.scratch
	}
	return s.Emit(d, emit)
}

// Text returns a piece of text of the first choice.
func (s *Stream) Text(raw []byte, emit func(*chat.Delta) error) error {
	return s.Piece(chat.Delta{Kind: chat.DeltaText, Call: -1, JSON: raw}, emit)
}

// Stop returns the end of the one response, once.
func (s *Stream) Stop(stop chat.StopReason, native string, emit func(*chat.Delta) error) error {
	if s.stopped {
		return nil
	}
	s.stopped = true
	s.M.Complete, s.M.Started, s.M.Finish = true, true, native
	return s.Emit(chat.Delta{Kind: chat.DeltaStop, Stop: stop, Native: native}, emit)
}

// RawString reads a string without decoding it; anything else counts as absent.
func RawString(d *wire.Decoder) []byte {
	if d.Kind() != wire.KindString {
		d.Skip()
		return nil
	}
	return d.RawStr()
}

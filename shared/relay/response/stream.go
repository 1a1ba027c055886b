package response

import (
	"bytes"
	"io"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Stream is one stream. The zero value is none.
type Stream struct {
	filter chat.StreamFilter // of a forwarded stream; or
	over   *translation
	gather *gathering // of a forwarded stream; nil: it is not assembled
	opened bool       // its first byte was seen
}

// Pass returns a stream that is forwarded, as far as f allows it.
func Pass(f chat.StreamFilter) Stream { return Stream{filter: f} }

// Translate returns a stream that dec reads and client's dialect writes into the memory of out.
// Content that the client does not get is reported in loss.
func Translate(dec chat.StreamDecoder, client chat.AnswerWriter, o *chat.Options, loss *chat.Loss, out []byte) Stream {
	t := &translation{parser: parserOf(dec), dec: dec, enc: client.NewStreamEncoder(o), missed: chat.MissedBy(client, o, loss), out: out}
	t.onEvent, t.onDelta = t.event, t.delta
	return Stream{over: t}
}

// Is reports whether there is a stream.
func (s *Stream) Is() bool { return s.filter != nil || s.over != nil }

// Translated reports whether the client's dialect differs from the provider's.
func (s *Stream) Translated() bool { return s.over != nil }

// ComesWhole reports whether a response is not a stream of events although one was requested: it
// starts with an object, which no event does. It is called with all bytes received, and decides
// by the first.
func (s *Stream) ComesWhole(in []byte) bool {
	if s.opened {
		return false
	}
	first := bytes.TrimLeft(in, " \t\r\n")
	if len(first) == 0 {
		return false
	}
	s.opened = true
	return first[0] == '{' && s.readsEvents()
}

// readsEvents reports whether server-sent events are expected.
func (s *Stream) readsEvents() bool {
	if s.over == nil {
		return true
	}
	switch s.over.parser.(type) {
	case *wire.SSEParser, *upstream.Events:
		return true
	}
	return false
}

// Instead replaces s, which has started, by other.
func (s *Stream) Instead(other Stream) {
	*s = other
	s.opened = true
}

// Feed returns the client's bytes for the next bytes of the stream; they are valid until the
// next call.
func (s *Stream) Feed(in []byte) ([]byte, error) {
	if s.over != nil {
		return s.over.feed(in)
	}
	if s.gather != nil {
		s.gather.feed(in) // before the filter, which may change the bytes
	}
	return s.filter.Feed(in)
}

// Meter returns the usage that the stream has reported so far.
func (s *Stream) Meter() chat.Meter {
	if s.over != nil {
		return s.over.dec.Meter()
	}
	return s.filter.Meter()
}

// End closes a stream and returns its last bytes. The error of an incomplete one is
// io.ErrUnexpectedEOF, or that of its dialect.
func (s *Stream) End() ([]byte, error) {
	if s.over != nil {
		return s.over.end()
	}
	last := s.filter.End()
	if !s.filter.Meter().Complete {
		return last, io.ErrUnexpectedEOF
	}
	return last, nil
}

// Signed returns the signed reasoning of a translated stream with a client that cannot return
// it.
func (s *Stream) Signed() []chat.Signed {
	if s.over == nil {
		return nil
	}
	return s.over.dec.Signed()
}

// AppendError ends a translated stream with an error; ok is false for a forwarded one.
func (s *Stream) AppendError(dst []byte, f *fault.Fault) (out []byte, ok bool) {
	if s.over == nil {
		return dst, false
	}
	return s.over.enc.Error(dst, f), true
}

// ForwardedError reports whether the provider's own error has been forwarded.
func (s *Stream) ForwardedError() bool { return s.filter != nil && s.filter.Passed() }

// translation translates a stream: provider events to canonical deltas to the
// client's events.
type translation struct {
	parser chat.EventParser
	dec    chat.StreamDecoder
	enc    chat.StreamEncoder
	out    []byte
	missed chat.Missed // content that the client does not get
	gather *gathering  // nil: it is not assembled
	denied error       // a guardrail's denial that was not returned yet

	// The two methods as values, created once and not for every event.
	onEvent func(name string, data []byte) error
	onDelta func(*chat.Delta) error
}

// parserOf returns a parser for the events that dec reads.
func parserOf(dec chat.StreamDecoder) chat.EventParser {
	if framed, ok := dec.(chat.Framed); ok {
		return framed.Parser()
	}
	return new(wire.SSEParser)
}

func (t *translation) feed(in []byte) ([]byte, error) {
	t.out = t.out[:0]
	err := t.parser.Feed(in, t.onEvent)
	return t.out, t.refusal(err)
}

// event passes one event of the provider to the decoder. It hides a guardrail's denial from the
// parser, which would stop, because later events report the usage.
func (t *translation) event(name string, data []byte) error {
	err := t.dec.Event(name, data, t.onDelta)
	if fault.ByGuardrail(err) {
		t.denied = err
		return nil
	}
	return err
}

// refusal returns the denial by guardrails, once, if there is one.
func (t *translation) refusal(err error) error {
	if t.denied != nil {
		err, t.denied = t.denied, nil
	}
	return err
}

func (t *translation) delta(d *chat.Delta) error {
	if t.gather != nil {
		t.gather.add(d)
	}
	t.missed.Piece(d)
	t.out = t.enc.Append(t.out, d)
	return nil
}

func (t *translation) end() ([]byte, error) {
	t.out = t.out[:0]
	if err := t.refusal(t.parser.End(t.onEvent)); err != nil {
		return t.out, err
	}
	if err := t.dec.End(); err != nil {
		return t.out, err
	}
	t.out = t.enc.Finish(t.out)
	return t.out, nil
}

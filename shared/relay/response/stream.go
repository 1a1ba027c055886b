// Package response handles a stream on its way from a provider to its client: passed on
// in the dialect that both speak, or translated event by event. It puts one together
// where the whole answer is wanted.
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
	filter chat.StreamFilter // of what is passed on; or
	over   *translation
	gather *gathering // of what is passed on; nil: it is not put together
	opened bool       // its first byte was seen
}

// Pass is a stream that is passed on, as far as f lets it.
func Pass(f chat.StreamFilter) Stream { return Stream{filter: f} }

// Translate is a stream that dec reads and client's dialect writes into the memory of
// out. What the client does not get is reported in loss.
func Translate(dec chat.StreamDecoder, client chat.AnswerWriter, o *chat.Options, loss *chat.Loss, out []byte) Stream {
	t := &translation{parser: parserOf(dec), dec: dec, enc: client.NewStreamEncoder(o), missed: chat.MissedBy(client, o, loss), out: out}
	t.onEvent, t.onDelta = t.event, t.delta
	return Stream{over: t}
}

// Is tells whether there is a stream.
func (s *Stream) Is() bool { return s.filter != nil || s.over != nil }

// Translated tells whether the client reads another dialect than the provider speaks.
func (s *Stream) Translated() bool { return s.over != nil }

// ComesWhole tells whether an answer is no stream of events although one was asked for: it
// begins with an object, which no event does. It is asked for all bytes that come, and
// decides by the first.
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

// readsEvents tells whether server-sent events are expected.
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

// Instead puts other in the place of s, which has begun.
func (s *Stream) Instead(other Stream) {
	*s = other
	s.opened = true
}

// Feed gives what the client gets of the next bytes; it is valid until the next call.
func (s *Stream) Feed(in []byte) ([]byte, error) {
	if s.over != nil {
		return s.over.feed(in)
	}
	if s.gather != nil {
		s.gather.feed(in) // before the filter, which may change the bytes
	}
	return s.filter.Feed(in)
}

// Meter is what the stream has told so far.
func (s *Stream) Meter() chat.Meter {
	if s.over != nil {
		return s.over.dec.Meter()
	}
	return s.filter.Meter()
}

// End closes a stream and gives its last bytes. One that is not whole is
// io.ErrUnexpectedEOF, or what its dialect says.
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

// Signed is the signed reasoning of a translated stream, which its client cannot
// return.
func (s *Stream) Signed() []chat.Signed {
	if s.over == nil {
		return nil
	}
	return s.over.dec.Signed()
}

// AppendError ends a translated stream with an error; ok is false for one that is
// passed on.
func (s *Stream) AppendError(dst []byte, f *fault.Fault) (out []byte, ok bool) {
	if s.over == nil {
		return dst, false
	}
	return s.over.enc.Error(dst, f), true
}

// TellsError tells whether the provider's own error has been passed on.
func (s *Stream) TellsError() bool { return s.filter != nil && s.filter.Passed() }

// translation translates a stream: provider events to canonical deltas to the
// client's events.
type translation struct {
	parser chat.EventParser
	dec    chat.StreamDecoder
	enc    chat.StreamEncoder
	out    []byte
	missed chat.Missed // what of the answer the client does not get
	gather *gathering  // nil: it is not put together
	denied error       // a guardrail's refusal that nobody was told of yet

	// The two methods as values, made once and not for every event.
	onEvent func(name string, data []byte) error
	onDelta func(*chat.Delta) error
}

// parserOf takes the events apart that dec reads.
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

// event gives one event of the provider to the decoder. A refusal of guardrails is not
// the parser's to know: it would read nothing more, and what follows tells the usage.
func (t *translation) event(name string, data []byte) error {
	err := t.dec.Event(name, data, t.onDelta)
	if fault.ByGuardrail(err) {
		t.denied = err
		return nil
	}
	return err
}

// refusal is that of guardrails, once, where there is one.
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

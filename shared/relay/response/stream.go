package response

import (
	"bytes"
	"io"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
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
func Translate(dec chat.StreamDecoder, client chat.ResponseWriter, o *chat.Options, loss *chat.Loss, out []byte) Stream {
	t := &translation{parser: parserOf(dec), dec: dec, enc: client.NewStreamEncoder(o), missed: chat.NewLossReporter(client, o, loss), out: out}
	t.onEvent, t.onDelta = t.event, t.delta
	return Stream{over: t}
}

// Is reports whether there is a stream.
func (s *Stream) Is() bool { return s.filter != nil || s.over != nil }

// Translated reports whether the client's dialect differs from the provider's.
func (s *Stream) Translated() bool { return s.over != nil }

// IsNotEvents reports whether a response is not a stream of events although one was requested: it
// starts with an object, which no event does. It is called with all bytes received, and decides
// by the first.
func (s *Stream) IsNotEvents(in []byte) bool {
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

// ReplaceBy replaces s, which has started, by other.
func (s *Stream) ReplaceBy(other Stream) {
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

// Signed returns the signed reasoning of a stream that is translated, or forwarded and
// assembled.
func (s *Stream) Signed() []chat.Signed {
	if s.over != nil {
		return s.over.dec.Signed()
	}
	if s.gather == nil {
		return nil
	}
	s.gather.end()
	return s.gather.dec.Signed()
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
	missed chat.LossReporter // content that the client does not get
	gather *gathering        // nil: it is not assembled
	denied error             // a guardrail's denial that was not returned yet

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
	return t.out, t.rejection(err)
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

// rejection returns the denial by guardrails, once, if there is one.
func (t *translation) rejection(err error) error {
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
	if err := t.rejection(t.parser.End(t.onEvent)); err != nil {
		return t.out, err
	}
	if err := t.dec.End(); err != nil {
		return t.out, err
	}
	t.out = t.enc.Finish(t.out)
	return t.out, nil
}

// MeterEvents returns the usage in the last event of a stream that reports usage.
func MeterEvents(meter func([]byte) chat.Meter, tail []byte) (last chat.Meter) {
	EachEvent(tail, func(data []byte) {
		if m := meter(data); m.Usage.IsReported() {
			last = m
		}
	})
	return last
}

// EachEvent calls f with the data of the events of a complete stream, including a last one
// without the final blank line. data is valid during the call.
func EachEvent(stream []byte, f func(data []byte)) {
	var p wire.SSEParser
	give := func(_ string, data []byte) error {
		f(data)
		return nil
	}
	if p.Feed(stream, give) == nil {
		_ = p.End(give)
	}
}

// Estimates replace usage that a provider did not report, or reported only in part because its
// stream was truncated. They are recorded as estimates.
const (
	bytesOfAToken  = 4
	tokensOfAFrame = 4 // overhead of a message besides its text
)

// EstimateOutput counts the output of a stream that was truncated before the final count: some providers
// have only reported an initial one.
func EstimateOutput(u *pricing.Usage, m chat.Meter) {
	if made := m.OutputEstimate(); made > u.OutputTokens() {
		u.Add(pricing.Output, made-u.OutputTokens())
		u.Estimated = true
	}
}

// FillUsage returns the usage of a conversation as far as the provider reported it, with an estimate
// of the side that it did not count. input estimates the input tokens. noOutput means that there
// is no output. A single total is split: the output is estimated, and the rest is the input.
func FillUsage(m chat.Meter, input func() int64, noOutput bool) pricing.Usage {
	u := m.Usage
	switch in, out := u.HasInput(), u.HasOutput() || noOutput; {
	case in == out:
		return u // complete, or in units other than tokens
	case !in:
		u.Set(pricing.Input, input())
	default:
		made := m.OutputEstimate()
		if m.TotalOnly() {
			made = min(made, u.N(pricing.Input))
			u.Add(pricing.Input, -made)
		}
		if made == 0 {
			return u // no output was received
		}
		u.Set(pricing.Output, made)
	}
	u.Estimated = true
	return u
}

// EstimateTokens estimates the input tokens of a conversation. Images and audio are not counted.
func EstimateTokens(r *chat.Request) int64 {
	var n int64
	for i := range r.Messages {
		n += tokensOfAFrame + tokensOfParts(r.Messages[i].Parts)
	}
	for i := range r.Tools {
		n += TokensOfBytes(len(r.Tools[i].Name) + len(r.Tools[i].Description.Value) + len(r.Tools[i].Schema))
	}
	return n
}

func tokensOfParts(parts []chat.Part) (n int64) {
	for i := range parts {
		p := &parts[i]
		n += TokensOfBytes(len(p.Text))
		if p.Call != nil {
			n += TokensOfBytes(len(p.Call.Name) + len(p.Call.Arguments))
		}
		if p.Media != nil && p.Media.Plain {
			n += TokensOfBytes(len(p.Media.Data))
		}
		if p.Result != nil {
			n += tokensOfParts(p.Result.Parts)
		}
	}
	return n
}

// TokensOfBytes estimates the tokens of a text with a number of bytes.
func TokensOfBytes(bytes int) int64 { return int64(bytes+bytesOfAToken-1) / bytesOfAToken }

package upstream

import (
	"io"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

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
	return s.Fail(Unreadable(cause))
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
	s.M.Pieces++
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

// Stop returns the end of the one answer, once.
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

package anthropic

import (
	"bytes"
	"io"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// streamDecoder reads the events of one stream.
type streamDecoder struct {
	m        chat.Meter
	d        wire.Decoder
	out      chat.Delta
	u        counts
	reported pricing.Usage // reported to the client, which may differ from the charge
	blocks   []block       // by the provider's index, in order of their start
	calls    int           // tool calls that the client sees
	hidden   bool          // the hidden tool was called

	// How the response ended. This is only forwarded when the stream is complete, so that a
	// stream that breaks off does not look like a success.
	native, sequence, explanation string
	category                      string // of a refusal
	scratch                       []byte

	pending []chat.Part // signed reasoning since the last call
	signed  []chat.Signed
}

// Meter implements chat.StreamDecoder.
func (s *streamDecoder) Meter() chat.Meter { return s.m }

// Signed implements chat.StreamDecoder.
func (s *streamDecoder) Signed() []chat.Signed { return s.signed }

// End implements chat.StreamDecoder.
func (s *streamDecoder) End() error {
	switch {
	case s.m.Err != nil:
		return s.m.Err
	case !s.m.Complete:
		return io.ErrUnexpectedEOF
	}
	return nil
}

var (
	deltaHead = []byte(`{"type":"content_block_delta","index":`)
	textHead  = []byte(`,"delta":{"type":"text_delta","text":`)
	inputHead = []byte(`,"delta":{"type":"input_json_delta","partial_json":`)
)

// Event implements chat.StreamDecoder.
func (s *streamDecoder) Event(event string, data []byte, emit func(*chat.Delta) error) error {
	if s.m.Err != nil {
		return s.m.Err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if index, piece, tool, ok := s.fastDelta(data); ok {
		kind := chat.DeltaText
		b := s.block(index)
		if b != nil && (b.kind == blockTool || b.kind == blockResponse || b.kind == blockForeign) == tool {
			if tool {
				return s.input(b, piece, emit)
			}
			return s.piece(kind, b, piece, emit)
		}
	}
	return s.read(event, data, emit)
}

// fastDelta reads the two events that make up most of a stream, when they are
// written as the provider writes them.
func (s *streamDecoder) fastDelta(data []byte) (index int, piece []byte, tool, ok bool) {
	rest, ok := bytes.CutPrefix(data, deltaHead)
	if !ok {
		return 0, nil, false, false
	}
	n := 0
	for n < len(rest) && n < 6 && rest[n]-'0' <= 9 {
		index = index*10 + int(rest[n]-'0')
		n++
	}
	rest = rest[n:]
	if after, found := bytes.CutPrefix(rest, textHead); found {
		rest = after
	} else if after, found = bytes.CutPrefix(rest, inputHead); found {
		rest, tool = after, true
	} else {
		return 0, nil, false, false
	}
	s.d.Reset(rest)
	piece = s.d.RawStr()
	if piece == nil {
		return 0, nil, false, false
	}
	// Two closing braces follow, with white space that the provider pads with.
	tail := bytes.TrimLeft(rest[s.d.Offset():], " ")
	if len(tail) < 2 || tail[0] != '}' {
		return 0, nil, false, false
	}
	if tail = bytes.TrimLeft(tail[1:], " "); len(tail) != 1 || tail[0] != '}' {
		return 0, nil, false, false
	}
	return index, piece, tool, n > 0
}

// piece returns a piece of a block as a delta of kind.
func (s *streamDecoder) piece(kind chat.DeltaKind, b *block, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 {
		return nil
	}
	s.m.Started = true
	s.m.OutputBytes += int64(wire.TextLen(raw))
	s.m.Chunks++
	s.out = chat.Delta{Kind: kind, Block: b.index, Call: b.call, Response: b.kind == blockResponse, JSON: s.valid(raw)}
	return emit(&s.out)
}

// valid returns raw, a JSON string, in valid UTF-8.
func (s *streamDecoder) valid(raw []byte) []byte {
	if utf8.Valid(raw) {
		return raw
	}
	s.scratch = wire.AppendJSONString(s.scratch[:0], wire.AppendUnquoted(nil, raw))
	return s.scratch
}

// input returns a piece of the arguments of a call.
func (s *streamDecoder) input(b *block, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 {
		return nil
	}
	b.sent = true
	switch b.kind {
	case blockResponse:
		return s.piece(chat.DeltaText, b, raw, emit)
	case blockForeign:
		b.text = wire.AppendUnquoted(b.text, raw)
		return nil
	}
	return s.piece(chat.DeltaToolArgs, b, raw, emit)
}

// event is what an event of any kind holds; values alias the event.
type event struct {
	kind     string
	index    int
	message  []byte
	block    []byte
	delta    []byte
	usage    []byte
	hasError bool
}

func (s *streamDecoder) read(name string, data []byte, emit func(*chat.Delta) error) error {
	d := &s.d
	d.Reset(data)
	e := event{kind: name}
	for key := range d.Object {
		switch string(key) {
		case "type":
			e.kind = eventKind(d.Bytes())
		case "index":
			if d.Kind() == wire.KindNumber {
				e.index = int(d.Int())
			}
		case "message":
			e.message = d.Raw()
		case "content_block":
			e.block = d.Raw()
		case "delta":
			e.delta = d.Raw()
		case "usage":
			e.usage = d.Raw()
		case "error":
			e.hasError = true
		}
	}
	if err := d.End(); err != nil {
		return s.fail(notReadable(err))
	}
	switch e.kind {
	case "message_start":
		return s.messageStart(e.message, emit)
	case "content_block_start":
		return s.blockStart(e.index, e.block, emit)
	case "content_block_delta":
		return s.blockDelta(e.index, e.delta, emit)
	case "content_block_stop":
		return s.blockStop(e.index, emit)
	case "message_delta":
		return s.messageDelta(e.delta, e.usage, emit)
	case "message_stop":
		s.m.Complete, s.m.Started = true, true
		return s.stop(emit)
	case "ping":
		s.out = chat.Delta{Kind: chat.DeltaPing}
		return emit(&s.out)
	default:
		if e.kind == "error" || e.hasError {
			return s.fail(inBandError(data))
		}
	}
	return nil
}

func (s *streamDecoder) fail(f *fault.Fault) error {
	s.m.Err = f
	return f
}

func notReadable(cause error) *fault.Fault {
	return upstream.UnreadableFault(cause)
}

// eventKind returns the known kinds without an allocation.
func eventKind(b []byte) string {
	switch string(b) {
	case "message_start":
		return "message_start"
	case "content_block_start":
		return "content_block_start"
	case "content_block_delta":
		return "content_block_delta"
	case "content_block_stop":
		return "content_block_stop"
	case "message_delta":
		return "message_delta"
	case "message_stop":
		return "message_stop"
	case "ping":
		return "ping"
	case "error":
		return "error"
	}
	return "?"
}

func (s *streamDecoder) messageStart(message []byte, emit func(*chat.Delta) error) error {
	d := &s.d
	d.Reset(message)
	for key := range d.Object {
		switch string(key) {
		case "id":
			s.m.ID = upstream.OptString(d)
		case "model":
			s.m.Model = upstream.OptString(d)
		case "usage":
			s.u.readFrom(d)
		}
	}
	s.count()
	s.out = chat.Delta{Kind: chat.DeltaStart, ID: s.m.ID, Model: s.m.Model, Usage: &s.reported}
	return emit(&s.out)
}

func (s *streamDecoder) messageDelta(raw, usage []byte, emit func(*chat.Delta) error) error {
	d := &s.d
	if raw != nil {
		d.Reset(raw)
		for key := range d.Object {
			switch string(key) {
			case "stop_reason":
				if native := upstream.OptString(d); native != "" {
					s.native, s.m.Finish = native, native
				}
			case "stop_sequence":
				s.sequence = upstream.OptString(d)
			case "stop_details":
				s.explanation, s.category = stopDetails(d)
			}
		}
	}
	if usage == nil {
		return nil
	}
	d.Reset(usage)
	s.u.readFrom(d)
	s.count()
	s.out = chat.Delta{Kind: chat.DeltaUsage, Usage: &s.reported}
	return emit(&s.out)
}

// count converts the counts so far into the usage for the client and into the bill.
func (s *streamDecoder) count() {
	s.u.classes(&s.reported)
	s.u.bill(ending{s.native, s.category}, &s.m.Usage, &s.m.PriceFacts)
}

// stop returns the end of the response.
func (s *streamDecoder) stop(emit func(*chat.Delta) error) error {
	stop := stopReason(s.native)
	if stop == chat.StopToolCalls && s.hidden && s.calls == 0 {
		stop = chat.StopEnd
	}
	if stop == chat.StopFilter {
		if s.explanation == "" {
			s.explanation = refusalText
		}
		next := block{index: len(s.blocks), call: -1}
		if err := s.piece(chat.DeltaRefusal, &next, wire.AppendJSONString(nil, s.explanation), emit); err != nil {
			return err
		}
	}
	s.out = chat.Delta{Kind: chat.DeltaStop, Stop: stop, Native: s.native}
	if stop == chat.StopSequence {
		s.out.StopSequence = s.sequence
	}
	return emit(&s.out)
}

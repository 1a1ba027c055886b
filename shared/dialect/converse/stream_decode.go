package converse

import (
	"encoding/base64"
	"io"
	"strings"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// streamDecoder reads the events of one stream.
type streamDecoder struct {
	origin string
	m      chat.Meter
	d      wire.Decoder
	out    chat.Delta
	u      counts
	blocks []block // by the provider's index, in order of their start
	calls  int     // tool calls that the client sees
	hidden bool    // the hidden tool was called
	text   bool    // some text was given
	began  bool
	failed *fault.Fault // of a stop reason that is a failure, until the usage behind it has come

	scratch []byte
	pending []chat.Part // signed reasoning since the last call
	signed  []chat.Signed
}

// block is one content block. Blocks of text and reasoning begin with their
// first piece.
type block struct {
	index  int
	tool   bool
	answer bool // the hidden tool
	call   int
	sent   bool   // a piece of the arguments was given
	text   []byte // of reasoning, kept to be signed for
	sign   []byte
	hidden []byte // redacted reasoning, decoded
	closed bool
}

// maxBlocks bounds the blocks of a stream.
const maxBlocks = 4096

func newStreamDecoder(t *chat.Traits) *streamDecoder {
	return &streamDecoder{origin: origin(t.Family)}
}

var _ chat.Framed = (*streamDecoder)(nil)

// Parser implements chat.Framed.
func (s *streamDecoder) Parser() chat.EventParser { return new(wire.EventStreamParser) }

// Meter implements chat.StreamDecoder.
func (s *streamDecoder) Meter() chat.Meter { return s.m }

// Signed implements chat.StreamDecoder.
func (s *streamDecoder) Signed() []chat.Signed { return s.signed }

// End implements chat.StreamDecoder.
func (s *streamDecoder) End() error {
	switch {
	case s.m.Err != nil:
		return s.m.Err
	case s.failed != nil:
		return s.fail(s.failed)
	case !s.m.Complete:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// Event implements chat.StreamDecoder. event is the type of the message.
func (s *streamDecoder) Event(event string, data []byte, emit func(*chat.Delta) error) error {
	if s.m.Err != nil {
		return s.m.Err
	}
	if kind, ok := strings.CutPrefix(event, wire.EventStreamException); ok {
		return s.fail(Exception(kind, data))
	}
	s.d.Reset(data)
	switch event {
	case "messageStart":
		return s.begin(emit)
	case "contentBlockStart":
		return s.blockStart(emit)
	case "contentBlockDelta":
		return s.blockDelta(emit)
	case "contentBlockStop":
		return s.blockStop(emit)
	case "messageStop":
		return s.stop(emit)
	case "metadata":
		return s.metadata(emit)
	case "chunk":
		return s.invoked()
	}
	return nil // an event of a later version
}

func (s *streamDecoder) fail(f *fault.Fault) error {
	s.m.Err = f
	return f
}

func (s *streamDecoder) unreadable(cause error) error {
	return s.fail(upstream.Unreadable(cause))
}

// begin gives the start once; a stream may lack its own.
func (s *streamDecoder) begin(emit func(*chat.Delta) error) error {
	if s.began {
		return nil
	}
	s.began = true
	s.out = chat.Delta{Kind: chat.DeltaStart}
	return emit(&s.out)
}

// find gives the block at index, which begins with this event if it is new.
func (s *streamDecoder) find(index int) *block {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		if s.blocks[i].index == index {
			return &s.blocks[i]
		}
	}
	if len(s.blocks) == maxBlocks {
		return nil
	}
	s.blocks = append(s.blocks, block{index: index, call: -1})
	return &s.blocks[len(s.blocks)-1]
}

func (s *streamDecoder) blockStart(emit func(*chat.Delta) error) error {
	d := &s.d
	index, id, tool, isTool := 0, "", "", false
	for key := range d.Object {
		switch string(key) {
		case "contentBlockIndex":
			index = readIndex(d)
		case "start":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) != "toolUse" || d.Kind() != wire.KindObject {
					continue
				}
				isTool = true
				for key := range d.Object {
					switch string(key) {
					case "toolUseId":
						id = upstream.OptString(d)
					case "name":
						tool = upstream.OptString(d)
					}
				}
			}
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	if err := s.begin(emit); err != nil {
		return err
	}
	b := s.find(index)
	if b == nil || isTool && b.tool {
		return s.unreadable(nil)
	}
	if !isTool {
		return nil
	}
	b.tool = true
	if tool == answerTool {
		b.answer, s.hidden = true, true
		return nil
	}
	b.call = s.calls
	s.calls++
	s.m.Started = true
	if len(s.pending) > 0 && id != "" {
		s.signed = append(s.signed, chat.Signed{ToolCallID: id, Parts: s.pending})
		s.pending = nil
	}
	s.out = chat.Delta{Kind: chat.DeltaToolStart, Block: b.index, Call: b.call, ID: id, Name: tool}
	return emit(&s.out)
}

// readIndex reads the index of a block; anything but a small number is 0.
func readIndex(d *wire.Decoder) int {
	var n chat.Opt[int64]
	upstream.Count(d, &n)
	if n.Value > 1<<20 {
		return 0
	}
	return int(n.Value)
}

func (s *streamDecoder) blockDelta(emit func(*chat.Delta) error) error {
	d := &s.d
	index := 0
	var p pieces
	for key := range d.Object {
		switch string(key) {
		case "contentBlockIndex":
			index = readIndex(d)
		case "delta":
			if d.Kind() == wire.KindObject {
				p.read(d)
			}
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	if err := s.begin(emit); err != nil {
		return err
	}
	b := s.find(index)
	if b == nil || b.closed || p.input != nil && !b.tool {
		return s.unreadable(nil)
	}
	switch {
	case p.text != nil:
		s.text = s.text || len(p.text) > 2
		return s.piece(chat.DeltaText, b, p.text, emit)
	case p.input != nil:
		return s.input(b, p.input, emit)
	case p.thought != nil:
		b.text = wire.AppendUnquoted(b.text, p.thought)
		return s.piece(chat.DeltaThinking, b, p.thought, emit)
	case p.signature != nil:
		b.sign = wire.AppendUnquoted(b.sign, p.signature)
		return s.piece(chat.DeltaSignature, b, p.signature, emit)
	case p.redacted != nil:
		raw, err := base64.StdEncoding.DecodeString(string(wire.AppendUnquoted(nil, p.redacted)))
		if err != nil {
			return s.unreadable(err)
		}
		b.hidden = append(b.hidden, raw...)
	case p.citation != nil:
		s.out = chat.Delta{Kind: chat.DeltaCitation, Block: b.index, JSON: p.citation}
		return emit(&s.out)
	}
	return nil
}

// piece gives a piece of a block as a delta of kind.
func (s *streamDecoder) piece(kind chat.DeltaKind, b *block, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 {
		return nil
	}
	s.m.Started = true
	s.m.OutputBytes += int64(len(raw) - 2)
	s.m.Pieces++
	s.out = chat.Delta{Kind: kind, Block: b.index, Call: b.call, Answer: b.answer, JSON: s.valid(raw)}
	return emit(&s.out)
}

// valid gives raw, a JSON string, in valid UTF-8.
func (s *streamDecoder) valid(raw []byte) []byte {
	if utf8.Valid(raw) {
		return raw
	}
	s.scratch = wire.AppendJSONString(s.scratch[:0], wire.AppendUnquoted(nil, raw))
	return s.scratch
}

// input gives a piece of the arguments of a call.
func (s *streamDecoder) input(b *block, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 {
		return nil
	}
	b.sent = true
	if b.answer {
		s.text = true
		return s.piece(chat.DeltaText, b, raw, emit)
	}
	return s.piece(chat.DeltaToolArgs, b, raw, emit)
}

var noArguments = []byte(`"{}"`)

func (s *streamDecoder) blockStop(emit func(*chat.Delta) error) error {
	d := &s.d
	index := 0
	for key := range d.Object {
		if string(key) == "contentBlockIndex" {
			index = readIndex(d)
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	for i := range s.blocks {
		if s.blocks[i].index == index && !s.blocks[i].closed {
			return s.closeBlock(&s.blocks[i], emit)
		}
	}
	return nil
}

func (s *streamDecoder) closeBlock(b *block, emit func(*chat.Delta) error) error {
	b.closed = true
	switch {
	case b.tool && !b.sent:
		if err := s.input(b, noArguments, emit); err != nil {
			return err
		}
	case len(b.hidden) > 0:
		data := base64.StdEncoding.EncodeToString(b.hidden)
		s.pending = append(s.pending, chat.Part{Kind: chat.RedactedReasoned, Origin: s.origin, Data: data})
		if err := s.piece(chat.DeltaRedacted, b, wire.AppendJSONString(nil, data), emit); err != nil {
			return err
		}
	case len(b.sign) > 0:
		s.pending = append(s.pending, chat.Part{Kind: chat.Reasoned, Origin: s.origin, Text: string(b.text), Signature: string(b.sign)})
	}
	s.out = chat.Delta{Kind: chat.DeltaBlockStop, Block: b.index, Call: b.call}
	return emit(&s.out)
}

// stop gives the end of the answer; the usage comes behind it.
func (s *streamDecoder) stop(emit func(*chat.Delta) error) error {
	d := &s.d
	sequence := ""
	for key := range d.Object {
		switch string(key) {
		case "stopReason":
			s.m.Finish = upstream.OptString(d)
		case "additionalModelResponseFields":
			sequence = readStopSequence(d)
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	if s.m.Complete {
		return nil
	}
	stop, f := stopReason(s.m.Finish)
	if f != nil {
		s.failed = f
		return nil
	}
	if err := s.begin(emit); err != nil {
		return err
	}
	for i := range s.blocks {
		if !s.blocks[i].closed {
			if err := s.closeBlock(&s.blocks[i], emit); err != nil {
				return err
			}
		}
	}
	if stop == chat.StopToolCalls && s.hidden && s.calls == 0 {
		stop = chat.StopEnd
	}
	if stop == chat.StopFilter && !s.text {
		next := block{index: len(s.blocks), call: -1}
		if err := s.piece(chat.DeltaRefusal, &next, wire.AppendJSONString(nil, refusalText), emit); err != nil {
			return err
		}
	}
	s.m.Complete, s.m.Started = true, true
	s.out = chat.Delta{Kind: chat.DeltaStop, Stop: stop, Native: s.m.Finish}
	if stop == chat.StopSequence {
		s.out.StopSequence = sequence
	}
	return emit(&s.out)
}

func (s *streamDecoder) metadata(emit func(*chat.Delta) error) error {
	d := &s.d
	found := false
	for key := range d.Object {
		if string(key) == "usage" {
			found = true
			s.u.readFrom(d)
		}
	}
	if err := d.End(); err != nil {
		return s.unreadable(err)
	}
	if found {
		s.m.ReportedTotal = s.u.classes(&s.m.Usage)
	}
	switch {
	case s.failed != nil:
		return s.fail(s.failed)
	case !found:
		return nil
	}
	if err := s.begin(emit); err != nil {
		return err
	}
	s.out = chat.Delta{Kind: chat.DeltaUsage, Usage: &s.m.Usage}
	return emit(&s.out)
}

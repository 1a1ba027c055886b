package anthropic

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// block is one content block that has started.
type block struct {
	index   int
	kind    blockKind
	call    int
	sent    bool   // a piece of the arguments was given
	input   []byte // arguments that arrived with the start
	id      string
	text    []byte // text of thinking, buffered until its signature arrives
	sign    []byte
	foreign []byte // complete block
	closed  bool
}

// maxBlocks bounds the blocks of a stream.
const maxBlocks = 4096

type blockKind uint8

const (
	blockText blockKind = iota + 1
	blockThinking
	blockRedacted
	blockTool
	blockResponse // the hidden tool
	blockForeign
)

// block finds a started block; the one in work is the last.
func (s *streamDecoder) block(index int) *block {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		if s.blocks[i].index == index {
			return &s.blocks[i]
		}
	}
	return nil
}

// opening is what a block starts with; values alias the event.
type opening struct {
	kind, id, tool               string
	input, text, data, signature []byte
}

func (o *opening) read(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "type":
			o.kind = upstream.OptString(d)
		case "id":
			o.id = upstream.OptString(d)
		case "name":
			o.tool = upstream.OptString(d)
		case "input":
			o.input = d.Raw()
		case "text", "thinking":
			o.text = rawString(d)
		case "signature":
			o.signature = rawString(d)
		case "data":
			o.data = rawString(d)
		}
	}
}

func (s *streamDecoder) blockStart(index int, raw []byte, emit func(*chat.Delta) error) error {
	if wire.KindOf(raw) != wire.KindObject {
		return s.fail(notReadable(nil))
	}
	s.d.Reset(raw)
	var o opening
	o.read(&s.d)
	b := block{index: index, call: -1, id: o.id, input: bytes.Clone(o.input)}
	switch o.kind {
	case "text":
		b.kind = blockText
	case "thinking":
		b.kind = blockThinking
	case "redacted_thinking":
		b.kind = blockRedacted
	case "tool_use":
		if b.kind = blockTool; o.tool == chat.ResponseTool {
			b.kind = blockResponse
			s.hidden = true
		} else {
			b.call = s.calls
			s.calls++
		}
	default:
		b.kind = blockForeign
		b.foreign = bytes.Clone(raw)
	}
	if len(s.blocks) == maxBlocks {
		return s.fail(invalidResponse(nil))
	}
	s.blocks = append(s.blocks, b)
	return s.first(&s.blocks[len(s.blocks)-1], &o, emit)
}

// first returns the beginning of a block.
func (s *streamDecoder) first(b *block, o *opening, emit func(*chat.Delta) error) error {
	switch b.kind {
	case blockText:
		return s.piece(chat.DeltaText, b, o.text, emit)
	case blockThinking:
		if err := s.thinking(b, o.text, emit); err != nil {
			return err
		}
		return s.signature(b, o.signature, emit)
	case blockRedacted:
		if o.data != nil {
			s.pending = append(s.pending, chat.Part{Kind: chat.RedactedReasoned, Origin: name, Data: string(wire.AppendUnquoted(nil, o.data))})
		}
		return s.piece(chat.DeltaRedacted, b, o.data, emit)
	case blockTool:
		return s.toolStart(b, o.tool, emit)
	}
	return nil
}

func rawString(d *wire.Decoder) []byte {
	if d.Kind() != wire.KindString {
		d.Skip()
		return nil
	}
	return d.RawStr()
}

func (s *streamDecoder) toolStart(b *block, tool string, emit func(*chat.Delta) error) error {
	s.m.Started = true
	if len(s.pending) > 0 && b.id != "" {
		s.signed = append(s.signed, chat.Signed{ToolCallID: b.id, Parts: s.pending})
		s.pending = nil
	}
	s.m.OutputBytes += int64(len(tool))
	s.out = chat.Delta{Kind: chat.DeltaToolStart, Block: b.index, Call: b.call, ID: b.id, Name: tool}
	return emit(&s.out)
}

func (s *streamDecoder) thinking(b *block, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) > 2 {
		b.text = wire.AppendUnquoted(b.text, raw)
	}
	return s.piece(chat.DeltaThinking, b, raw, emit)
}

func (s *streamDecoder) signature(b *block, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) > 2 {
		b.sign = wire.AppendUnquoted(b.sign, raw)
	}
	return s.piece(chat.DeltaSignature, b, raw, emit)
}

func (s *streamDecoder) blockDelta(index int, raw []byte, emit func(*chat.Delta) error) error {
	b := s.block(index)
	if b == nil || raw == nil {
		return s.fail(notReadable(nil))
	}
	d := &s.d
	d.Reset(raw)
	var text, thinking, signature, input, citation []byte
	for key := range d.Object {
		switch string(key) {
		case "text":
			text = rawString(d)
		case "thinking":
			thinking = rawString(d)
		case "signature":
			signature = rawString(d)
		case "partial_json":
			input = rawString(d)
		case "citation":
			if d.Kind() == wire.KindObject {
				citation = d.Raw()
			}
		}
	}
	switch {
	case text != nil:
		return s.piece(chat.DeltaText, b, text, emit)
	case thinking != nil:
		return s.thinking(b, thinking, emit)
	case signature != nil:
		return s.signature(b, signature, emit)
	case input != nil:
		return s.input(b, input, emit)
	case citation != nil:
		s.out = chat.Delta{Kind: chat.DeltaCitation, Block: b.index, JSON: citation}
		return emit(&s.out)
	}
	return nil
}

func (s *streamDecoder) blockStop(index int, emit func(*chat.Delta) error) error {
	b := s.block(index)
	if b == nil || b.closed {
		return nil
	}
	b.closed = true
	var err error
	switch b.kind {
	case blockTool, blockResponse:
		if !b.sent { // the arguments arrived with the start, or there are none
			err = s.input(b, wire.AppendJSONString(nil, wholeInput(b.input)), emit)
		}
	case blockThinking:
		if len(b.sign) > 0 {
			s.pending = append(s.pending, chat.Part{Kind: chat.Reasoned, Origin: name, Text: string(b.text), Signature: string(b.sign)})
		}
	case blockForeign:
		s.m.Started = true
		s.out = chat.Delta{Kind: chat.DeltaForeign, Block: b.index, JSON: b.whole()}
		err = emit(&s.out)
	}
	if err != nil {
		return err
	}
	s.out = chat.Delta{Kind: chat.DeltaBlockStop, Block: b.index, Call: b.call}
	return emit(&s.out)
}

// wholeInput returns the arguments of a call without pieces.
func wholeInput(input []byte) []byte {
	if wire.KindOf(input) != wire.KindObject {
		return []byte("{}")
	}
	return input
}

var inputKey = wire.NewKeySet("input")

// whole returns a foreign block with the input assembled from its pieces.
func (b *block) whole() []byte {
	var w wire.Walk
	if len(b.text) == 0 || !jsonObject(b.text) || inputKey.Walk(b.foreign, &w) != nil {
		return b.foreign
	}
	return wire.Splice(nil, b.foreign, inputKey.SetKey(&w, 0, b.text))
}

package responses

import (
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// args returns a piece of a call's arguments.
func (s *streamDecoder) args(it *streamItem, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 || it.call < 0 {
		return nil
	}
	it.pieces = true
	s.m.OutputBytes += int64(wire.TextLen(raw))
	s.m.Chunks++
	s.out = chat.Delta{Kind: chat.DeltaToolArgs, Block: it.block, Call: it.call, JSON: s.valid(raw)}
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

// text returns a piece of a message. Each part of it is a block.
func (s *streamDecoder) text(kind chat.DeltaKind, e *streamEvent, emit func(*chat.Delta) error) error {
	if err := s.start(nil, emit); err != nil {
		return err
	}
	it := s.item(e.index, "message")
	if it.block < 0 || it.part != e.part {
		it.block, it.part = s.blocks, e.part
		s.blocks++
	}
	it.pieces = true
	s.out = chat.Delta{Kind: kind, Block: it.block, Call: -1}
	if len(e.logprobs) > 2 {
		s.out.Logprobs = append(append([]byte(`{"content":`), e.logprobs...), `,"refusal":null}`...)
	}
	return s.piece(e.delta, emit)
}

// piece returns the delta in s.out with its text.
func (s *streamDecoder) piece(raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) < 2 {
		raw = []byte(`""`)
	}
	if len(raw) == 2 && s.out.Logprobs == nil {
		return nil
	}
	if len(raw) > 2 {
		s.m.Started = true
		s.m.Chunks++
		s.m.OutputBytes += int64(wire.TextLen(raw))
	}
	s.out.JSON = s.valid(raw)
	return emit(&s.out)
}

// thinking returns a piece of reasoning. If a host streams both the thoughts and their
// summary, the kind that comes first is read.
func (s *streamDecoder) thinking(e *streamEvent, emit func(*chat.Delta) error) error {
	if err := s.start(nil, emit); err != nil {
		return err
	}
	it := s.item(e.index, "reasoning")
	if it.member == "" {
		it.member = e.kind
	}
	if it.member != e.kind {
		return nil
	}
	if it.block < 0 {
		it.block = s.blocks
		s.blocks++
	}
	s.out = chat.Delta{Kind: chat.DeltaThinking, Block: it.block, Call: -1}
	if n := e.summary + e.part; it.pieces && n != it.summary {
		it.summary = n
		if err := s.piece(wire.AppendJSONString(nil, summaryBreak), emit); err != nil {
			return err
		}
	}
	it.pieces = true
	return s.piece(e.delta, emit)
}

// itemDone returns what the end of an item brings beyond its pieces.
func (s *streamDecoder) itemDone(e *streamEvent, emit func(*chat.Delta) error) error {
	var o outputItem
	s.d.Reset(e.item)
	if s.d.Kind() == wire.KindObject {
		o.read(&s.d)
	}
	it := s.item(e.index, o.kind)
	if it.done {
		return nil
	}
	it.done = true
	switch o.kind {
	case "message":
		return s.messageDone(it, &o, emit)
	case "reasoning":
		return s.reasoningDone(it, &o, emit)
	case "function_call", "custom_tool_call":
		if err := s.begin(it, &o, emit); err != nil {
			return err
		}
		if !it.pieces {
			if err := s.args(it, wire.AppendJSONString(nil, o.call().Arguments), emit); err != nil {
				return err
			}
		}
		return s.blockStop(it, emit)
	case "":
		return nil
	}
	if err := s.start(nil, emit); err != nil {
		return err
	}
	s.m.Started = true
	s.out = chat.Delta{Kind: chat.DeltaForeign, Block: s.blocks, Call: -1, JSON: e.item}
	s.blocks++
	return emit(&s.out)
}

func (s *streamDecoder) blockStop(it *streamItem, emit func(*chat.Delta) error) error {
	if it.block < 0 {
		return nil
	}
	s.out = chat.Delta{Kind: chat.DeltaBlockStop, Block: it.block, Call: it.call}
	return emit(&s.out)
}

// messageDone emits the text of a message that arrived complete.
func (s *streamDecoder) messageDone(it *streamItem, o *outputItem, emit func(*chat.Delta) error) error {
	if !it.pieces {
		for i := range o.parts {
			kind := chat.DeltaText
			if o.parts[i].Kind == chat.Refusal {
				kind, s.refused = chat.DeltaRefusal, true
			}
			e := streamEvent{index: it.index, part: i, delta: wire.AppendJSONString(nil, o.parts[i].Text)}
			if err := s.text(kind, &e, emit); err != nil {
				return err
			}
		}
	}
	return s.blockStop(it, emit)
}

// reasoningDone emits the signature of reasoning, and its text if that arrived complete.
func (s *streamDecoder) reasoningDone(it *streamItem, o *outputItem, emit func(*chat.Delta) error) error {
	p := o.reasoned()
	if !it.pieces && p.Text != "" {
		e := streamEvent{kind: "response.output_item.done", index: it.index, delta: wire.AppendJSONString(nil, p.Text)}
		if err := s.thinking(&e, emit); err != nil {
			return err
		}
	}
	if p.Signature != "" {
		if err := s.start(nil, emit); err != nil {
			return err
		}
		if it.block < 0 {
			it.block = s.blocks
			s.blocks++
		}
		s.m.Started = true
		s.pending = append(s.pending, p)
		s.out = chat.Delta{Kind: chat.DeltaSignature, Block: it.block, Call: -1, JSON: wire.AppendJSONString(nil, p.Signature)}
		if err := emit(&s.out); err != nil {
			return err
		}
	}
	return s.blockStop(it, emit)
}

// note returns a source of the text of a part that has begun.
func (s *streamDecoder) note(e *streamEvent, emit func(*chat.Delta) error) error {
	it := s.item(e.index, "message")
	if it.block < 0 || it.part != e.part || e.note == nil {
		return nil
	}
	s.out = chat.Delta{Kind: chat.DeltaCitation, Block: it.block, Call: -1, JSON: e.note}
	return emit(&s.out)
}

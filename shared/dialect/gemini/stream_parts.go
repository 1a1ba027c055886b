package gemini

import (
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// cite returns the sources of the text, which are known only at the end of the answer.
func (s *streamDecoder) cite(ch *streamChoice, emit func(*chat.Delta) error) error {
	if len(ch.grounding) == 0 || len(ch.said) == 0 {
		return nil
	}
	d := wire.NewDecoder(citations(ch.grounding, string(ch.said)))
	for range each(d) {
		s.out = chat.Delta{Kind: chat.DeltaCitation, Choice: ch.index, Block: ch.saidAt, Call: -1, JSON: d.Raw()}
		if err := emit(&s.out); err != nil {
			return err
		}
	}
	return nil
}

// close ends the open block of a candidate.
func (s *streamDecoder) close(ch *streamChoice, emit func(*chat.Delta) error) error {
	if ch.open == blockNone {
		return nil
	}
	ch.open = blockNone
	s.out = chat.Delta{Kind: chat.DeltaBlockStop, Choice: ch.index, Block: ch.block, Call: -1}
	ch.block++
	return emit(&s.out)
}

// piece returns a piece of a block.
func (s *streamDecoder) piece(ch *streamChoice, kind chat.DeltaKind, raw, logprobs []byte, emit func(*chat.Delta) error) error {
	s.m.Started = true
	s.m.OutputBytes += int64(wire.TextLen(raw))
	s.m.Pieces++
	if !utf8.Valid(raw) {
		s.scratch = wire.AppendJSONString(s.scratch[:0], wire.AppendUnquoted(nil, raw))
		raw = s.scratch
	}
	s.out = chat.Delta{Kind: kind, Choice: ch.index, Block: ch.block, Call: -1, JSON: raw, Logprobs: logprobs}
	return emit(&s.out)
}

// part returns one part.
func (s *streamDecoder) part(ch *streamChoice, p *part, logprobs []byte, emit func(*chat.Delta) error) error {
	signature := mark(s.t, p.signature)
	thought := p.text != nil && p.thought && len(p.text) > 2
	empty := p.empty()
	if signature != "" || !empty {
		if err := s.release(ch, emit); err != nil {
			return err
		}
	}
	if signature != "" && !thought {
		if empty && ch.open == blockText {
			ch.held = signature
			return nil
		}
		if err := s.sign(ch, "", signature, emit); err != nil {
			return err
		}
	}
	switch {
	case p.call:
		return s.call(ch, p, signature, emit)
	case p.text != nil:
		if len(p.text) <= 2 {
			return nil
		}
		kind, block := chat.DeltaText, blockText
		if p.thought {
			kind, block = chat.DeltaThinking, blockThought
		}
		if ch.open != block {
			if err := s.close(ch, emit); err != nil {
				return err
			}
			ch.open = block
		}
		if kind == chat.DeltaText && (len(ch.said) == 0 || ch.saidAt == ch.block) {
			ch.said, ch.saidAt = wire.AppendUnquoted(ch.said, p.text), ch.block
		}
		if err := s.piece(ch, kind, p.text, logprobs, emit); err != nil || !thought || signature == "" {
			return err
		}
		return s.sign(ch, string(wire.AppendUnquoted(nil, p.text)), signature, emit)
	}
	kind, raw := chat.DeltaForeign, []byte(p.block())
	if address := p.image(); address != "" {
		kind, raw = chat.DeltaImage, wire.AppendJSONString(nil, address)
	}
	if raw == nil {
		return nil
	}
	if err := s.close(ch, emit); err != nil {
		return err
	}
	s.m.Started = true
	s.m.OutputBytes += int64(len(raw))
	s.out = chat.Delta{Kind: kind, Choice: ch.index, Block: ch.block, Call: -1, JSON: raw}
	return s.whole(ch, emit)
}

// whole emits a delta that is a complete block, and the block's end.
func (s *streamDecoder) whole(ch *streamChoice, emit func(*chat.Delta) error) error {
	if err := emit(&s.out); err != nil {
		return err
	}
	s.out = chat.Delta{Kind: chat.DeltaBlockStop, Choice: ch.index, Block: ch.block, Call: -1}
	ch.block++
	return emit(&s.out)
}

// sign emits a signature: in the open thought, or in a separate block before the part
// that it signs.
func (s *streamDecoder) sign(ch *streamChoice, thought, signature string, emit func(*chat.Delta) error) error {
	ch.pending = append(ch.pending, chat.Part{Kind: chat.Reasoned, Origin: name, Text: thought, Signature: signature})
	if thought == "" {
		if err := s.close(ch, emit); err != nil {
			return err
		}
	}
	ch.open = blockThought
	s.out = chat.Delta{Kind: chat.DeltaSignature, Choice: ch.index, Block: ch.block, Call: -1, JSON: wire.AppendJSONString(nil, signature)}
	if err := emit(&s.out); err != nil {
		return err
	}
	return s.close(ch, emit)
}

// release returns the signature that was held.
func (s *streamDecoder) release(ch *streamChoice, emit func(*chat.Delta) error) error {
	if ch.held == "" {
		return nil
	}
	signature := ch.held
	ch.held = ""
	return s.sign(ch, "", signature, emit)
}

// call emits a call, which arrives completely.
func (s *streamDecoder) call(ch *streamChoice, p *part, signature string, emit func(*chat.Delta) error) error {
	if err := s.close(ch, emit); err != nil {
		return err
	}
	s.m.Started = true
	args := p.arguments()
	s.m.OutputBytes += int64(len(p.callName) + len(args))
	s.m.Pieces++
	id := s.ids.id(p.callID, s.h.id, ch.index, ch.calls)
	if len(ch.pending) > 0 {
		s.signed = append(s.signed, chat.Signed{ToolCallID: id, Parts: ch.pending})
		ch.pending = nil
	}
	n := ch.calls
	ch.calls++
	s.out = chat.Delta{Kind: chat.DeltaToolStart, Choice: ch.index, Block: ch.block, Call: n, ID: id, Name: p.callName, Signature: signature}
	if err := emit(&s.out); err != nil {
		return err
	}
	s.out = chat.Delta{Kind: chat.DeltaToolArgs, Choice: ch.index, Block: ch.block, Call: n, JSON: wire.AppendJSONString(nil, args)}
	if err := emit(&s.out); err != nil {
		return err
	}
	s.out = chat.Delta{Kind: chat.DeltaBlockStop, Choice: ch.index, Block: ch.block, Call: n}
	ch.block++
	return emit(&s.out)
}

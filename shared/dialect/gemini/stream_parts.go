package gemini

import (
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// cite returns the sources of the text, which are known only at the end of the response.
func (s *streamDecoder) cite(ch *streamChoice, emit func(*chat.Delta) error) error {
	if len(ch.grounding) == 0 || len(ch.firstText) == 0 {
		return nil
	}
	d := wire.NewDecoder(citations(ch.grounding, string(ch.firstText)))
	for range each(d) {
		s.out = chat.Delta{Kind: chat.DeltaCitation, Choice: ch.index, Block: ch.firstTextBlock, Call: -1, JSON: d.Raw()}
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
	s.m.Chunks++
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
			ch.pendingSignature = signature
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
		if kind == chat.DeltaText && (len(ch.firstText) == 0 || ch.firstTextBlock == ch.block) {
			ch.firstText, ch.firstTextBlock = wire.AppendUnquoted(ch.firstText, p.text), ch.block
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
	if ch.pendingSignature == "" {
		return nil
	}
	signature := ch.pendingSignature
	ch.pendingSignature = ""
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
	s.m.Chunks++
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

// support is a stretch of the response, in bytes, and the sources that it rests on.
type support struct {
	part, start, end int64
	chunks           []int64
}

// citations returns the sources of a text in groundingMetadata, as a list of url_citation
// objects with positions in code points; nil if there are none.
func citations(grounding []byte, text string) []byte {
	if grounding == nil {
		return nil
	}
	var sources []citation.Citation
	var supports []support
	d := wire.NewDecoder(grounding)
	for key := range d.Object {
		switch string(key) {
		case "groundingChunks":
			for range each(d) {
				sources = append(sources, source(d))
			}
		case "groundingSupports":
			for range each(d) {
				supports = append(supports, readSupport(d))
			}
		}
	}
	if d.End() != nil {
		return nil
	}
	var out []byte
	for _, s := range supports {
		if s.part > 0 || s.start >= s.end || s.end > int64(len(text)) {
			continue
		}
		start := utf8.RuneCountInString(text[:s.start])
		end := start + utf8.RuneCountInString(text[s.start:s.end])
		for _, i := range s.chunks {
			if i >= int64(len(sources)) || sources[i].URL == "" {
				continue
			}
			c := sources[i]
			c.Placed, c.Start, c.End = true, start, end
			if out == nil {
				out = append(out, '[')
			} else {
				out = append(out, ',')
			}
			out = c.AppendFlat(out, 0, end)
		}
	}
	if out == nil {
		return nil
	}
	return append(out, ']')
}

// each ranges over a list; anything else counts as an empty one.
func each(d *wire.Decoder) func(yield func(int) bool) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return func(func(int) bool) {}
	}
	return d.Array
}

// source reads a grounding chunk: {web: {uri, title}}, or the like of another tool.
func source(d *wire.Decoder) (c citation.Citation) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return c
	}
	for range d.Object {
		if d.Kind() != wire.KindObject {
			d.Skip()
			continue
		}
		for key := range d.Object {
			switch string(key) {
			case "uri":
				c.URL = upstream.OptString(d)
			case "title":
				c.Title = upstream.OptString(d)
			}
		}
	}
	return c
}

func readSupport(d *wire.Decoder) (s support) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return s
	}
	for key := range d.Object {
		switch string(key) {
		case "segment":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				switch string(key) {
				case "partIndex":
					s.part = whole(d)
				case "startIndex":
					s.start = whole(d)
				case "endIndex":
					s.end = whole(d)
				}
			}
		case "groundingChunkIndices":
			for range each(d) {
				s.chunks = append(s.chunks, whole(d))
			}
		}
	}
	return s
}

func whole(d *wire.Decoder) int64 {
	var n chat.Opt[int64]
	upstream.Count(d, &n)
	return n.Value
}

package converse

import (
	"encoding/base64"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// block is one content block. Blocks of text and reasoning begin with their
// first piece.
type block struct {
	index    int
	tool     bool
	response bool // the hidden tool
	call     int
	sent     bool   // a piece of the arguments was given
	text     []byte // of reasoning, buffered until its signature arrives
	sign     []byte
	hidden   []byte // redacted reasoning, decoded
	format   string // of an image
	image    []byte // decoded
	closed   bool
}

// maxBlocks bounds the blocks of a stream.
const maxBlocks = 4096

// find returns the block at index, which begins with this event if it is new.
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
	index, id, tool, format, isTool := 0, "", "", "", false
	for key := range d.Object {
		switch string(key) {
		case "contentBlockIndex":
			index = readIndex(d)
		case "start":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) == "image" {
					format, _ = readImage(d)
					continue
				}
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
		b.format = format
		return nil
	}
	b.tool = true
	if tool == chat.ResponseTool {
		b.response, s.hidden = true, true
		return nil
	}
	b.call = s.calls
	s.calls++
	s.m.Started = true
	if len(s.pending) > 0 && id != "" {
		s.signed = append(s.signed, chat.Signed{ToolCallID: id, Parts: s.pending})
		s.pending = nil
	}
	s.m.OutputBytes += int64(len(tool))
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
	case len(p.image) > 0:
		return s.picture(b, p.image)
	case p.citation != nil:
		s.out = chat.Delta{Kind: chat.DeltaCitation, Block: b.index, JSON: p.citation}
		return emit(&s.out)
	}
	return nil
}

// piece returns a piece of a block as a delta of kind.
func (s *streamDecoder) piece(kind chat.DeltaKind, b *block, raw []byte, emit func(*chat.Delta) error) error {
	if len(raw) <= 2 {
		return nil
	}
	s.m.Started = true
	s.m.OutputBytes += int64(wire.TextLen(raw))
	s.m.Chunks++
	s.out = chat.Delta{Kind: kind, Block: b.index, Call: b.call, Response: b.response, JSON: s.valid(raw)}
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
	if b.response {
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
	case len(b.image) > 0:
		s.m.Chunks++
		s.out = chat.Delta{Kind: chat.DeltaImage, Block: b.index, Call: -1, JSON: b.address()}
		if err := emit(&s.out); err != nil {
			return err
		}
	case len(b.sign) > 0:
		s.pending = append(s.pending, chat.Part{Kind: chat.Reasoned, Origin: s.origin, Text: string(b.text), Signature: string(b.sign)})
	}
	s.out = chat.Delta{Kind: chat.DeltaBlockStop, Block: b.index, Call: b.call}
	return emit(&s.out)
}

package openai

import (
	"bytes"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
)

// appendAnnotations writes the sources with an address of a response's texts, or nothing if
// there are none. Their positions count from the beginning of the complete content.
func appendAnnotations(dst []byte, parts []chat.Part) []byte {
	cited := false
	for i := range parts {
		cited = cited || parts[i].Kind == chat.Text && len(parts[i].Citations) > 0
	}
	if !cited {
		return dst
	}
	start := len(dst)
	dst = append(dst, `,"annotations":[`...)
	none := len(dst)
	offset := 0
	for i := range parts {
		p := &parts[i]
		if p.Kind != chat.Text {
			continue
		}
		length := utf8.RuneCountInString(p.Text)
		behind := len(dst)
		if behind > none && len(p.Citations) > 0 {
			dst = append(dst, ',')
		}
		comma := len(dst)
		dst = citation.Join(dst, p.Citations, func(dst []byte, c *citation.Citation) []byte { return c.AppendNested(dst, offset, length) })
		if len(dst) == comma {
			dst = dst[:behind]
		}
		offset += length
	}
	if len(dst) == none {
		return dst[:start]
	}
	return append(dst, ']')
}

// noted is what annotations of a streamed choice need to know about its text. Lengths are
// in code points.
type noted struct {
	said    int // text so far
	block   int // block of the last text
	start   int // where it began
	waiting []citation.Citation
}

// notes finds the notes of a choice.
func (s *streamEncoder) notes(choice int) *noted {
	if s.noted == nil {
		s.noted = s.first[:0] // most answers have one choice
	}
	for len(s.noted) <= choice {
		s.noted = append(s.noted, noted{})
	}
	return &s.noted[choice]
}

// said counts a piece of text.
func (s *streamEncoder) said(dst []byte, d *chat.Delta) []byte {
	if d.Choice >= len(s.noted) || s.noted[d.Choice].block != d.Block {
		dst = s.enter(dst, d)
	}
	s.noted[d.Choice].said += citation.Length(d.JSON)
	return dst
}

// enter notes which block of a choice is written.
func (s *streamEncoder) enter(dst []byte, d *chat.Delta) []byte {
	if n := s.notes(d.Choice); n.block != d.Block {
		dst = s.annotate(dst, d.Choice)
		n.block, n.start = d.Block, n.said
	}
	return dst
}

// cited returns a source of the text: at once if its place is known, otherwise when its
// block has ended.
func (s *streamEncoder) cited(dst []byte, d *chat.Delta) []byte {
	dst = s.block(dst, d, "citation")
	c := citation.Read(d.JSON)
	if c.URL == "" {
		return dst
	}
	dst = s.enter(dst, d)
	n := s.notes(d.Choice)
	if !c.Placed {
		n.waiting = append(n.waiting, c)
		return dst
	}
	return s.annotation(dst, d.Choice, &c)
}

// annotate returns the sources that waited for the end of their block.
func (s *streamEncoder) annotate(dst []byte, choice int) []byte {
	if choice >= len(s.noted) {
		return dst
	}
	n := &s.noted[choice]
	for i := range n.waiting {
		dst = s.annotation(dst, choice, &n.waiting[i])
	}
	n.waiting = n.waiting[:0]
	return dst
}

func (s *streamEncoder) annotation(dst []byte, choice int, c *citation.Citation) []byte {
	n := s.notes(choice)
	dst = s.open(dst, choice)
	dst = append(dst, `"annotations":[`...)
	dst = c.AppendNested(dst, n.start, n.said-n.start)
	dst = append(dst, ']')
	return s.close(dst)
}

// annotations puts the sources that are beside a content on its text.
func annotations(raw []byte, text []chat.Part) {
	if raw == nil || len(text) != 1 || len(bytes.TrimSpace(raw)) <= 2 {
		return
	}
	text[0].Citations = bytes.Clone(raw)
}

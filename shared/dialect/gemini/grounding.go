package gemini

import (
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// support is a stretch of the answer, in bytes, and the sources that it rests on.
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

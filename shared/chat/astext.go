package chat

import (
	"slices"
	"strings"

	"gateway/shared/wire"
)

// asText returns the text of an Anthropic-only block that any model can read: a search result,
// or the name of a found tool.
func (p *Part) asText() (string, bool) {
	if p.Kind != Foreign || p.Type != "search_result" && p.Type != "tool_reference" {
		return "", false
	}
	var lines []string
	d := wire.NewDecoder(p.Raw)
	for key := range d.Object {
		switch string(key) {
		case "title", "source", "tool_name":
			if d.Kind() == wire.KindString {
				lines = append(lines, d.Str())
			}
		case "content":
			if d.Kind() != wire.KindArray {
				continue
			}
			for range d.Array {
				if d.Kind() != wire.KindObject {
					continue
				}
				for inner := range d.Object {
					if string(inner) == "text" && d.Kind() == wire.KindString {
						lines = append(lines, d.Str())
					}
				}
			}
		}
	}
	return strings.Join(lines, "\n"), d.Err() == nil && len(lines) > 0
}

// withTexts returns r with such blocks converted to text and reported, or r itself if it has
// none.
func (r *Request) withTexts(loss *Loss) *Request {
	out := r
	for i := range r.Messages {
		m := &r.Messages[i]
		parts := inText(m.Parts, loss, func(p *Part) string { return m.Path(p) })
		for j := range parts {
			p := &parts[j]
			if p.Result == nil {
				continue
			}
			inner := inText(p.Result.Parts, loss, func(q *Part) string { return m.inResult(p, q) })
			if len(inner) > 0 && &inner[0] != &p.Result.Parts[0] {
				if &parts[0] == &m.Parts[0] {
					parts = slices.Clone(parts)
					p = &parts[j]
				}
				result := *p.Result
				result.Parts, result.Plain, p.Result = inner, false, &result
			}
		}
		if len(parts) > 0 && &parts[0] != &m.Parts[0] {
			if out == r {
				c := *r
				c.Messages, out = slices.Clone(r.Messages), &c
			}
			out.Messages[i].Parts = parts
		}
	}
	return out
}

// inText returns parts with such blocks converted to text, or parts itself if it has none.
func inText(parts []Part, loss *Loss, path func(*Part) string) []Part {
	out := parts
	for i := range parts {
		text, ok := parts[i].asText()
		if !ok {
			continue
		}
		if &out[0] == &parts[0] {
			out = slices.Clone(parts)
		}
		out[i] = Part{Kind: Text, Text: text, Cache: parts[i].Cache, At: parts[i].At}
		loss.Add(path(&parts[i]), "given as text")
	}
	return out
}

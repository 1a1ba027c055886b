package openai

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// maxBreakpoints is how many prefixes a request may have the provider keep, the last
// ones; with the one that it sets itself it writes one less.
const maxBreakpoints = 4

// Breakpoints writes the cache markers of a request as the models of OpenAI take them
// that are told where a prefix ends: on texts, images and files of what is said to the
// model. Both dialects of OpenAI have them.
type Breakpoints struct{ left int } // out, from the front

// NewBreakpoints counts the markers of r that have a place.
func NewBreakpoints(r *chat.Request) Breakpoints {
	n := 0
	for i := range r.Messages {
		m := &r.Messages[i]
		for j := range m.Parts {
			if p := &m.Parts[j]; p.Cache != chat.NoCache && TakesBreakpoint(m, p) {
				n++
			}
		}
	}
	return Breakpoints{max(0, n-maxBreakpoints)}
}

// TakesBreakpoint tells whether a part may end a prefix.
func TakesBreakpoint(m *chat.Message, p *chat.Part) bool {
	switch m.Role {
	case chat.System, chat.Developer, chat.User:
		return p.Kind == chat.Text || p.Kind == chat.Image || p.Kind == chat.Document
	}
	return false
}

// Append writes the marker c as a member of the object that is open in dst, or reports
// it; path names its part.
func (b *Breakpoints) Append(dst []byte, c chat.Cache, loss *chat.Loss, path string) []byte {
	if b.left > 0 {
		b.left--
		loss.Add(path+".cache_control", "more than 4 cache markers")
		return dst
	}
	if c == chat.Cache1h {
		loss.Add(path+".cache_control.ttl", "the provider keeps it for half an hour")
	}
	return append(dst, `,"prompt_cache_breakpoint":{"mode":"explicit"}`...)
}

// ReadBreakpoint reads {mode:"explicit",ttl:"30m"|"12h"} of a content part of r. What
// is no object marks nothing.
func ReadBreakpoint(d *wire.Decoder, r *chat.Request) chat.Cache {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return chat.NoCache
	}
	r.Breakpoints = true
	c := chat.CacheShort
	for key := range d.Object {
		if string(key) == "ttl" && upstream.OptString(d) == "12h" {
			c = chat.Cache1h // the longest that others have
		}
	}
	return c
}

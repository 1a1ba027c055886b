package openai

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// maxBreakpoints is how many prefixes the provider caches for a request, the last ones.
// If it also sets a marker itself, it caches one less of these.
const maxBreakpoints = 4

// Breakpoints writes the cache markers of a request for those models of OpenAI that
// require explicit ends of prefixes: on texts, images and files of messages to the model.
// Both dialects of OpenAI have such markers.
type Breakpoints struct{ left int } // how many are omitted, from the front

// NewBreakpoints counts the markers of r in places where they are allowed.
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

// TakesBreakpoint reports whether a part may end a prefix.
func TakesBreakpoint(m *chat.Message, p *chat.Part) bool {
	switch m.Role {
	case chat.System, chat.Developer, chat.User:
		return p.Kind == chat.Text || p.Kind == chat.Image || p.Kind == chat.Document
	}
	return false
}

// Append writes the marker c as a field of the object that is open in dst, or reports
// it; path names its part.
func (b *Breakpoints) Append(dst []byte, c chat.Cache, loss *chat.Loss, path string) []byte {
	if b.left > 0 {
		b.left--
		loss.Add(path+".cache_control", "more than 4 cache markers")
		return dst
	}
	if c == chat.Cache1h {
		loss.Add(path+".cache_control.ttl", "the provider caches it for half an hour")
	}
	return append(dst, `,"prompt_cache_breakpoint":{"mode":"explicit"}`...)
}

// ReadBreakpoint reads {mode:"explicit",ttl:"30m"|"12h"} of a content part of r. Anything
// but an object is no marker.
func ReadBreakpoint(d *wire.Decoder, r *chat.Request) chat.Cache {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return chat.NoCache
	}
	r.Breakpoints = true
	c := chat.CacheShort
	for key := range d.Object {
		if string(key) == "ttl" && upstream.OptString(d) == "12h" {
			c = chat.Cache1h // the longest time that other providers have
		}
	}
	return c
}

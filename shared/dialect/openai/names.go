package openai

import (
	"gateway/shared/dialect/events"
	"gateway/shared/wire"
)

// Some hosts send the name of a call in pieces. Of OpenAI's libraries one joins names and
// another replaces them, so only a complete name in the first piece reaches clients of
// both. The first piece of a call waits for the next chunk, which usually begins the
// arguments.

// heldStart is the first piece of a call that waits; data is nil while none does.
type heldStart struct {
	event, name string // of the server-sent event, and of the call
	data        []byte
	choice, key int
}

// startsCall reports whether a chunk only begins a call, without arguments.
func (c *chunk) startsCall() bool {
	if len(c.choices) != 1 || c.usage.known() {
		return false
	}
	ch := &c.choices[0]
	if len(ch.calls) != 1 || ch.finish != nil || ch.size() != inside(ch.calls[0].name) {
		return false
	}
	call := &ch.calls[0]
	return len(call.id) > 2 && len(call.name) > 2
}

// continued returns the further piece of the name of the call that waits; empty if the chunk
// has none.
func (h *heldStart) continued(c *chunk) string {
	if h.data == nil || len(c.choices) != 1 || c.choices[0].index != h.choice || len(c.choices[0].calls) != 1 {
		return ""
	}
	call := &c.choices[0].calls[0]
	if call.hasIndex && call.index != h.key || len(call.id) > 2 && len(call.args) > 2 {
		return ""
	}
	if name := unquote(call.name); joinedName(h.name, name) != h.name {
		return name
	}
	return ""
}

// holdName lets the first piece of a call wait, or joins its name with the piece that a
// chunk brings. It reports whether nothing is left of the chunk to forward.
func (f *filter) holdName(e *events.Event, c *chunk) bool {
	if piece := f.start.continued(c); piece != "" {
		f.start.name = joinedName(f.start.name, piece)
		if len(c.choices[0].calls[0].args) <= 2 && c.choices[0].finish == nil {
			return true
		}
		f.releaseName()
		f.shaper.strict, f.shaper.stream, f.shaper.rename = f.o.Strict, true, true
		f.emit(wire.AppendSSE(nil, string(e.Name), f.shaper.rewrite(f.visible(e))))
		f.shaper.rename = false
		return true
	}
	f.releaseName()
	if !c.startsCall() {
		return false
	}
	call := &c.choices[0].calls[0]
	data := f.visible(e)
	if f.foreign(c) {
		f.shaper.strict, f.shaper.stream = f.o.Strict, true
		data = f.shaper.rewrite(data)
	}
	f.start = heldStart{string(e.Name), unquote(call.name), append([]byte(nil), data...), c.choices[0].index, call.index}
	return true
}

// releaseName forwards the first piece of a call, with the complete name.
func (f *filter) releaseName() {
	if f.start.data == nil {
		return
	}
	n := conformer{rename: true, name: f.start.name}
	f.emit(wire.AppendSSE(nil, f.start.event, n.rewrite(f.start.data)))
	f.start.data = nil
}

package anthropic

import (
	"strconv"

	"gateway/shared/chat"
)

func indexed(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// place is something in the client's body. Its path is only made when it is
// needed.
type place struct {
	m    *chat.Message
	p    *chat.Part // nil for the message itself
	list string     // of tools, when m is nil
	i    int
}

// String is the JSON path of the place.
func (w place) String() string {
	m, p := w.m, w.p
	if m == nil {
		return indexed(w.list, w.i)
	}
	if m.At < 0 {
		return indexed("system", p.At)
	}
	at := indexed("messages", m.At)
	switch {
	case p == nil:
		return at
	case p.Kind == chat.Call:
		return at + "." + indexed("tool_calls", p.At)
	case m.Plain:
		return at + ".content"
	}
	return at + "." + indexed("content", p.At)
}

func path(m *chat.Message, p *chat.Part) string { return place{m: m, p: p}.String() }

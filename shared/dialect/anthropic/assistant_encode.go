package anthropic

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// legalID is a tool call's id in the letters that the provider takes. Ids of
// this and the OpenAI dialect are not changed.
func legalID(id string) string { return chat.LegalName(id, len(id)) }

// assistant writes a message of the assistant: reasoning first, then the rest in order.
// last means that it is the last of the conversation, which the model continues.
func assistant(e *requestEncoder, m *chat.Message, last bool) (int, error) {
	dropName(e, m)
	e.b = append(e.b, `{"role":"assistant","content":[`...)
	n := 0
	next := func() {
		if n++; n > 1 {
			e.b = append(e.b, ',')
		}
	}
	inOrder, first := interleaved(m), firstCall(m)
	if !inOrder {
		for _, p := range reasoning(e, m) {
			next()
			thought(e, &p)
		}
	}
	for i := range m.Parts {
		p := &m.Parts[i]
		switch p.Kind {
		case chat.Reasoned, chat.RedactedReasoned:
			switch {
			case !signed(p) && (first == nil || e.recalled[first] == nil):
				e.loss.Add(path(m, p), "reasoning without this provider's signature")
			case inOrder && signed(p):
				next()
				thought(e, p)
			}
		case chat.Call:
			if p != first {
				for _, q := range e.recalled[p] {
					next()
					thought(e, &q)
				}
			}
			next()
			if err := encodeCall(e, m, p); err != nil {
				return n, err
			}
		case chat.Image:
			e.loss.Add(path(m, p), chat.ImageOfAssistant)
		default:
			start := len(e.b)
			if n > 0 {
				e.b = append(e.b, ',')
			}
			q := *p
			if last && i == len(m.Parts)-1 && p.Kind == chat.Text {
				q.Text = strings.TrimRight(p.Text, " \t\r\n")
			}
			ok, err := part(e, &q, place{m: m, p: p})
			if err != nil {
				return n, err
			}
			if !ok {
				e.b = e.b[:start]
				continue
			}
			n++
		}
	}
	e.b = append(e.b, `]}`...)
	return n, nil
}

// interleaved reports whether the client returned signed reasoning after other blocks, in
// the order of the response. Then that order is preserved.
func interleaved(m *chat.Message) bool {
	other := false
	for i := range m.Parts {
		p := &m.Parts[i]
		if signed(p) && other {
			return true
		}
		other = other || !signed(p)
	}
	return false
}

// thought writes signed reasoning unchanged.
func thought(e *requestEncoder, p *chat.Part) {
	if p.Kind == chat.RedactedReasoned {
		e.b = append(e.b, `{"type":"redacted_thinking","data":`...)
		e.b = wire.AppendJSONString(e.b, p.Data)
		e.b = append(e.b, '}')
		return
	}
	e.b = append(e.b, `{"type":"thinking","thinking":`...)
	e.b = wire.AppendJSONString(e.b, p.Text)
	str(e, "signature", p.Signature)
	e.b = append(e.b, '}')
}

// encodeCall writes one tool_use block. Empty arguments are an empty object; others
// must be one and go out byte for byte.
func encodeCall(e *requestEncoder, m *chat.Message, p *chat.Part) error {
	c := p.Call
	at := place{m: m, p: p}
	if c.ID == "" {
		return fault.Invalid(at.String()+".id", "%s.id must name the call", at)
	}
	args := strings.TrimSpace(c.Arguments)
	switch {
	case c.Custom:
		args = string(append(wire.AppendJSONString([]byte(`{"input":`), c.Arguments), '}'))
	case args == "":
		args = "{}"
	case !jsonObject([]byte(args)):
		field := at.String() + ".function.arguments"
		if strings.HasPrefix(c.ID, "call_function_") && e.r.Legacy {
			field = path(m, nil) + ".function_call.arguments"
		}
		return fault.Invalid(field, "%s of the call %q must be a JSON object", field, c.ID)
	}
	e.b = append(e.b, `{"type":"tool_use","id":`...)
	e.b = wire.AppendJSONString(e.b, legalID(c.ID))
	str(e, "name", chat.LegalName(c.Name, e.max))
	encodeKey(e, "input")
	e.b = append(e.b, args...)
	marker(e, p.Cache, at)
	e.b = append(e.b, '}')
	return nil
}

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
	case m.IsString:
		return at + ".content"
	}
	return at + "." + indexed("content", p.At)
}

func path(m *chat.Message, p *chat.Part) string { return place{m: m, p: p}.String() }

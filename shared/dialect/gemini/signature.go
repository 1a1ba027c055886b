package gemini

import (
	"gateway/shared/chat"
)

// standIn is the documented value for calls with an unknown signature because another
// model or a person wrote them.
const standIn = "skip_thought_signature_validator"

// maker is the host that signs: no host takes another's signatures.
func maker(t *chat.Traits) string {
	if t.Provider == "" {
		return name
	}
	return t.Provider
}

// mark returns a signature as clients and memories keep it.
func mark(t *chat.Traits, signature string) string {
	if signature == "" {
		return ""
	}
	return chat.MarkSigned(maker(t), signature)
}

// own takes a signature back; "" when this host did not make it.
func own(t *chat.Traits, marked string) string {
	by, value, ok := chat.UnmarkSigned(marked)
	if ok && by == name { // it was marked a second time, with the dialect
		if inner, v, again := chat.UnmarkSigned(value); again {
			by, value = inner, v
		}
	}
	if !ok || by != maker(t) {
		return ""
	}
	return value
}

// signed are the signatures of the parts of one message as the provider had
// them.
type signed struct {
	of []string
	// moved marks thinking parts with a signature that went to the part after them.
	moved []bool
}

// maxRecalls bounds the tool calls that are looked up for one request. The oldest are
// omitted; no model insists on their signatures.
const maxRecalls = 64

// signatures restores signatures. An empty thinking part signs the part after it.
// Signatures that the client did not return are looked up by the call's id. If the first
// call of a turn still has none, it gets the placeholder if the model requires one.
func signatures(e *requestEncoder, m *chat.Message) signed {
	s := signed{of: make([]string, len(m.Parts)), moved: make([]bool, len(m.Parts))}
	if m.Role != chat.Assistant {
		return s
	}
	var pending []int // empty thinking parts with a signature that waits for a call
	firstCall := true
	for i := range m.Parts {
		p := &m.Parts[i]
		switch {
		case p.Kind == chat.Reasoned && p.Signature != "":
			if s.of[i] = own(e.t, p.Signature); s.of[i] == "" {
				e.loss.Add(path(m, p)+".signature", "made by another provider")
			} else if p.Text == "" {
				pending = append(pending, i)
			}
		case p.Kind == chat.Call:
			s.of[i] = callSignature(e, p.Call)
			if len(pending) > 0 {
				from := pending[0]
				pending = pending[1:]
				s.moved[from] = true
				if s.of[i] == "" {
					s.of[i] = s.of[from]
				}
			}
			if s.of[i] == "" && firstCall {
				s.of[i] = recalled(e, p.Call.ID)
			}
			if s.of[i] == "" && firstCall && e.t.SignedCalls {
				s.of[i] = standIn
			}
			firstCall = false
		case p.Kind == chat.Text || p.Kind == chat.Image || p.Kind == chat.Foreign:
			// Clients of the OpenAI shape give blocks and calls separately: a signature belongs
			// to the part directly after it, unless a call follows at the end.
			if n := len(pending); n > 0 && pending[n-1] == i-1 {
				s.of[i], s.moved[i-1] = s.of[i-1], true
				pending = pending[:n-1]
			}
		}
	}
	return s
}

// callSignature is the signature that a client gave back with the call itself.
func callSignature(e *requestEncoder, c *chat.ToolCall) string {
	if c.Signature == "" {
		return ""
	}
	if _, _, marked := chat.UnmarkSigned(c.Signature); !marked {
		return c.Signature // the provider's value, kept by the client
	}
	return own(e.t, c.Signature)
}

// planRecalls counts the turns with calls that will not be looked up.
func planRecalls(e *requestEncoder) {
	e.unrecalled = -maxRecalls
	for i := range e.r.Messages {
		for j := range e.r.Messages[i].Parts {
			if e.r.Messages[i].Parts[j].Call != nil {
				e.unrecalled++
				break
			}
		}
	}
}

// recalled looks up the stored signature of the first call of a turn, for a client that
// cannot return it.
func recalled(e *requestEncoder, id string) string {
	if e.unrecalled--; e.r.Recall == nil || id == "" || e.unrecalled >= 0 {
		return ""
	}
	for _, p := range e.r.Recall(id) {
		if p.Kind == chat.Reasoned && p.Text == "" {
			if v := own(e.t, p.Signature); v != "" {
				return v
			}
		}
	}
	return ""
}

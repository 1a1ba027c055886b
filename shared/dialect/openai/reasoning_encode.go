package openai

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
)

// maxRecalls bounds the tool calls that are looked up for one request.
const maxRecalls = 64

// reasoning writes the reasoning of an assistant's message for hosts that require it:
// that returned by the client, or that stored for a call of the message.
func (e *requestEncoder) reasoning(m *chat.Message) {
	host := hosts.ReasonerOf(e.t.Provider)
	text := ""
	var foreign []*chat.Part
	for i := range m.Parts {
		switch p := &m.Parts[i]; {
		case p.Kind != chat.Reasoned && p.Kind != chat.RedactedReasoned:
		case host.Takes(p):
			text += p.Text
		case p.Text != "" || p.Data != "" || p.Signature != "":
			foreign = append(foreign, p)
		}
	}
	if host != nil && text == "" {
		text = e.recalled(host, m)
	}
	if text != "" {
		e.str(host.Field, text)
		e.keep = host.Keep
	}
	for _, p := range foreign {
		e.loss.Add(path(m, p), "reasoning of another provider")
	}
}

// recalled returns the reasoning stored for the first call of a message that has any.
func (e *requestEncoder) recalled(host *hosts.Reasoner, m *chat.Message) (text string) {
	for i := range m.Parts {
		call := m.Parts[i].Call
		if call == nil || e.r.Recall == nil || e.recalls == maxRecalls {
			continue
		}
		e.recalls++
		for _, p := range e.r.Recall(call.ID) {
			if host.Takes(&p) {
				text += p.Text
			}
		}
		if text != "" {
			return text
		}
	}
	return ""
}

package openai

import (
	"gateway/shared/chat"
	"gateway/shared/wire"
)

var _ chat.Restorer = Chat{}

var (
	restoreKeys = wire.NewKeySet("messages", "tools")
	turnKeys    = wire.NewKeySet("reasoning_content") // the field of all hosts that require it
)

// Restore implements chat.Restorer. The newest turns are restored first, up to one without stored
// reasoning: a conversation that the host never reasoned in costs a single lookup.
func (Chat) Restore(body []byte, t *chat.Traits, recall func(toolCallID string) []chat.Part) (restored []byte, forgets bool) {
	host := reasoner(t)
	var w wire.Walk
	if host == nil || !host.Required || restoreKeys.Walk(body, &w) != nil || !w.Spans[1].Present(body) {
		return body, false
	}
	r, err := decodeChatRequest(body)
	if err != nil {
		return body, false
	}
	r.LoadReasoning = recall
	e := requestEncoder{r: r}
	texts := map[int]string{} // by the index of the message
	forgets = true
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := &r.Messages[i]
		calls, reasoned := false, false
		for j := range m.Parts {
			calls = calls || m.Parts[j].Call != nil
			reasoned = reasoned || host.Accepts(&m.Parts[j])
		}
		if !calls {
			continue
		}
		if reasoned {
			forgets = false
			continue
		}
		text := e.recalled(host, m)
		if text == "" {
			break
		}
		texts[m.At] = text
	}
	if len(texts) == 0 {
		return body, forgets
	}
	return withReasoning(body, w.Spans[0], texts), true
}

// withReasoning returns body with texts as the reasoning of messages in the list at a span.
func withReasoning(body []byte, list wire.Span, texts map[int]string) []byte {
	var edits []wire.Edit
	var w wire.Walk
	d := wire.NewDecoder(list.Of(body))
	for i := range d.Array {
		message := d.Raw()
		if texts[i] == "" || turnKeys.Walk(message, &w) != nil {
			continue
		}
		end := list.Start + d.Offset()
		message = wire.Splice(nil, message, turnKeys.SetKey(&w, 0, wire.AppendJSONString(nil, texts[i])))
		edits = append(edits, wire.Replace(wire.Span{Start: end - (w.ObjectEnd - w.ObjectStart), End: end}, message))
	}
	return wire.Splice(nil, body, edits...)
}

package gemini

import "gateway/shared/chat"

// settle ends a turn of the model and what the user replied: each call without a result gets one. The
// AI SDK writes a picture that a tool returns as a part of the user, without a functionResponse, and
// other providers reject a call without a result.
func (q *requestDecoder) settle() {
	turn := q.r.Messages[q.start:]
	n := 0
	for n < len(turn) && turn[n].Role == chat.Assistant {
		n++
	}
	if n < len(turn) && len(q.open) > 0 {
		added := chat.Message{Role: chat.ToolRole, At: turn[n].At}
		text := "There is no result."
		for i := range turn {
			for _, p := range turn[i].Parts {
				if p.Media != nil && i >= n {
					text = "The result is in the next message."
				}
			}
		}
		for i := range turn[:n] {
			for _, p := range turn[i].Parts {
				if p.Call != nil && q.open[p.Call.ID] {
					result := &chat.ToolResult{CallID: p.Call.ID, Name: p.Call.Name, Plain: true, Parts: []chat.Part{{Kind: chat.Text, Text: text}}}
					added.Parts = append(added.Parts, chat.Part{Kind: chat.Result, Result: result})
				}
			}
		}
		q.r.Messages = append(q.r.Messages, chat.Message{})
		turn = q.r.Messages[q.start+n:]
		copy(turn[1:], turn)
		turn[0] = added
	}
	q.start = len(q.r.Messages)
	clear(q.open)
	clear(q.calls)
}

package guardrail

import (
	"gateway/shared/chat"
	"gateway/shared/guard/scan/mask"
	"gateway/shared/guard/window"
)

// Taken are values that guardrails took out of a request, which are put back into its
// answer.
type Taken struct{ values mask.Restorer }

func (t *Taken) add(values map[string]string) {
	if len(values) > 0 {
		t.values.Add(values)
	}
}

// Any tells whether something was taken out.
func (t *Taken) Any() bool { return !t.values.Empty() }

// Restored is an answer with the values of the request in the place of their tokens.
func (t *Taken) Restored(answer []byte) []byte {
	if !t.Any() {
		return answer
	}
	return t.values.JSON(answer)
}

// Hidden returns an answer as it was before values of the request were put back, for logs.
func (t *Taken) Hidden(answer []byte) []byte { return t.values.Hide(answer) }

// Restore puts values of the request back into a whole answer that is told as a
// stream.
func (t *Taken) Restore(r *chat.Response) {
	if !t.Any() {
		return
	}
	for i := range r.Choices {
		parts := r.Choices[i].Parts
		for j := range parts {
			p := &parts[j]
			p.Text = t.values.Text(p.Text)
			p.Raw, p.Citations = t.values.JSON(p.Raw), t.values.JSON(p.Citations)
			if p.Call != nil {
				call := *p.Call
				call.Arguments = string(t.values.JSON([]byte(call.Arguments)))
				p.Call = &call
			}
		}
	}
}

// Writer is a writer of answers that puts values of the request back.
func (t *Taken) Writer(to chat.AnswerWriter) chat.AnswerWriter {
	if !t.Any() {
		return to
	}
	return window.Restoring(to, &t.values)
}

package guardrail

import (
	"gateway/shared/chat"
	"gateway/shared/guard/scan/mask"
	"gateway/shared/guard/window"
)

// Taken are values that guardrails masked in a request, which are restored in its response.
type Taken struct{ values mask.Restorer }

func (t *Taken) add(values map[string]string) {
	if len(values) > 0 {
		t.values.Add(values)
	}
}

// Any reports whether a value was masked.
func (t *Taken) Any() bool { return !t.values.Empty() }

// Restored returns a response in which the request's values replace their tokens.
func (t *Taken) Restored(answer []byte) []byte {
	if !t.Any() {
		return answer
	}
	return t.values.JSON(answer)
}

// Hidden returns a response with the request's values masked again, for logs.
func (t *Taken) Hidden(answer []byte) []byte { return t.values.Hide(answer) }

// Restore restores values of the request in a complete response that is sent as a stream.
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

// Writer returns a writer of responses that restores values of the request.
func (t *Taken) Writer(to chat.AnswerWriter) chat.AnswerWriter {
	if !t.Any() {
		return to
	}
	return window.Restoring(to, &t.values)
}

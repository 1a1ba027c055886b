package openai

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
)

// thinking writes how much the model thinks before it answers, in the host's format.
func (e *requestEncoder) thinking() {
	r := e.r.Reasoning
	host := hosts.ThinkingControlOf(e.t.Provider)
	if host != nil && host.KnownOnly && e.t.MaxTokensField != "max_completion_tokens" {
		host = nil
	}
	if e.t.NoEffort || e.t.Thinking == chat.ThinksNever {
		e.dropIf(r.Effort != "", "reasoning_effort")
		e.dropIf(r.Thinking >= chat.ThinkingBudget, "thinking")
		e.dropIf(r.Display != "" && r.Thinking < chat.ThinkingBudget, "thinking.display")
		return
	}
	off := r.Thinking == chat.ThinkingOff || r.Thinking == chat.ThinkingUnset && r.Effort == "none"
	on := r.Thinking >= chat.ThinkingBudget
	e.dropIf(r.Display != "", "thinking.display")
	switch {
	case host == nil:
		e.effort(r.Effort)
		e.dropIf(on, "thinking")
		if r.Thinking == chat.ThinkingOff && r.Effort == "" {
			e.loss.Add("thinking.type", "how to disable thinking on this host is unknown")
		}
		return
	case host.Switch == hosts.EffortOnly:
		e.byEffort(host, r, on)
		return
	case host.Switch == hosts.ThinkingType && (off || on):
		e.key("thinking")
		if off {
			e.b = append(e.b, `{"type":"disabled"}`...)
			return
		}
		e.b = append(e.b, `{"type":"enabled"}`...)
	case host.Switch == hosts.EnableThinking && (off || on):
		e.bool("enable_thinking", on)
		if off {
			return
		}
		if r.Budget.Set {
			e.int("thinking_budget", r.Budget.Value)
			r.Budget.Set = false
		}
	}
	if r.Budget.Set && on {
		if r.Effort == "" && host.Efforts != "" {
			r.Effort = host.Effort(chat.EffortOf(r.Budget.Value))
			e.loss.Add("thinking.budget_tokens", "given as an effort")
		} else {
			e.loss.Add("thinking.budget_tokens", notTaken)
		}
	}
	if r.Effort == "max" && host.Effort("max") == "max" {
		e.str("reasoning_effort", "max")
		return
	}
	e.effort(r.Effort)
}

// byEffort writes the effort of a host that has no other switch.
func (e *requestEncoder) byEffort(host *hosts.ThinkingControl, r chat.Reasoning, on bool) {
	effort := r.Effort
	switch {
	case r.Thinking == chat.ThinkingOff && effort == "":
		if effort = hosts.LeastEffort(e.r.Model); effort != "none" {
			e.loss.Add("thinking.type", "this model thinks as little as possible")
		}
	case on && r.Budget.Set:
		e.loss.Add("thinking.budget_tokens", "given as an effort")
		if effort == "" {
			effort = host.Effort(chat.EffortOf(r.Budget.Value))
		}
	case on && effort == "":
		effort = "medium"
	}
	e.effort(effort)
}

// effort writes reasoning_effort. OpenAI knows no effort above xhigh.
func (e *requestEncoder) effort(effort string) {
	if effort == "max" {
		effort = "xhigh"
	}
	if effort != "" {
		e.str("reasoning_effort", effort)
	}
}

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
		case host.Accepts(p):
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
		e.preserveField = host.PreserveField
	}
	for _, p := range foreign {
		e.loss.Add(path(m, p), "reasoning of another provider")
	}
}

// recalled returns the reasoning stored for the first call of a message that has any.
func (e *requestEncoder) recalled(host *hosts.Reasoner, m *chat.Message) (text string) {
	for i := range m.Parts {
		call := m.Parts[i].Call
		if call == nil || e.r.LoadReasoning == nil || e.recalls == maxRecalls {
			continue
		}
		e.recalls++
		for _, p := range e.r.LoadReasoning(call.ID) {
			if host.Accepts(&p) {
				text += p.Text
			}
		}
		if text != "" {
			return text
		}
	}
	return ""
}

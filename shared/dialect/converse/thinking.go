package converse

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
)

// thinking is how the request tells the model to think.
type thinking struct {
	mode   chat.Thinking // ThinkingUnsaid: nothing is written
	budget int64
	effort string // empty: nothing is written
}

func (t thinking) on() bool { return t.mode >= chat.ThinkingBudget }

const (
	minBudget = 1024
	// usualMaxTokens is the bound that a budget is measured by where the client
	// set none.
	usualMaxTokens = 16384
)

// share is the part of the bound of tokens that an effort stands for, in tenths.
func share(effort string) int64 {
	switch effort {
	case "minimal":
		return 1
	case "low":
		return 2
	case "medium":
		return 5
	}
	return 8
}

// asked reports whether the client asked for thinking. minimal is little, not none.
func asked(r chat.Reasoning) bool {
	return r.On() || r.Thinking == chat.ThinkingUnsaid && r.Effort == "minimal"
}

func (e *thoughtEncoder) planThinking() error {
	e.maxTokens = e.r.MaxTokens
	r := e.r.Reasoning
	if f := e.t.Family; e.t.Thinking == chat.ThinksNever || f == familyCohere || f == familyAI21 { // which have no word for it
		if r.Thinking >= chat.ThinkingBudget {
			e.loss.Add("thinking", "this model cannot be told to think")
		}
		if r.Effort != "" && r.Effort != "none" {
			e.loss.Add("reasoning_effort", "this model cannot be told to think")
		}
		return nil
	}
	if e.t.Family == "" {
		e.planAsSaid(r)
		return nil
	}
	if e.t.Family != familyAnthropic {
		e.r.ReportBelow(e.loss, chat.BelowWay)
		e.planEffort(r)
		return nil
	}
	switch {
	case r.Thinking == chat.ThinkingOff:
		e.think.mode = chat.ThinkingOff
	case !asked(r):
	case r.Way != "":
		e.think.mode, e.think.budget = chat.ThinkingAdaptive, r.Budget.Value
	case e.t.Thinking == chat.ThinksAdaptively, e.t.Thinking == chat.ThinksEither && !(r.Thinking == chat.ThinkingBudget && r.Budget.Set):
		e.planAdaptive(r)
	default:
		if err := e.planBudget(r); err != nil {
			return err
		}
	}
	return e.checkThinking()
}

// planAsSaid: who made the model behind an ARN is not known, so that it is told
// what the client wrote.
func (e *thoughtEncoder) planAsSaid(r chat.Reasoning) {
	if r.Thinking >= chat.ThinkingBudget {
		e.think.mode, e.think.budget = r.Thinking, r.Budget.Value
		e.recall()
	}
	if r.Effort != "none" || r.Thinking == chat.ThinkingUnsaid {
		e.think.effort = r.Effort
	}
}

// planEffort: models of other makers take an effort only.
func (e *thoughtEncoder) planEffort(r chat.Reasoning) {
	if r.Budget.Set {
		e.loss.Add("thinking.budget_tokens", "this model takes an effort only")
	}
	if r.Display != "" {
		e.loss.Add("thinking.display", "this model takes an effort only")
	}
	switch effort := r.Effort; {
	case r.Thinking == chat.ThinkingOff:
	case effort == "minimal":
		e.think.mode, e.think.effort = chat.ThinkingAdaptive, "low"
	case effort == "xhigh" || effort == "max":
		e.think.mode, e.think.effort = chat.ThinkingAdaptive, "high"
	case effort != "" && effort != "none":
		e.think.mode, e.think.effort = chat.ThinkingAdaptive, effort
	case r.Thinking >= chat.ThinkingBudget:
		e.think.mode, e.think.effort = chat.ThinkingAdaptive, "medium"
	}
}

func (e *thoughtEncoder) planAdaptive(r chat.Reasoning) {
	e.think.mode, e.think.effort = chat.ThinkingAdaptive, r.Effort
	switch {
	case r.Effort == "minimal":
		e.think.effort = "low"
	case r.Effort == "none":
		e.think.effort = ""
	}
	if r.Budget.Set {
		e.loss.Add("thinking.budget_tokens", "this model sets its own budget")
	}
	if e.t.NoEffort && e.think.effort != "" {
		e.loss.Add("reasoning_effort", notTaken)
		e.think.effort = ""
	}
}

// planBudget sets a budget, which must be below the bound of tokens.
func (e *thoughtEncoder) planBudget(r chat.Reasoning) error {
	e.think.mode = chat.ThinkingBudget
	if r.Budget.Set {
		if e.think.budget = r.Budget.Value; e.think.budget < minBudget {
			return fault.Invalid("thinking.budget_tokens", "thinking.budget_tokens must be at least %d for this provider", minBudget)
		}
		switch {
		case !e.maxTokens.Set:
			e.maxTokens = chat.Some(e.bound(e.think.budget + usualMaxTokens))
			if e.think.budget >= e.maxTokens.Value {
				return fault.Invalid("thinking.budget_tokens", "thinking.budget_tokens must be less than the %d tokens that the model gives", e.maxTokens.Value)
			}
		case e.think.budget >= e.maxTokens.Value:
			return fault.Invalid("thinking.budget_tokens", "thinking.budget_tokens must be less than %s, which is %d", e.r.MaxTokensField, e.maxTokens.Value)
		}
		return nil
	}
	// Only an effort was given: it is a part of the bound.
	if !e.maxTokens.Set {
		e.maxTokens = chat.Some(e.bound(usualMaxTokens))
	}
	limit := e.maxTokens.Value
	if limit <= minBudget {
		field := e.r.MaxTokensField
		return fault.Invalid(field, "%s must be more than %d for a model that thinks; it is %d", field, minBudget, limit)
	}
	e.think.budget = max(minBudget, limit/10*share(r.Effort))
	return nil
}

// bound is n tokens, or what the model can give if that is less.
func (e *thoughtEncoder) bound(n int64) int64 {
	if most := e.t.DefaultMaxTokens; most > 0 {
		return min(n, most)
	}
	return n
}

// checkThinking refuses or takes out what thinking cannot stand beside.
func (e *thoughtEncoder) checkThinking() error {
	if !e.think.on() {
		return nil
	}
	if e.r.ToolChoice.Forced() {
		if !e.t.DowngradeToolChoice {
			return fault.Invalid("tool_choice", "tool_choice cannot force a tool while the model thinks: this provider takes auto or none with it")
		}
		e.loss.Add("tool_choice", "auto: a tool cannot be forced with thinking")
	}
	e.recall()
	if e.think.mode == chat.ThinkingBudget && !e.canThink() {
		field := "thinking"
		if e.r.Reasoning.Thinking == chat.ThinkingUnsaid {
			field = "reasoning_effort"
		}
		e.loss.Add(field, "the signed reasoning of the tool call that is answered is not known")
		e.think = thinking{}
	}
	return nil
}

// signed reports whether the model takes a reasoning part back.
func (e *thoughtEncoder) signed(p *chat.Part) bool {
	if p.Origin != "" && p.Origin != name && p.Origin != origin(e.t.Family) {
		return false
	}
	return p.Kind == chat.RedactedReasoned && isBase64(p.Data) || p.Kind == chat.Reasoned && p.Signature != ""
}

// canThink reports whether the turn that tool results answer begins with signed
// reasoning, which the provider wants back once thinking is on.
func (e *thoughtEncoder) canThink() bool {
	ms := e.r.Messages
	last := lastSpoken(ms)
	if last < 0 || ms[last].Role != chat.ToolRole {
		return true
	}
	for i := last; i >= 0; i-- {
		switch ms[i].Role {
		case chat.User:
			return true
		case chat.Assistant:
			for j := range ms[i].Parts {
				p := &ms[i].Parts[j]
				if e.signed(p) || len(e.recalled[p]) > 0 {
					return true
				}
				if p.Call != nil {
					return false
				}
			}
			return true
		}
	}
	return true
}

// lastSpoken is the index of the last message that is not a system prompt.
func lastSpoken(ms []chat.Message) int {
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role != chat.System && ms[i].Role != chat.Developer {
			return i
		}
	}
	return -1
}

// maxRecalls bounds the tool calls that are looked up for one request.
const maxRecalls = 64

// recall looks up what was kept for calls in front of which the client gave no
// signed reasoning, the newest first.
func (e *thoughtEncoder) recall() {
	if e.r.Recall == nil {
		return
	}
	left := maxRecalls
	ms := e.r.Messages
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role != chat.Assistant || e.anySigned(&ms[i]) {
			continue
		}
		for j := range ms[i].Parts {
			p := &ms[i].Parts[j]
			if p.Call == nil {
				continue
			}
			if left--; left < 0 {
				return
			}
			for _, q := range e.r.Recall(p.Call.ID) {
				if e.signed(&q) {
					if e.recalled == nil {
						e.recalled = make(map[*chat.Part][]chat.Part)
					}
					e.recalled[p] = append(e.recalled[p], q)
				}
			}
		}
	}
}

func (e *thoughtEncoder) anySigned(m *chat.Message) bool {
	for i := range m.Parts {
		if e.signed(&m.Parts[i]) {
			return true
		}
	}
	return false
}

// isBase64 reports whether s is what the wire takes for bytes.
func isBase64(s string) bool {
	body := s
	for range 2 {
		if n := len(body); n > 0 && body[n-1] == '=' {
			body = body[:n-1]
		}
	}
	for i := range len(body) {
		switch c := body[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
		default:
			return false
		}
	}
	return len(s) > 0 && len(s)%4 == 0
}

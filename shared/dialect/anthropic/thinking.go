package anthropic

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// thinking is how the request tells the model to think.
type thinking struct {
	mode   chat.Thinking // ThinkingUnsaid: nothing is written
	budget int64
	effort string // output_config.effort; empty: nothing is written
}

func (t thinking) on() bool { return t.mode >= chat.ThinkingBudget }

// budgets are the tokens that an effort stands for.
func effortBudget(effort string) int64 {
	switch effort {
	case "low":
		return 1024
	case "high", "":
		return 16384
	case "xhigh", "max":
		return 32768
	}
	return 8192
}

// budgetEffort is the effort that a budget stands for.
func budgetEffort(budget int64) string {
	switch {
	case budget <= 2048:
		return "low"
	case budget <= 8192:
		return "medium"
	}
	return "high"
}

// minBudget is the least budget of thinking, in tokens.
const minBudget = 1024

func (e *thoughtEncoder) planThinking() error {
	r := e.r.Reasoning
	field := "thinking"
	if r.Thinking == chat.ThinkingUnsaid {
		field = "reasoning_effort"
	}
	if e.t.Thinking == chat.ThinksNever {
		if r.Thinking >= chat.ThinkingBudget {
			e.loss.Add("thinking", "this model does not think")
		}
		e.reportEffort("this model does not think")
		return nil
	}
	quiet := r.Effort == "none" || r.Effort == "minimal"
	switch {
	case r.Thinking == chat.ThinkingOff:
		e.think.mode = chat.ThinkingOff
	case !r.On():
	case r.Way != "": // of a later day: it goes on as it was said
		e.think.mode = chat.ThinkingAdaptive
	case e.t.Thinking == chat.ThinksAdaptively, e.t.Thinking == chat.ThinksEither && !(r.Thinking == chat.ThinkingBudget && r.Budget.Set):
		e.think.mode = chat.ThinkingAdaptive
		if r.Budget.Set {
			e.loss.Add("thinking.budget_tokens", "this model sets its own budget")
			if r.Effort == "" {
				e.think.effort = budgetEffort(r.Budget.Value)
			}
		}
	default:
		if err := e.planBudget(r); err != nil {
			return err
		}
	}
	switch {
	case r.Effort == "" || quiet:
		if quiet && !e.think.on() && e.think.mode == chat.ThinkingUnsaid {
			e.think.effort = "" // not thinking is this provider's default
		}
	default:
		e.think.effort = r.Effort
	}
	if e.t.NoEffort {
		if e.think.effort != "" && e.think.mode == chat.ThinkingAdaptive {
			e.reportEffort(notTaken)
		}
		e.think.effort = ""
	}
	return e.checkThinking(field)
}

func (e *thoughtEncoder) reportEffort(reason string) {
	if e.r.Reasoning.Effort != "" {
		e.loss.Add("reasoning_effort", reason)
	}
}

// planBudget sets a budget, which must be below the bound of tokens.
func (e *thoughtEncoder) planBudget(r chat.Reasoning) error {
	e.think.mode = chat.ThinkingBudget
	limit := e.t.DefaultMaxTokens
	if r.Budget.Set {
		e.think.budget = r.Budget.Value
		if e.think.budget < minBudget {
			return fault.Invalid("thinking.budget_tokens", "thinking.budget_tokens must be at least %d for this provider", minBudget)
		}
		if e.think.budget < e.maxTokens {
			return nil
		}
		if e.r.MaxTokens.Set {
			return fault.Invalid("thinking.budget_tokens", "thinking.budget_tokens must be less than %s, which is %d", e.r.MaxTokensField, e.maxTokens)
		}
		e.maxTokens = e.think.budget + defaultMaxTokens
		return nil
	}
	// Only an effort was given: the bound that the client set is for the answer.
	e.think.budget = effortBudget(r.Effort)
	if e.think.budget >= e.maxTokens {
		e.maxTokens += e.think.budget
	}
	if limit > 0 && e.maxTokens > limit {
		e.maxTokens = limit
		if e.think.budget >= limit {
			e.think.budget = max(minBudget, limit/2)
		}
	}
	return nil
}

// checkThinking refuses or takes out what thinking cannot stand beside.
func (e *thoughtEncoder) checkThinking(field string) error {
	if !e.think.on() {
		return nil
	}
	if e.r.ToolChoice.Forced() {
		if !e.t.DowngradeToolChoice {
			return fault.Invalid("tool_choice", "tool_choice cannot force a tool while %s is on: this provider takes auto or none with it", field)
		}
		e.loss.Add("tool_choice", "auto: a tool cannot be forced with thinking")
	}
	e.recall()
	if e.think.mode == chat.ThinkingBudget && !e.canThink() {
		e.loss.Add(field, "the signed reasoning of the tool call that is answered is not known")
		e.think = thinking{}
	}
	return nil
}

// canThink reports whether the turn that tool results answer begins with signed
// reasoning, which the provider wants back once thinking is on.
func (e *thoughtEncoder) canThink() bool {
	ms := e.r.Messages
	i := len(ms) - 1
	for i >= 0 && (ms[i].Role == chat.System || ms[i].Role == chat.Developer) {
		i--
	}
	if i < 0 || ms[i].Role != chat.ToolRole {
		return true
	}
	for ; i >= 0 && ms[i].Role != chat.Assistant; i-- {
		if ms[i].Role == chat.User {
			return true
		}
	}
	return i < 0 || len(e.reasoning(&ms[i])) > 0 || firstCall(&ms[i]) == nil
}

// signed reports whether the provider takes a reasoning part back.
func signed(p *chat.Part) bool {
	if p.Origin != "" && p.Origin != name {
		return false
	}
	if _, _, others := chat.UnmarkSigned(p.Signature + p.Data); others {
		return false
	}
	return p.Kind == chat.RedactedReasoned && p.Data != "" || p.Kind == chat.Reasoned && p.Signature != ""
}

// maxRecalls bounds the tool calls that are looked up for one request.
const maxRecalls = 64

// recall looks up what was kept for calls in front of which the client gave no
// signed reasoning, the newest first. Without thinking nothing is wanted back.
func (e *thoughtEncoder) recall() {
	if !e.think.on() || e.r.Recall == nil {
		return
	}
	left := maxRecalls
	ms := e.r.Messages
	for i := len(ms) - 1; i >= 0; i-- {
		if ms[i].Role != chat.Assistant || anySigned(&ms[i]) {
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
			var kept []chat.Part
			for _, q := range e.r.Recall(p.Call.ID) {
				if signed(&q) {
					kept = append(kept, q)
				}
			}
			if len(kept) > 0 {
				if e.recalled == nil {
					e.recalled = make(map[*chat.Part][]chat.Part)
				}
				e.recalled[p] = kept
			}
		}
	}
}

func anySigned(m *chat.Message) bool {
	for i := range m.Parts {
		if signed(&m.Parts[i]) {
			return true
		}
	}
	return false
}

// reasoning gives the signed reasoning that stands first in an assistant's turn:
// what the client returned, else what was kept for its first call.
func (e *thoughtEncoder) reasoning(m *chat.Message) []chat.Part {
	var own []chat.Part
	for i := range m.Parts {
		if p := &m.Parts[i]; signed(p) {
			own = append(own, *p)
		}
	}
	if len(own) > 0 {
		return own
	}
	if first := firstCall(m); first != nil {
		return e.recalled[first]
	}
	return nil
}

func firstCall(m *chat.Message) *chat.Part {
	for i := range m.Parts {
		if m.Parts[i].Call != nil {
			return &m.Parts[i]
		}
	}
	return nil
}

func (e *thoughtEncoder) writeThinking() {
	if e.think.mode == chat.ThinkingUnsaid {
		return
	}
	e.key("thinking")
	switch e.think.mode {
	case chat.ThinkingOff:
		e.b = append(e.b, `{"type":"disabled"}`...)
		return
	case chat.ThinkingBudget:
		e.b = append(e.b, `{"type":"enabled","budget_tokens":`...)
		e.b = strconv.AppendInt(e.b, e.think.budget, 10)
	case chat.ThinkingAdaptive:
		e.b = append(e.b, `{"type":`...)
		if r := &e.r.Reasoning; r.Way == "" {
			e.b = append(e.b, `"adaptive"`...)
		} else if e.b = wire.AppendJSONString(e.b, r.Way); r.Budget.Set {
			e.b = strconv.AppendInt(append(e.b, `,"budget_tokens":`...), r.Budget.Value, 10)
		}
	}
	if d := e.r.Reasoning.Display; d != "" {
		e.str("display", d)
	}
	e.b = append(e.b, '}')
}

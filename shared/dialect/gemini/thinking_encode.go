package gemini

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
)

// Bounds of a thinking budget where the traits say none, in tokens.
const maxBudget = 24576

// effortBudget returns the budget for an effort.
func effortBudget(effort string, limit int64) int64 {
	switch effort {
	case "minimal", "low":
		return 1024
	case "medium":
		return 8192
	}
	return min(24576, limit)
}

// level returns the model's own word for an effort: the next higher one if the model does not
// know it, or the model's highest.
func level(effort, known string) string {
	if known == "" {
		known = "minimal low medium high"
	}
	words := strings.Fields(known)
	for _, w := range words {
		if chat.EffortRank(w) >= chat.EffortRank(effort) {
			return w
		}
	}
	return words[len(words)-1]
}

// thinking writes thinkingConfig.
func thinking(e *requestEncoder) {
	r := e.r.Reasoning
	if r.Thinking == chat.ThinkingUnsaid && r.Effort == "" {
		return
	}
	if e.t.Thinking == chat.ThinksNever {
		if r.Thinking >= chat.ThinkingBudget {
			e.loss.Add("thinking", "this model does not think")
		}
		if r.Effort != "" && r.Effort != "none" && r.Effort != "minimal" {
			e.loss.Add("reasoning_effort", "this model does not think")
		}
		return
	}
	off := r.Thinking == chat.ThinkingOff || r.Thinking == chat.ThinkingUnsaid && r.Effort == "none"
	if r.Thinking != chat.ThinkingUnsaid && r.Effort != "" && (off || r.Budget.Set) {
		e.loss.Add("reasoning_effort", "thinking is set beside it")
	}
	encodeKey(e, "thinkingConfig")
	e.b = append(e.b, '{')
	if e.t.Thinking == chat.ThinksAdaptively {
		thinkingLevel(e, r, off)
	} else {
		thinkingBudget(e, r, off)
	}
	if !off && r.On() && r.Display != "omitted" {
		encodeRaw(e, "includeThoughts", []byte("true"))
	}
	e.b = append(e.b, '}')
}

// thinkingLevel is for models from Gemini 3 on: they take a level, and always think.
func thinkingLevel(e *requestEncoder, r chat.Reasoning, off bool) {
	effort := r.Effort
	switch {
	case off:
		effort = "none"
	case r.Budget.Set:
		e.loss.Add("thinking.budget_tokens", "this model takes a level of thinking")
		effort = chat.EffortOf(r.Budget.Value)
	case effort == "":
		return // the model's own level
	}
	word := level(effort, e.t.Efforts)
	if off && word != "minimal" {
		reportOff(e, r)
	}
	str(e, "thinkingLevel", strings.ToUpper(word))
}

// reportOff reports that the model continues thinking, as little as possible.
func reportOff(e *requestEncoder, r chat.Reasoning) {
	at := "thinking.type"
	if r.Thinking == chat.ThinkingUnsaid {
		at = "reasoning_effort"
	}
	e.loss.Add(at, "this model always thinks")
}

// thinkingBudget is for models of Gemini 2.5, which take a number of tokens.
func thinkingBudget(e *requestEncoder, r chat.Reasoning, off bool) {
	limit := e.t.MaxBudget
	if limit == 0 {
		limit = maxBudget
	}
	budget := int64(0)
	switch {
	case off && e.t.ThinksAlways:
		reportOff(e, r)
		budget = e.t.MinBudget
	case off:
	case r.Budget.Set:
		budget = chat.FitBudget(r.Budget.Value, e.t.MinBudget, limit, e.loss)
	case r.Effort == "":
		budget = -1 // the model decides
	default:
		budget = max(effortBudget(r.Effort, limit), e.t.MinBudget)
	}
	encodeKey(e, "thinkingBudget")
	e.b = strconv.AppendInt(e.b, budget, 10)
}

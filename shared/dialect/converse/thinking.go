package converse

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/wire"
)

const (
	// usualMaxTokens is the bound from which a budget is computed where the client set none.
	usualMaxTokens = 16384
)

// share returns the part of the token limit for an effort, in tenths.
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

// thinkingRequested reports whether the client requested thinking. minimal means little, not none.
func thinkingRequested(r chat.Reasoning) bool {
	return r.On() || r.Thinking == chat.ThinkingUnset && r.Effort == "minimal"
}

func planThinking(e *requestEncoder) error {
	e.maxTokens = e.r.MaxTokens
	r := e.r.Reasoning
	if f := e.t.Family; e.t.Thinking == chat.ThinksNever || f == familyCohere || f == familyAI21 { // they have no setting for thinking
		if r.Thinking >= chat.ThinkingBudget {
			e.loss.Add("thinking", "this model cannot be instructed to think")
		}
		if r.Effort != "" && r.Effort != "none" {
			e.loss.Add("reasoning_effort", "this model cannot be instructed to think")
		}
		return nil
	}
	if e.t.Family == "" {
		forwardReasoning(e, r)
		return nil
	}
	if e.t.Family != familyAnthropic {
		e.r.ReportBelow(e.loss, chat.BelowWay)
		planEffort(e, r)
		return nil
	}
	switch {
	case r.Thinking == chat.ThinkingOff:
		e.think.Mode = chat.ThinkingOff
	case !thinkingRequested(r):
	case r.UnknownType != "":
		e.think.Mode, e.think.Budget = chat.ThinkingAdaptive, r.Budget.Value
	case e.t.Thinking == chat.ThinksAdaptively, e.t.Thinking == chat.ThinksEither && !(r.Thinking == chat.ThinkingBudget && r.Budget.Set):
		planAdaptive(e, r)
	default:
		planBudget(e, r)
	}
	return checkThinking(e)
}

// forwardReasoning forwards the client's settings, because the vendor of a model given by an ARN is
// unknown.
func forwardReasoning(e *requestEncoder, r chat.Reasoning) {
	if r.Thinking >= chat.ThinkingBudget {
		e.think.Mode, e.think.Budget = r.Thinking, r.Budget.Value
		recall(e)
	}
	if r.Effort != "none" || r.Thinking == chat.ThinkingUnset {
		e.think.Effort = r.Effort
	}
}

// planEffort is for models of other makers, which take an effort only.
func planEffort(e *requestEncoder, r chat.Reasoning) {
	if r.Budget.Set {
		e.loss.Add("thinking.budget_tokens", "this model accepts only an effort")
	}
	if r.Display != "" {
		e.loss.Add("thinking.display", "this model accepts only an effort")
	}
	switch effort := r.Effort; {
	case r.Thinking == chat.ThinkingOff:
	case effort == "minimal":
		e.think.Mode, e.think.Effort = chat.ThinkingAdaptive, "low"
	case effort == "xhigh" || effort == "max":
		e.think.Mode, e.think.Effort = chat.ThinkingAdaptive, "high"
	case effort != "" && effort != "none":
		e.think.Mode, e.think.Effort = chat.ThinkingAdaptive, effort
	case r.Thinking >= chat.ThinkingBudget:
		e.think.Mode, e.think.Effort = chat.ThinkingAdaptive, "medium"
	}
}

func planAdaptive(e *requestEncoder, r chat.Reasoning) {
	e.think.Mode, e.think.Effort = chat.ThinkingAdaptive, r.Effort
	switch {
	case r.Effort == "minimal":
		e.think.Effort = "low"
	case r.Effort == "none":
		e.think.Effort = ""
	}
	if r.Budget.Set {
		e.loss.Add("thinking.budget_tokens", "this model sets its own budget")
	}
	if e.t.NoEffort && e.think.Effort != "" {
		e.loss.Add("reasoning_effort", notTaken)
		e.think.Effort = ""
	}
}

// planBudget sets a budget, which must be below the bound of tokens.
func planBudget(e *requestEncoder, r chat.Reasoning) {
	e.think.Mode = chat.ThinkingBudget
	if r.Budget.Set {
		if !e.maxTokens.Set {
			e.maxTokens = chat.Some(bound(e, r.Budget.Value+usualMaxTokens))
		}
		if e.think.Budget = claude.FitBudget(r.Budget.Value, e.maxTokens.Value, e.loss); e.think.Budget == 0 {
			e.think.Mode = chat.ThinkingUnset
		}
		return
	}
	// Only an effort was given: the budget is a part of the bound.
	if !e.maxTokens.Set {
		e.maxTokens = chat.Some(bound(e, usualMaxTokens))
	}
	limit := e.maxTokens.Value
	if limit <= claude.MinBudget {
		e.loss.Add("reasoning_effort", "max_tokens is too small for it")
		e.think.Mode = chat.ThinkingUnset
		return
	}
	e.think.Budget = max(claude.MinBudget, limit/10*share(r.Effort))
}

// bound is n tokens, or what the model can give if that is less.
func bound(e *requestEncoder, n int64) int64 {
	if most := e.t.DefaultMaxTokens; most > 0 {
		return min(n, most)
	}
	return n
}

// checkThinking rejects or removes what cannot go together with thinking.
func checkThinking(e *requestEncoder) error {
	field := "thinking"
	if e.r.Reasoning.Thinking == chat.ThinkingUnset {
		field = "reasoning_effort"
	}
	turns := encodeTurns(e)
	err := turns.Check(&e.think, e.t, field, e.loss)
	e.recalled = turns.Loaded
	return err
}

func encodeTurns(e *requestEncoder) claude.Turns {
	return claude.Turns{Request: e.r, Signed: func(p *chat.Part) bool { return signed(e, p) }}
}

// recall looks up the reasoning that the client did not give back.
func recall(e *requestEncoder) {
	turns := encodeTurns(e)
	turns.LoadReasoning()
	e.recalled = turns.Loaded
}

// signed reports whether the model takes a reasoning part back.
func signed(e *requestEncoder, p *chat.Part) bool {
	if p.Origin != "" && p.Origin != name && p.Origin != origin(e.t.Family) {
		return false
	}
	if _, _, marked := chat.UnmarkSigned(p.Signature + p.Data); marked {
		return false // a host of another shape gave it
	}
	return p.Kind == chat.RedactedReasoned && isBase64(p.Data) || p.Kind == chat.Reasoned && p.Signature != ""
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

var _ chat.Unmarker = Converse{}

var (
	reasoningKeys = wire.NewKeySet("reasoningContent")
	thoughtKeys   = wire.NewKeySet("reasoningText")
	signatureKeys = wire.NewKeySet("signature")
)

// Unmark implements chat.Unmarker.
func (Converse) Unmark(body []byte) ([]byte, []chat.LostField) {
	if !chat.HasMarkedReasoning(body) {
		return body, nil
	}
	edits, lost := chat.UnmarkBlocks(body, "messages", "content", func(block []byte, at wire.Span) (wire.Edit, bool) {
		for _, keys := range []*wire.KeySet{reasoningKeys, thoughtKeys, signatureKeys} {
			var w wire.Walk
			if wire.KindOf(block) != wire.KindObject || keys.Walk(block, &w) != nil || !w.Spans[0].Present(block) {
				return wire.Edit{}, false
			}
			block = w.Spans[0].Of(block)
		}
		if wire.KindOf(block) != wire.KindString {
			return wire.Edit{}, false
		}
		signature, err := wire.ScanString(block, "signature")
		_, _, marked := chat.UnmarkSigned(signature)
		return wire.Delete(at), err == nil && marked
	})
	if len(edits) == 0 {
		return body, nil
	}
	return wire.Splice(nil, body, edits...), lost
}

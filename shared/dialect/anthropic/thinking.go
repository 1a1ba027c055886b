package anthropic

import (
	"bytes"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/wire"
)

// effortBudget returns the tokens for an effort.
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

func planThinking(e *requestEncoder) error {
	r := e.r.Reasoning
	field := "thinking"
	if r.Thinking == chat.ThinkingUnset {
		field = "reasoning_effort"
	}
	if e.t.Thinking == chat.ThinksNever {
		if r.Thinking >= chat.ThinkingBudget {
			e.loss.Add("thinking", "this model does not think")
		}
		reportEffort(e, "this model does not think")
		return nil
	}
	quiet := r.Effort == "none" || r.Effort == "minimal"
	switch {
	case r.Thinking == chat.ThinkingOff:
		e.think.Mode = chat.ThinkingOff
	case !r.On():
	case r.UnknownType != "": // a type that is not known yet: it is forwarded unchanged
		e.think.Mode = chat.ThinkingAdaptive
	case e.t.Thinking == chat.ThinksAdaptively, e.t.Thinking == chat.ThinksEither && !(r.Thinking == chat.ThinkingBudget && r.Budget.Set):
		e.think.Mode = chat.ThinkingAdaptive
		if r.Budget.Set {
			e.loss.Add("thinking.budget_tokens", "this model sets its own budget")
			if r.Effort == "" {
				e.think.Effort = chat.EffortOf(r.Budget.Value)
			}
		}
	default:
		planBudget(e, r)
	}
	switch {
	case r.Effort == "" || quiet:
		if quiet && !e.think.On() && e.think.Mode == chat.ThinkingUnset {
			e.think.Effort = "" // not thinking is this provider's default
		}
	default:
		e.think.Effort = r.Effort
	}
	if e.t.NoEffort {
		if e.think.Effort != "" && e.think.Mode == chat.ThinkingAdaptive {
			reportEffort(e, notTaken)
		}
		e.think.Effort = ""
	}
	turns := claude.Turns{Request: e.r, Signed: signed}
	err := turns.Check(&e.think, e.t, field, e.loss)
	e.recalled = turns.Loaded
	return err
}

func reportEffort(e *requestEncoder, reason string) {
	if e.r.Reasoning.Effort != "" {
		e.loss.Add("reasoning_effort", reason)
	}
}

// planBudget sets a budget, which must be below the bound of tokens.
func planBudget(e *requestEncoder, r chat.Reasoning) {
	e.think.Mode = chat.ThinkingBudget
	limit := e.t.DefaultMaxTokens
	if r.Budget.Set {
		if e.think.Budget = r.Budget.Value; e.think.Budget >= e.maxTokens && !e.r.MaxTokens.Set {
			if e.maxTokens = e.think.Budget + defaultMaxTokens; limit > 0 {
				e.maxTokens = min(e.maxTokens, limit)
			}
		}
		if e.think.Budget = claude.FitBudget(e.think.Budget, e.maxTokens, e.loss); e.think.Budget == 0 {
			e.think.Mode = chat.ThinkingUnset
		}
		return
	}
	// Only an effort was given: the bound that the client set is for the response.
	e.think.Budget = effortBudget(r.Effort)
	if e.think.Budget >= e.maxTokens {
		e.maxTokens += e.think.Budget
	}
	if limit > 0 && e.maxTokens > limit {
		e.maxTokens = limit
		if e.think.Budget >= limit {
			e.think.Budget = max(claude.MinBudget, limit/2)
		}
	}
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

// reasoning returns the signed reasoning that must be first in an assistant's turn: that
// returned by the client, or else that stored for the turn's first call.
func reasoning(e *requestEncoder, m *chat.Message) []chat.Part {
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

func writeThinking(e *requestEncoder) {
	if e.think.Mode == chat.ThinkingUnset {
		return
	}
	encodeKey(e, "thinking")
	switch e.think.Mode {
	case chat.ThinkingOff:
		e.b = append(e.b, `{"type":"disabled"}`...)
		return
	case chat.ThinkingBudget:
		e.b = append(e.b, `{"type":"enabled","budget_tokens":`...)
		e.b = strconv.AppendInt(e.b, e.think.Budget, 10)
	case chat.ThinkingAdaptive:
		e.b = append(e.b, `{"type":`...)
		if r := &e.r.Reasoning; r.UnknownType == "" {
			e.b = append(e.b, `"adaptive"`...)
		} else if e.b = wire.AppendJSONString(e.b, r.UnknownType); r.Budget.Set {
			e.b = strconv.AppendInt(append(e.b, `,"budget_tokens":`...), r.Budget.Value, 10)
		}
	}
	if d := e.r.Reasoning.Display; d != "" {
		str(e, "display", d)
	}
	e.b = append(e.b, '}')
}

var _ chat.Unmarker = Messages{}

var thinkingKeys = wire.NewKeySet("thinking")

// Unmark implements chat.Unmarker. A turn that has called tools must begin with its reasoning
// while thinking has a budget: without it, the model does not think in that turn.
func (Messages) Unmark(body []byte) ([]byte, []chat.LostField) {
	if !chat.HasMarkedReasoning(body) {
		return body, nil
	}
	edits, lost := chat.UnmarkBlocks(body, "messages", "content", func(block []byte, at wire.Span) (wire.Edit, bool) {
		kind, signature := "", ""
		d := wire.NewDecoder(block)
		for key := range d.Object {
			switch string(key) {
			case "type":
				kind = optionalText(d)
			case "signature", "data":
				signature = optionalText(d)
			}
		}
		_, _, marked := chat.UnmarkSigned(signature)
		return wire.Delete(at), marked && (kind == "thinking" || kind == "redacted_thinking")
	})
	if len(edits) == 0 {
		return body, nil
	}
	body = wire.Splice(nil, body, edits...)
	var w wire.Walk
	if thinkingKeys.Walk(body, &w) == nil && w.Spans[0].Present(body) && bytes.Contains(w.Spans[0].Of(body), []byte(`"enabled"`)) && calledUnreasoned(body) {
		body = wire.Splice(nil, body, wire.DeleteKey(&w, 0))
		lost = append(lost, chat.LostField{Path: "thinking", Reason: "another provider has begun the turn"})
	}
	return body, lost
}

// calledUnreasoned reports whether the last turn of the assistant has called tools, has their
// results, and does not begin with reasoning.
func calledUnreasoned(body []byte) (open bool) {
	begun, called := "", false // of the turn: the type of its first block, whether it has calls
	chat.EachObject(body, wire.Span{End: len(body)}, "messages", func(_ int, message wire.Span) {
		role := ""
		d := wire.NewDecoder(message.Of(body))
		for key := range d.Object {
			if string(key) == "role" {
				role = optionalText(d)
			}
		}
		results := false
		chat.EachObject(body, message, "content", func(_ int, at wire.Span) {
			kind := ""
			d := wire.NewDecoder(at.Of(body))
			for key := range d.Object {
				if string(key) == "type" {
					kind = optionalText(d)
				}
			}
			switch {
			case role != "assistant":
				results = results || kind == "tool_result"
				return
			case begun == "":
				begun = kind
			}
			called = called || kind == "tool_use"
		})
		if role != "assistant" {
			if open = results && called && begun != "thinking" && begun != "redacted_thinking"; !results {
				begun, called = "", false
			}
		}
	})
	return open
}

// optionalText returns a string, "" for any other value.
func optionalText(d *wire.Decoder) string {
	if d.Kind() == wire.KindString {
		return d.Str()
	}
	d.Skip()
	return ""
}

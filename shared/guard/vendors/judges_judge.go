package vendors

import (
	"encoding/json"
	"strings"
)

// evaluators returns the evaluator of Patronus and its criterion.
func evaluators(a *ask) any {
	spec := a.run.arg
	if spec == "" {
		if spec, _ = a.run.params["profile"].(string); !strings.Contains(spec, ":") {
			spec = "judge:" + spec
		}
	}
	evaluator, criteria, _ := strings.Cut(spec, ":")
	one := map[string]any{"evaluator": evaluator, "explain_strategy": "always"}
	if criteria != "" {
		one["criteria"] = criteria
	}
	return []any{one}
}

// patronus passes what its evaluator passes. Personal data is masked except for its first
// and last character.
func patronus(a *ask, said answer) {
	list := said.list("results")
	if len(list) == 0 || list[0].has("error_message") {
		*said.bad = true
		return
	}
	r := list[0].get("evaluation_result")
	if score := optional[float64](r, "score_raw"); score > 0 {
		a.run.score("score", score)
	}
	if r.flag("pass") {
		return
	}
	name := a.run.id[strings.IndexByte(a.run.id, '.')+1:]
	if a.part < 0 {
		a.run.found(name)
		return
	}
	letters := []rune(a.text)
	var spans []span
	for _, p := range r.get("additional_info").listIf("positions") {
		pair := p.list("")
		if len(pair) != 2 {
			*said.bad = true
			return
		}
		start, end := int(pair[0].number("")), int(pair[1].number(""))
		if start < 0 || end > len(letters) || end-start < 1 {
			continue
		}
		by := strings.Repeat("*", end-start)
		if end-start > 2 {
			by = string(letters[start]) + strings.Repeat("*", end-start-2) + string(letters[end-1])
		}
		spans = append(spans, span{start, end, by})
	}
	a.run.redact(a.part, masked(a.text, longest(spans)), name)
}

// longest returns the spans that are not within others.
func longest(spans []span) (out []span) {
	for i, s := range spans {
		inside := false
		for j, o := range spans {
			inside = inside || i != j && o.start <= s.start && s.end <= o.end && (o.end-o.start > s.end-s.start || j < i)
		}
		if !inside {
			out = append(out, s)
		}
	}
	return out
}

func qualifire(a *ask, said answer) {
	if status := said.text("status"); status != "failed" {
		return
	}
	a.run.found("failed")
	for _, e := range said.listIf("evaluationResults") {
		a.run.note(label(first(e, "type")))
	}
}

func policyInput(a *ask) any {
	if target, _ := a.run.params["policy_target"].(string); target == "output" && a.run.afterResponse() {
		return nil
	}
	return a.value("asked")
}

func policyOutput(a *ask) any {
	if target, _ := a.run.params["policy_target"].(string); target == "input" {
		return nil
	}
	return a.value("answered")
}

// toolTurn is a message in the form that the judge of tools reads.
type toolTurn struct {
	Role    string     `json:"role"`
	Content string     `json:"content,omitempty"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// spoken is a message of a chat completion.
type spoken struct {
	turn
	CallID string `json:"tool_call_id"`
	Calls  []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (m *spoken) asTurn() toolTurn {
	t := toolTurn{Role: m.Role, Content: textOf(m.Content), CallID: m.CallID}
	for _, c := range m.Calls {
		args := json.RawMessage(c.Function.Arguments)
		if !json.Valid(args) {
			args = json.RawMessage(`{}`)
		}
		t.Calls = append(t.Calls, toolCall{c.ID, c.Function.Name, args})
	}
	return t
}

// toolTurns returns the conversation and the response, with their calls of tools.
func toolTurns(a *ask) any {
	var asked struct{ Messages []spoken }
	var said struct {
		Choices []struct{ Message spoken }
	}
	if json.Unmarshal(a.run.s.Request, &asked) != nil || json.Unmarshal(a.run.s.Response, &said) != nil || len(said.Choices) == 0 {
		return a.withAnswer()
	}
	out := []toolTurn{}
	for i := range asked.Messages {
		out = append(out, asked.Messages[i].asTurn())
	}
	return append(out, said.Choices[0].Message.asTurn())
}

// toolsOf returns the tools of the request.
func toolsOf(a *ask) any {
	type tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	var body struct{ Tools []struct{ Function tool } }
	out := []tool{}
	if json.Unmarshal(a.run.s.Request, &body) == nil {
		for _, t := range body.Tools {
			if t.Function.Name != "" {
				out = append(out, t.Function)
			}
		}
	}
	return out
}

func sydelabs(a *ask, said answer) {
	for category, param := range map[string]string{"PROMPT_INJECT": "prompt_injection", "TOXIC": "toxicity", "EVASION": "evasion"} {
		score := optional[float64](said.get("category_scores"), category)
		a.run.score(category, score)
		if score > a.run.number(param+"_threshold", 0.5) {
			a.run.found(category)
		}
	}
	value[map[string]any](said, "category_scores")
}

func walled(a *ask, said answer) {
	list := said.list("data.safety")
	if len(list) == 0 && a.run.is("generic_safety_check") {
		*said.bad = true
	}
	for _, one := range list {
		if !one.flag("isSafe") {
			a.run.found("unsafe")
		}
	}
}

package vendors

import (
	"encoding/json"
	"slices"
	"sort"
	"strings"
)

// evaluators returns the evaluator of Patronus and its criterion.
func evaluators(a *vendorCall) any {
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
func patronus(a *vendorCall, resp response) {
	list := resp.list("results")
	if len(list) == 0 || list[0].has("error_message") {
		*resp.bad = true
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
			*resp.bad = true
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

func qualifire(a *vendorCall, resp response) {
	if status := resp.text("status"); status != "failed" {
		return
	}
	a.run.found("failed")
	for _, e := range resp.listIf("evaluationResults") {
		a.run.note(label(first(e, "type")))
	}
}

func policyInput(a *vendorCall) any {
	if target, _ := a.run.params["policy_target"].(string); target == "output" && a.run.afterResponse() {
		return nil
	}
	return a.value("asked")
}

func policyOutput(a *vendorCall) any {
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

// chatMessage is a message of a chat completion.
type chatMessage struct {
	turn
	CallID string `json:"tool_call_id"`
	Calls  []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (m *chatMessage) asTurn() toolTurn {
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
func toolTurns(a *vendorCall) any {
	var sent struct{ Messages []chatMessage }
	var response struct {
		Choices []struct{ Message chatMessage }
	}
	if json.Unmarshal(a.run.s.Request, &sent) != nil || json.Unmarshal(a.run.s.Response, &response) != nil || len(response.Choices) == 0 {
		return a.withResponse()
	}
	out := []toolTurn{}
	for i := range sent.Messages {
		out = append(out, sent.Messages[i].asTurn())
	}
	return append(out, response.Choices[0].Message.asTurn())
}

// toolsOf returns the tools of the request.
func toolsOf(a *vendorCall) any {
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

func sydelabs(a *vendorCall, resp response) {
	for category, param := range map[string]string{"PROMPT_INJECT": "prompt_injection", "TOXIC": "toxicity", "EVASION": "evasion"} {
		score := optional[float64](resp.get("category_scores"), category)
		a.run.score(category, score)
		if score > a.run.number(param+"_threshold", 0.5) {
			a.run.found(category)
		}
	}
	value[map[string]any](resp, "category_scores")
}

func walled(a *vendorCall, resp response) {
	list := resp.list("data.safety")
	if len(list) == 0 && a.run.is("generic_safety_check") {
		*resp.bad = true
	}
	for _, one := range list {
		if !one.flag("isSafe") {
			a.run.found("unsafe")
		}
	}
}

// span is a part of a text in characters, and its replacement.
type span struct {
	start, end int
	by         string
}

// masked returns a text with its spans replaced. Overlapping spans become one; a span that
// reaches outside of the text is ignored.
func masked(text string, spans []span) string {
	letters := []rune(text)
	spans = slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return s.start < 0 || s.end <= s.start || s.end > len(letters) })
	sort.Slice(spans, func(i, j int) bool { return spans[i].start < spans[j].start })
	var b strings.Builder
	from := 0
	for _, s := range spans {
		if s.start < from { // it begins within the span before
			from = max(from, s.end)
			continue
		}
		b.WriteString(string(letters[from:s.start]))
		b.WriteString(s.by)
		from = s.end
	}
	b.WriteString(string(letters[from:]))
	return b.String()
}

const (
	patronusURL  = "https://api.patronus.ai/v1/evaluate"
	patronusBody = `{"evaluators":"$evaluators","evaluated_model_input":"$asked","evaluated_model_output":"$text"}`
	qualifireURL = "https://proxy.qualifire.ai/api/evaluation/evaluate"
	apiKeyHeader = "x-api-key: {apiKey}"
	qualifireKey = "X-Qualifire-API-Key: {apiKey}"
)

// judgeWires are vendors that judge properties of a text.
var judgeWires = append(append(
	asPatronus("judge:patronus:is-concise", "isConcise", "judge:patronus:is-helpful", "isHelpful", "judge:patronus:is-polite", "isPolite", "judge:patronus:no-apologies", "noApologies",
		"judge:patronus:no-gender-bias", "noGenderBias", "judge:patronus:no-racial-bias", "noRacialBias", "answer-relevance", "retrievalAnswerRelevance", "hallucination", "retrievalHallucination",
		"toxicity", "toxicity", "", "custom", "pii", "pii", "phi", "phi"),
	asQualifire(
		"contentModeration", `{"input":"$asked","output":"$answered","content_moderation_check":true}`,
		"pii", `{"input":"$asked","output":"$answered","pii_check":true}`,
		"promptInjections", `{"input":"$text","prompt_injections":true}`,
		"hallucinations", `{"input":"$asked","output":"$text","hallucinations_check":true,"hallucinations_mode":"$.mode"}`,
		"grounding", `{"input":"$asked","output":"$text","grounding_check":true,"grounding_mode":"$.mode"}`,
		"toolUseQuality", `{"messages":"$turns","available_tools":"$tools","tool_selection_quality_check":true,"tsq_mode":"$.mode"}`,
		"policy", `{"assertions":"$.policies","assertions_mode":"$.mode","input":"$policyInput","output":"$policyOutput"}`)...),
	row{id: "sydelabs.sydeguard", name: "SydeLabs", url: "https://guard.sydelabs.ai/api/v1/guard/generate-score", header: apiKeyHeader, body: `{"prompt":"$text"}`, judge: sydelabs},
	row{id: "walledai.walledprotect", name: "Walled AI", url: "https://services.walled.ai/v1/walled-protect", header: apiKeyHeader,
		body:  `{"text":"$text","generic_safety_check":"$.generic_safety_check","greetings_list":"$.greetings_list|[\"Casual & Friendly\"]","pii_list":"$.pii_list|[\"Person's Name\",\"Address\",\"Email Id\",\"Contact No\",\"Date Of Birth\",\"Unique Id\",\"Financial Data\"]","compliance_list":"$.compliance_list|[]"}`,
		judge: walled})

// asPatronus returns rows for pairs of an evaluator with criterion and a check.
func asPatronus(pairs ...string) (out []row) {
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, row{id: "patronus." + pairs[i+1], name: "Patronus", arg: pairs[i], url: patronusURL, header: apiKeyHeader, body: patronusBody, each: pairs[i] == "pii" || pairs[i] == "phi",
			values: values{"evaluators": evaluators}, judge: patronus})
	}
	return out
}

// asQualifire returns rows for pairs of a check and its body.
func asQualifire(pairs ...string) (out []row) {
	v := values{"turns": toolTurns, "tools": toolsOf, "policyInput": policyInput, "policyOutput": policyOutput}
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, row{id: "qualifire." + pairs[i], name: "Qualifire", url: qualifireURL, header: qualifireKey, body: pairs[i+1], empty: pairs[i] == "toolUseQuality", values: v, judge: qualifire})
	}
	return out
}

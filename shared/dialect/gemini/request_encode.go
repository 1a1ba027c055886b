package gemini

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Bounds of the provider.
const (
	maxToolName   = 64
	maxStops      = 5
	maxCandidates = 8
)

const notTaken = "not accepted by this provider"

// requestEncoder writes one request for a provider. What does not change from
// turn to turn comes before the contents, so that a conversation's bytes only
// grow at their end. Its steps are functions in the files of their topics.
type requestEncoder struct {
	b    []byte
	r    *chat.Request
	t    *chat.Traits
	loss *chat.Loss

	unrecalled int // turns with calls for which no signatures are looked up
	tools      toolPlan
	extra      extras
	names      map[string]string // tool names by the ids of their calls
}

func encodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	e := &requestEncoder{b: dst, r: r, t: t, loss: loss}
	r.HiddenResponse = false
	if err := r.Rename(maxToolName); err != nil {
		return dst, err
	}
	if err := reject(e); err != nil {
		return dst, err
	}
	r.ReportUnread(loss, validated)
	r.ReportBelow(loss, chat.BelowCitations|chat.BelowDocuments|chat.BelowTitles|chat.BelowResultMarkers|chat.BelowWay)
	e.extra.sort(e)
	planRecalls(e)
	if err := planTools(e); err != nil {
		return dst, err
	}
	if err := write(e); err != nil {
		return dst, err
	}
	if err := loss.Err(); err != nil {
		return dst, err
	}
	return e.b, nil
}

// reject checks the bounds in which this provider is narrower than the specification.
func reject(e *requestEncoder) error {
	r := e.r
	if r.N.Set && r.N.Value > maxCandidates {
		return fault.Invalid("n", "n must be at most %d for this provider", maxCandidates)
	}
	if c := r.Completion; c != nil {
		switch {
		case c.Prompts > 1:
			return fault.Invalid("prompt", "prompt must be one text for this provider, not a list of %d", c.Prompts)
		case c.BestOf.Set && c.BestOf.Value > 1:
			return fault.Invalid("best_of", "best_of must be 1 for this provider")
		}
	}
	if len(r.Stop) > maxStops {
		return fault.Invalid("stop", "stop must contain at most %d texts for this provider", maxStops)
	}
	if r.MaxTokens.Set && r.MaxTokens.Value < 1 {
		return fault.Invalid(r.MaxTokensField, "%s must be at least 1 for this provider", r.MaxTokensField)
	}
	return nil
}

// encodeKey begins a field; item an element. The comma depends on the previous output.
//
//go:noinline
func encodeKey(e *requestEncoder, name string) {
	item(e)
	e.b = append(append(append(e.b, '"'), name...), `":`...)
}

//go:noinline
func item(e *requestEncoder) {
	if c := e.b[len(e.b)-1]; c != '{' && c != '[' {
		e.b = append(e.b, ',')
	}
}

func str(e *requestEncoder, name, value string) {
	encodeKey(e, name)
	e.b = wire.AppendJSONString(e.b, value)
}

func encodeRaw(e *requestEncoder, name string, value []byte) {
	encodeKey(e, name)
	e.b = append(e.b, value...)
}

func float(e *requestEncoder, name string, v chat.Opt[float64]) {
	if v.Set {
		encodeKey(e, name)
		e.b = strconv.AppendFloat(e.b, v.Value, 'g', -1, 64)
	}
}

func encodeInt(e *requestEncoder, name string, v chat.Opt[int64]) {
	if v.Set {
		encodeKey(e, name)
		e.b = strconv.AppendInt(e.b, v.Value, 10)
	}
}

func report(e *requestEncoder, path string, set bool) {
	if set {
		e.loss.Add(path, notTaken)
	}
}

func write(e *requestEncoder) error {
	e.b = append(e.b, '{')
	system(e)
	if err := writeTools(e); err != nil {
		return err
	}
	if err := generationConfig(e); err != nil {
		return err
	}
	writeExtra(e)
	if err := contents(e); err != nil {
		return err
	}
	e.b = append(e.b, '}')
	return nil
}

// system writes all system prompts, from any position, in their order.
func system(e *requestEncoder) {
	upstream.MovedPrompts(e.r, e.loss)
	start, n := len(e.b), 0
	encodeKey(e, "systemInstruction")
	e.b = append(e.b, `{"parts":[`...)
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		if m.Role != chat.System && m.Role != chat.Developer {
			continue
		}
		dropName(e, m)
		for j := range m.Parts {
			p := &m.Parts[j]
			switch {
			case p.Kind != chat.Text:
				e.loss.Add(path(m, p), "a system prompt is text here")
			case p.Text != "":
				n++
				item(e)
				e.b = append(e.b, '{')
				str(e, "text", p.Text)
				e.b = append(e.b, '}')
			}
			marker(e, m, p)
		}
	}
	e.b = append(e.b, `]}`...)
	if n == 0 {
		e.b = e.b[:start]
	}
}

// marker reports a cache marker: this provider caches prefixes automatically.
func marker(e *requestEncoder, m *chat.Message, p *chat.Part) {
	if p.Cache != chat.NoCache {
		e.loss.Add(path(m, p)+".cache_control", "this provider caches automatically")
	}
}

// dropName reports the name of a participant.
func dropName(e *requestEncoder, m *chat.Message) {
	if m.Name != "" && m.Role != chat.ToolRole {
		e.loss.Add(path(m, nil)+".name", notTaken)
	}
}

// generationConfig writes how the response is to be made.
func generationConfig(e *requestEncoder) error {
	r := e.r
	start := len(e.b)
	encodeKey(e, "generationConfig")
	e.b = append(e.b, '{')
	open := len(e.b)
	float(e, "temperature", r.Temperature)
	float(e, "topP", r.TopP)
	encodeInt(e, "topK", r.TopK)
	if r.N.Value > 1 {
		encodeInt(e, "candidateCount", r.N)
	}
	encodeInt(e, "maxOutputTokens", r.MaxTokens)
	if len(r.Stop) > 0 {
		encodeKey(e, "stopSequences")
		e.b = append(e.b, '[')
		for _, s := range r.Stop {
			item(e)
			e.b = wire.AppendJSONString(e.b, s)
		}
		e.b = append(e.b, ']')
	}
	float(e, "presencePenalty", r.PresencePenalty)
	float(e, "frequencyPenalty", r.FrequencyPenalty)
	encodeInt(e, "seed", r.Seed)
	encodeLogprobs(e)
	if err := encodeFormat(e); err != nil {
		return err
	}
	thinking(e)
	e.extra.config(e)
	if len(e.b) == open {
		e.b = e.b[:start]
	} else {
		e.b = append(e.b, '}')
	}
	r.ReportLoss(e.loss, notTaken, "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "service_tier")
	if c := r.Completion; c != nil {
		report(e, "suffix", c.Suffix != "")
	}
	return nil
}

func encodeLogprobs(e *requestEncoder) {
	r := e.r
	top := r.TopLogprobs
	if c := r.Completion; c != nil && c.Logprobs.Set {
		top = c.Logprobs
	} else if !r.Logprobs.Value {
		report(e, "top_logprobs", top.Set)
		return
	}
	encodeRaw(e, "responseLogprobs", []byte("true"))
	if top.Value > 0 {
		encodeInt(e, "logprobs", top)
	}
}

// encodeFormat writes the shape of the response's text.
func encodeFormat(e *requestEncoder) error {
	f := &e.r.Format
	if f.Kind == chat.FormatText {
		return nil
	}
	switch {
	case e.t.Schema == chat.SchemaNone:
		return fault.New(fault.UnsupportedResponse, "response_format", "This model cannot be made to answer in JSON")
	case e.tools.functions > 0 && !e.t.SignedCalls:
		// Models before Gemini 3 reject the two together.
		return fault.New(fault.UnsupportedResponse, "response_format", "This model cannot answer in JSON while it is given tools: send tools without response_format, or response_format without tools")
	}
	str(e, "responseMimeType", "application/json")
	if f.Kind != chat.FormatSchema {
		return nil
	}
	if f.Description != "" {
		e.loss.Add("response_format.json_schema.description", notTaken)
	}
	if e.t.Schema != chat.SchemaSubset {
		encodeRaw(e, "responseJsonSchema", f.Schema)
		return nil
	}
	encodeKey(e, "responseSchema")
	var err error
	e.b, err = subset(e, f.Schema, "response_format.json_schema.schema")
	return err
}

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
	if r.Thinking == chat.ThinkingUnset && r.Effort == "" {
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
	off := r.Thinking == chat.ThinkingOff || r.Thinking == chat.ThinkingUnset && r.Effort == "none"
	if r.Thinking != chat.ThinkingUnset && r.Effort != "" && (off || r.Budget.Set) {
		e.loss.Add("reasoning_effort", "thinking is also set")
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
		e.loss.Add("thinking.budget_tokens", "this model accepts a level of thinking")
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
	if r.Thinking == chat.ThinkingUnset {
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

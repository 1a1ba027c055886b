package gemini

import (
	"strconv"

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

const notTaken = "not taken by this provider"

// base is what every part of the encoder has: the body and its members, media and schemas.
type base struct {
	b    []byte
	r    *chat.Request
	t    *chat.Traits
	loss *chat.Loss
}

// thoughtEncoder writes how much the model may think, and finds the signatures of earlier
// thoughts.
type thoughtEncoder struct {
	base
	unrecalled int // turns with calls that will not be looked up
}

// toolEncoder writes tools.
type toolEncoder struct {
	thoughtEncoder
	tools toolPlan
	extra extras
}

// contentsEncoder writes the messages.
type contentsEncoder struct {
	toolEncoder
	names map[string]string // tool names by the ids of their calls
}

// requestEncoder writes one request for a provider. What does not change from
// turn to turn comes before the contents, so that a conversation's bytes only
// grow at their end.
type requestEncoder struct{ contentsEncoder }

func encodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	var e requestEncoder
	e.base = base{b: dst, r: r, t: t, loss: loss}
	r.HiddenAnswer = false
	if err := r.Rename(maxToolName); err != nil {
		return dst, err
	}
	if err := e.refuse(); err != nil {
		return dst, err
	}
	r.ReportUnread(loss, validated)
	r.ReportBelow(loss, chat.BelowCitations|chat.BelowDocuments|chat.BelowTitles|chat.BelowResultMarkers|chat.BelowWay)
	e.extra.sort(&e)
	e.planRecalls()
	if err := e.planTools(); err != nil {
		return dst, err
	}
	if err := e.write(); err != nil {
		return dst, err
	}
	if err := loss.Err(); err != nil {
		return dst, err
	}
	return e.b, nil
}

// refuse checks the bounds in which this provider is narrower than the specification.
func (e *requestEncoder) refuse() error {
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
		return fault.Invalid("stop", "stop must hold at most %d texts for this provider", maxStops)
	}
	if r.MaxTokens.Set && r.MaxTokens.Value < 1 {
		return fault.Invalid(r.MaxTokensField, "%s must be at least 1 for this provider", r.MaxTokensField)
	}
	return nil
}

// key begins a member; item an element. The comma depends on what stands before.
//
//go:noinline
func (e *base) key(name string) {
	e.item()
	e.b = append(append(append(e.b, '"'), name...), `":`...)
}

//go:noinline
func (e *base) item() {
	if c := e.b[len(e.b)-1]; c != '{' && c != '[' {
		e.b = append(e.b, ',')
	}
}

func (e *base) str(name, value string) {
	e.key(name)
	e.b = wire.AppendJSONString(e.b, value)
}

func (e *base) raw(name string, value []byte) {
	e.key(name)
	e.b = append(e.b, value...)
}

func (e *base) float(name string, v chat.Opt[float64]) {
	if v.Set {
		e.key(name)
		e.b = strconv.AppendFloat(e.b, v.Value, 'g', -1, 64)
	}
}

func (e *base) int(name string, v chat.Opt[int64]) {
	if v.Set {
		e.key(name)
		e.b = strconv.AppendInt(e.b, v.Value, 10)
	}
}

func (e *base) report(path string, set bool) {
	if set {
		e.loss.Add(path, notTaken)
	}
}

func (e *requestEncoder) write() error {
	e.b = append(e.b, '{')
	e.system()
	if err := e.writeTools(); err != nil {
		return err
	}
	if err := e.generationConfig(); err != nil {
		return err
	}
	e.writeExtra()
	if err := e.contents(); err != nil {
		return err
	}
	e.b = append(e.b, '}')
	return nil
}

// system writes all system prompts, wherever they stood, in their order.
func (e *requestEncoder) system() {
	upstream.MovedPrompts(e.r, e.loss)
	start, n := len(e.b), 0
	e.key("systemInstruction")
	e.b = append(e.b, `{"parts":[`...)
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		if m.Role != chat.System && m.Role != chat.Developer {
			continue
		}
		e.dropName(m)
		for j := range m.Parts {
			p := &m.Parts[j]
			switch {
			case p.Kind != chat.Text:
				e.loss.Add(path(m, p), "a system prompt is text here")
			case p.Text != "":
				n++
				e.item()
				e.b = append(e.b, '{')
				e.str("text", p.Text)
				e.b = append(e.b, '}')
			}
			e.marker(m, p)
		}
	}
	e.b = append(e.b, `]}`...)
	if n == 0 {
		e.b = e.b[:start]
	}
}

// marker reports a cache marker: this provider caches prefixes by itself.
func (e *base) marker(m *chat.Message, p *chat.Part) {
	if p.Cache != chat.NoCache {
		e.loss.Add(path(m, p)+".cache_control", "this provider caches by itself")
	}
}

// dropName reports the name of a participant.
func (e *base) dropName(m *chat.Message) {
	if m.Name != "" && m.Role != chat.ToolRole {
		e.loss.Add(path(m, nil)+".name", notTaken)
	}
}

// generationConfig writes how the answer is to be made.
func (e *requestEncoder) generationConfig() error {
	r := e.r
	start := len(e.b)
	e.key("generationConfig")
	e.b = append(e.b, '{')
	open := len(e.b)
	e.float("temperature", r.Temperature)
	e.float("topP", r.TopP)
	e.int("topK", r.TopK)
	if r.N.Value > 1 {
		e.int("candidateCount", r.N)
	}
	e.int("maxOutputTokens", r.MaxTokens)
	if len(r.Stop) > 0 {
		e.key("stopSequences")
		e.b = append(e.b, '[')
		for _, s := range r.Stop {
			e.item()
			e.b = wire.AppendJSONString(e.b, s)
		}
		e.b = append(e.b, ']')
	}
	e.float("presencePenalty", r.PresencePenalty)
	e.float("frequencyPenalty", r.FrequencyPenalty)
	e.int("seed", r.Seed)
	e.logprobs()
	if err := e.format(); err != nil {
		return err
	}
	e.thinking()
	e.extra.config(e)
	if len(e.b) == open {
		e.b = e.b[:start]
	} else {
		e.b = append(e.b, '}')
	}
	r.Lose(e.loss, notTaken, "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "service_tier")
	if c := r.Completion; c != nil {
		e.report("suffix", c.Suffix != "")
	}
	return nil
}

func (e *requestEncoder) logprobs() {
	r := e.r
	top := r.TopLogprobs
	if c := r.Completion; c != nil && c.Logprobs.Set {
		top = c.Logprobs
	} else if !r.Logprobs.Value {
		e.report("top_logprobs", top.Set)
		return
	}
	e.raw("responseLogprobs", []byte("true"))
	if top.Value > 0 {
		e.int("logprobs", top)
	}
}

// format writes the shape of the answer's text.
func (e *requestEncoder) format() error {
	f := &e.r.Format
	if f.Kind == chat.FormatText {
		return nil
	}
	switch {
	case e.t.Schema == chat.SchemaNone:
		return fault.New(fault.UnsupportedResponse, "response_format", "This model cannot be made to answer in JSON")
	case e.tools.functions > 0 && !e.t.SignedCalls:
		// Models before Gemini 3 refuse the two together.
		return fault.New(fault.UnsupportedResponse, "response_format", "This model cannot answer in JSON while it is given tools: send tools without response_format, or response_format without tools")
	}
	e.str("responseMimeType", "application/json")
	if f.Kind != chat.FormatSchema {
		return nil
	}
	if f.Description != "" {
		e.loss.Add("response_format.json_schema.description", notTaken)
	}
	if e.t.Schema != chat.SchemaSubset {
		e.raw("responseJsonSchema", f.Schema)
		return nil
	}
	e.key("responseSchema")
	var err error
	e.b, err = e.subset(f.Schema, "response_format.json_schema.schema")
	return err
}

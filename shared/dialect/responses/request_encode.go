package responses

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// requestEncoder writes one body of /responses for a provider.
type requestEncoder struct {
	b        []byte
	r        *chat.Request
	t        *chat.Traits
	loss     *chat.Loss
	max      int // longest tool name
	recalled map[string][]chat.Part

	breakpoints openai.Breakpoints
}

const (
	maxToolName = 64 // bytes
	notTaken    = "not accepted by this provider"
)

func encodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	e := requestEncoder{b: dst, r: r, t: t, loss: loss, max: t.MaxToolName}
	if e.max == 0 {
		e.max = maxToolName
	}
	if t.Breakpoints {
		e.breakpoints = openai.NewBreakpoints(r)
	}
	if err := r.Rename(e.max); err != nil {
		return dst, err
	}
	r.HiddenResponse = false
	if err := e.reject(); err != nil {
		return dst, err
	}
	r.ReportUnread(loss)
	r.ReportBelow(loss, chat.BelowCitations|chat.BelowDocuments|chat.BelowRemoteTitles|chat.BelowCallSignatures|chat.BelowResultMarkers|chat.BelowWay)
	e.b = append(e.b, `{"model":`...)
	e.b = wire.AppendJSONString(e.b, r.Model)
	if err := e.input(); err != nil {
		return dst, err
	}
	if err := e.tools(); err != nil {
		return dst, err
	}
	e.settings()
	if err := e.respond(); err != nil {
		return dst, err
	}
	e.extra()
	e.b = append(e.b, '}')
	if err := loss.Err(); err != nil {
		return dst, err
	}
	return e.b, nil
}

// reject checks the bounds in which this dialect is narrower than others.
func (e *requestEncoder) reject() error {
	r := e.r
	if r.N.Set && r.N.Value > 1 {
		return fault.Invalid("n", "n must be 1 for this provider, which returns one response")
	}
	if c := r.Completion; c != nil {
		switch {
		case c.Prompts > 1:
			return fault.Invalid("prompt", "prompt must be one text for this provider, not a list of %d", c.Prompts)
		case c.BestOf.Set && c.BestOf.Value > 1:
			return fault.Invalid("best_of", "best_of must be 1 for this provider, which returns one response")
		}
	}
	return nil
}

func (e *requestEncoder) key(name string) {
	e.b = append(append(append(e.b, `,"`...), name...), `":`...)
}

func (e *requestEncoder) str(name, value string) {
	e.key(name)
	e.b = wire.AppendJSONString(e.b, value)
}

func (e *requestEncoder) dropIf(set bool, path string) {
	if set {
		e.loss.Add(path, notTaken)
	}
}

// settings writes bounds and sampling, and reports what has no place in this shape.
func (e *requestEncoder) settings() {
	r := e.r
	if r.MaxTokens.Set {
		e.key("max_output_tokens")
		e.b = strconv.AppendInt(e.b, r.MaxTokens.Value, 10)
	}
	if r.Stream {
		e.b = append(e.b, `,"stream":true`...)
	}
	number := func(name string, v chat.Opt[float64]) {
		switch {
		case !v.Set:
		case e.t.Sampling == chat.SamplingNone:
			e.loss.Add(name, notTaken)
		default:
			e.key(name)
			e.b = strconv.AppendFloat(e.b, v.Value, 'g', -1, 64)
		}
	}
	number("temperature", r.Temperature)
	number("top_p", r.TopP)
	r.ReportLoss(e.loss, notTaken, "temperature", "top_p", "user", "service_tier")
	if r.User != "" {
		e.str("user", hosts.User(e.t.Provider, r.User, e.loss))
	}
	switch r.ServiceTier {
	case "":
	case "standard_only", "standard":
		e.str("service_tier", "default")
	default:
		e.str("service_tier", r.ServiceTier)
	}
	if c := r.Completion; c != nil {
		e.dropIf(c.Suffix != "", "suffix")
		if c.Logprobs.Set {
			e.loss.AddResponse("logprobs", notTaken)
		}
	}
}

// respond writes the format of the response, how much the model thinks before it, and the
// additional output.
func (e *requestEncoder) respond() error {
	r := e.r
	if r.Format.Kind == chat.FormatSchema && e.t.Schema == chat.SchemaNone {
		return fault.New(fault.UnsupportedResponse, "response_format", "This model cannot answer in a JSON schema")
	}
	verbosity := ""
	for _, x := range r.Extra {
		if x.Name == "verbosity" && wire.KindOf(x.Raw) == wire.KindString {
			verbosity = string(x.Raw)
		}
	}
	if r.Format.Set || verbosity != "" {
		e.b = append(e.b, `,"text":{"format":`...)
		f := r.Format
		if !f.WritesStrict(e.t) {
			f.Strict = chat.Opt[bool]{}
		}
		e.b = appendFormat(e.b, &f)
		if verbosity != "" {
			e.b = append(append(e.b, `,"verbosity":`...), verbosity...)
		}
		e.b = append(e.b, '}')
	}
	thinks := e.reasoning()
	include := []string(nil)
	if thinks {
		include = append(include, `"reasoning.encrypted_content"`)
	}
	if r.Logprobs.Set && r.Logprobs.Value {
		include = append(include, `"message.output_text.logprobs"`)
	}
	for i, s := range include {
		if i == 0 {
			e.b = append(e.b, `,"include":[`...)
		} else {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, s...)
		if i == len(include)-1 {
			e.b = append(e.b, ']')
		}
	}
	if r.TopLogprobs.Set {
		e.key("top_logprobs")
		e.b = strconv.AppendInt(e.b, r.TopLogprobs.Value, 10)
	}
	return nil
}

// reasoning writes the effort and reports whether the model thinks. If it does, its
// reasoning is requested, because the next turn needs it and no provider stores it for
// the gateway.
func (e *requestEncoder) reasoning() bool {
	r := e.r.Reasoning
	effort := r.Effort
	if r.Thinking == chat.ThinkingBudget || r.Thinking == chat.ThinkingAdaptive {
		if r.Budget.Set {
			e.loss.Add("thinking.budget_tokens", "given as an effort")
			if effort == "" {
				effort = chat.EffortOf(r.Budget.Value)
			}
		}
		if effort == "" {
			effort = "medium"
		}
	}
	if r.Thinking == chat.ThinkingOff && effort == "" {
		return e.t.Sampling == chat.SamplingNone
	}
	if effort == "max" {
		effort = "xhigh"
	}
	if e.t.NoEffort || e.t.Thinking == chat.ThinksNever {
		e.dropIf(r.Effort != "", "reasoning_effort")
		e.dropIf(r.Thinking >= chat.ThinkingBudget, "thinking")
		return false
	}
	if effort != "" {
		e.b = append(e.b, `,"reasoning":{"effort":`...)
		e.b = wire.AppendJSONString(e.b, effort)
		if r.Display == "summarized" || r.Thinking >= chat.ThinkingBudget && r.Display == "" {
			e.b = append(e.b, `,"summary":"auto"`...)
		}
		e.b = append(e.b, '}')
	}
	return r.On() || e.t.Sampling == chat.SamplingNone
}

// sharedFields are the fields of chat completions that this format has under the same name.
var sharedFields = map[string]bool{
	"store": true, "metadata": true, "prompt_cache_key": true, "prompt_cache_retention": true, "safety_identifier": true,
}

// extra forwards fields that both OpenAI formats have. Nothing is stored unless the
// client requests it.
func (e *requestEncoder) extra() {
	store, cacheKey := false, false
	for _, x := range e.r.Extra {
		switch {
		case x.Name == "verbosity" && wire.KindOf(x.Raw) == wire.KindString:
		case sharedFields[x.Name] && !e.t.NoUnknown, x.Name == "prompt_cache_options" && e.t.Breakpoints:
			store, cacheKey = store || x.Name == "store", cacheKey || x.Name == "prompt_cache_key"
			e.key(x.Name)
			e.b = append(e.b, x.Raw...)
		case x.Name == "audio" || x.Name == "modalities":
			e.loss.AddResponse(x.Name, notTaken)
		default:
			e.loss.Add(x.Name, notTaken)
		}
	}
	if !store {
		e.b = append(e.b, `,"store":false`...)
	}
	if e.t.PromptCacheKey && !cacheKey && len(e.r.Messages) > 1 {
		e.str("prompt_cache_key", openai.Conversation(e.r))
	}
}

// tools writes tools and tool_choice.
func (e *requestEncoder) tools() error {
	r := e.r
	n := 0
	for i := range r.Tools {
		t := &r.Tools[i]
		path := indexed("tools", i)
		if r.Legacy {
			path = indexed("functions", i)
		}
		if t.ForeignType != "" || e.t.NoTools {
			e.loss.Add(path, notTaken)
			continue
		}
		if n++; n == 1 {
			e.b = append(e.b, `,"tools":[`...)
		} else {
			e.b = append(e.b, ',')
		}
		strict := t.Strict.Value
		if strict && !r.WritesStrict(t) && !e.t.NoStrictTools {
			strict = false
			e.loss.Add(path+".strict", "this provider supports strict only for schemas that require every property")
		}
		sent := *t
		sent.Schema = chat.ObjectSchema(t.Schema)
		e.b = appendTool(e.b, &sent, chat.LegalName(t.Name, e.max), strict, !e.t.NoStrictTools)
		e.dropIf(t.Strict.Set && e.t.NoStrictTools, path+".strict")
		e.dropIf(t.Cache != chat.NoCache, path+".cache_control")
		for _, x := range t.Extra {
			e.loss.Add(path+"."+x.Name, notTaken)
		}
	}
	if n == 0 {
		if r.ToolChoice.Forced() {
			return fault.Invalid("tool_choice", "tool_choice forces a tool, but none of the tools can be sent to this provider")
		}
		return nil
	}
	e.b = append(e.b, ']')
	switch c := r.ToolChoice; c.Mode {
	case chat.ToolsUnset:
	case chat.ToolsNamed:
		e.b = append(e.b, `,"tool_choice":{"type":"function","name":`...)
		e.b = append(wire.AppendJSONString(e.b, chat.LegalName(c.Name, e.max)), '}')
	default:
		e.key("tool_choice")
		e.b = appendToolChoice(e.b, r)
	}
	if r.Parallel.Set {
		if e.t.NoParallelTools {
			e.loss.Add("parallel_tool_calls", notTaken)
		} else {
			e.key("parallel_tool_calls")
			e.b = strconv.AppendBool(e.b, r.Parallel.Value)
		}
	}
	return nil
}

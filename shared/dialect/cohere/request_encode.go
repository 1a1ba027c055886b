package cohere

import (
	"slices"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Bounds of the provider.
const (
	maxToolName = 64
	maxStops    = 5
	maxK        = 500
	minP, maxP  = 0.01, 0.99
)

// requestEncoder writes one request. What does not change from turn to turn
// comes before the messages, which come last.
type requestEncoder struct {
	upstream.Object
	r    *chat.Request
	t    *chat.Traits
	loss *chat.Loss
}

// passed are fields that clients of other dialects may use in Cohere's form.
var passed = []string{"documents", "citation_options", "safety_mode", "strict_tools", "priority", "k", "p"}

func encodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	e := &requestEncoder{Object: *upstream.Begin(dst), r: r, t: t, loss: loss}
	if err := r.Rename(maxToolName); err != nil {
		return dst, err
	}
	if err := reject(e); err != nil {
		return dst, err
	}
	carried := append([]string{"temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "logprobs", "tools", "response_format", "reasoning"}, passed...)
	r.ReportBelow(loss, chat.BelowDocuments|chat.BelowResultMarkers|chat.BelowWay)
	if err := upstream.ReportLoss(r, loss, carried...); err != nil {
		return dst, err
	}
	if err := write(e); err != nil {
		return dst, err
	}
	if err := loss.Err(); err != nil {
		return dst, err
	}
	return e.B, nil
}

// reject checks the bounds in which this provider is narrower than the specification.
func reject(e *requestEncoder) error {
	r := e.r
	switch {
	case len(r.Messages) == 0:
		return fault.Invalid("messages", "messages must contain at least one message for this provider")
	case r.MaxTokens.Set && r.MaxTokens.Value < 1:
		return fault.Invalid(r.MaxTokensField, "%s must be at least 1 for this provider", r.MaxTokensField)
	case r.Temperature.Set && r.Temperature.Value > 1 && !e.t.ClampTemperature:
		return fault.Invalid("temperature", "temperature must be between 0 and 1 for this provider")
	case r.TopK.Set && (r.TopK.Value < 0 || r.TopK.Value > maxK):
		return fault.Invalid("top_k", "top_k must be between 0 and %d for this provider", maxK)
	case len(r.Stop) > maxStops:
		return fault.Invalid("stop", "stop must contain at most %d strings for this provider", maxStops)
	}
	for _, p := range [...]struct {
		name string
		v    chat.Opt[float64]
	}{{"frequency_penalty", r.FrequencyPenalty}, {"presence_penalty", r.PresencePenalty}} {
		if p.v.Set && (p.v.Value < 0 || p.v.Value > 1) {
			return fault.Invalid(p.name, "%s must be between 0 and 1 for this provider", p.name)
		}
	}
	return nil
}

func write(e *requestEncoder) error {
	r := e.r
	e.Str("model", r.Model)
	if r.Stream {
		e.Bool("stream", true)
	}
	e.IntIf("max_tokens", r.MaxTokens)
	sampling(e)
	encodeLogprobs(e)
	thinking(e)
	if err := format(e); err != nil {
		return err
	}
	if err := tools(e); err != nil {
		return err
	}
	extra(e)
	if err := documents(e); err != nil {
		return err
	}
	e.Key("messages")
	e.Open('[')
	for i := range r.Messages {
		if err := encodeMessage(e, &r.Messages[i]); err != nil {
			return err
		}
	}
	e.Close(']')
	e.Close('}')
	return nil
}

func sampling(e *requestEncoder) {
	r := e.r
	temperature, p := r.Temperature, r.TopP
	if temperature.Set && temperature.Value > 1 {
		temperature.Value = 1
		e.loss.Add("temperature", "cut to 1")
	}
	e.FloatIf("temperature", temperature)
	if p.Set && (p.Value < minP || p.Value > maxP) {
		// 1 means "no cut" elsewhere, but is not allowed here.
		p.Value = min(max(p.Value, minP), maxP)
		e.loss.Add("top_p", "cut to "+strconv.FormatFloat(p.Value, 'g', -1, 64))
	}
	e.FloatIf("p", p)
	e.IntIf("k", r.TopK)
	e.FloatIf("frequency_penalty", r.FrequencyPenalty)
	e.FloatIf("presence_penalty", r.PresencePenalty)
	e.IntIf("seed", r.Seed)
	e.ListIf("stop_sequences", r.Stop)
}

// thinking writes whether the model thinks; it knows no levels of effort.
func thinking(e *requestEncoder) {
	g := e.r.Reasoning
	off := g.Thinking == chat.ThinkingOff || g.Thinking == chat.ThinkingUnset && (g.Effort == "none" || g.Effort == "minimal")
	field := "thinking"
	if g.Thinking == chat.ThinkingUnset {
		field = "reasoning_effort"
	}
	if g.Display != "" {
		e.loss.Add("thinking.display", upstream.UnsupportedField)
	}
	switch {
	case e.t.Thinking == chat.ThinksNever:
		if g.On() {
			e.loss.Add(field, "not accepted by this model")
		}
	case off:
		e.Raw("thinking", []byte(`{"type":"disabled"}`))
	case g.On():
		e.Key("thinking")
		e.Open('{')
		e.Str("type", "enabled")
		e.IntIf("token_budget", g.Budget)
		e.Close('}')
	}
	if g.Effort != "" && (g.Thinking != chat.ThinkingUnset || g.On() && e.t.Thinking != chat.ThinksNever) {
		e.loss.Add("reasoning_effort", "thinking is on or off here")
	}
}

func format(e *requestEncoder) error {
	f := &e.r.Format
	if f.Kind == chat.FormatText {
		return nil
	}
	if len(e.r.Tools) > 0 && e.r.ToolChoice.Mode != chat.ToolsNone {
		return fault.New(fault.UnsupportedResponse, "response_format", "This provider cannot answer in JSON with tools: omit either tools or response_format")
	}
	if e.t.Schema == chat.SchemaNone {
		return fault.New(fault.UnsupportedResponse, "response_format", "This model has no JSON mode")
	}
	e.Key("response_format")
	e.Open('{')
	e.Str("type", "json_object")
	if f.Kind == chat.FormatSchema {
		e.Raw("json_schema", f.Schema)
		if f.Description != "" {
			e.loss.Add("response_format.json_schema.description", upstream.UnsupportedField)
		}
	}
	e.Close('}')
	return nil
}

// tools writes the functions. To choose one function, only that one is given, because the
// provider takes no names in tool_choice.
func tools(e *requestEncoder) error {
	r := e.r
	choice := r.ToolChoice
	list := "tools"
	if r.Legacy {
		list = "functions"
	}
	strict, explicit := 0, 0
	start := len(e.B)
	e.Key("tools")
	e.Open('[')
	for i := range r.Tools {
		t := &r.Tools[i]
		at := list + "[" + strconv.Itoa(i) + "]"
		switch {
		case t.ForeignType != "" || e.t.NoTools:
			e.loss.Add(at, upstream.UnsupportedField)
			continue
		case choice.Mode == chat.ToolsNamed && t.Name != choice.Name:
			continue
		case choice.Mode == chat.ToolsNone && r.Format.Kind != chat.FormatText:
			e.loss.Add(at, "not accepted beside response_format")
			continue
		}
		explicit++
		if t.Strict.Value {
			strict++
		}
		tool(e, t, at)
	}
	e.Close(']')
	if explicit == 0 {
		e.B = e.B[:start]
		switch {
		case choice.Mode == chat.ToolsNamed && len(r.Tools) > 0:
			return fault.Invalid("tool_choice", "tool_choice names a function that is not among %s", list)
		case choice.Forced():
			return fault.Invalid("tool_choice", "tool_choice forces a tool, but this provider accepts no tools")
		}
		return nil
	}
	encodeStrict(e, strict, explicit, list)
	switch choice.Mode {
	case chat.ToolsNone:
		e.Str("tool_choice", "NONE")
	case chat.ToolsRequired, chat.ToolsNamed:
		e.Str("tool_choice", "REQUIRED")
	}
	if r.Parallel.Set && !r.Parallel.Value && choice.Mode != chat.ToolsNone {
		e.loss.Add("parallel_tool_calls", upstream.UnsupportedField)
	}
	return nil
}

// encodeStrict holds the model to the schemas: of all tools or of none.
func encodeStrict(e *requestEncoder, strict, explicit int, list string) {
	switch {
	case strict == explicit && !slices.ContainsFunc(e.r.Extra, func(x chat.Field) bool { return x.Name == "strict_tools" }):
		e.Bool("strict_tools", true)
	case strict > 0 && strict < explicit:
		e.loss.Add(list+".strict", "treated as all tools or none")
	}
}

func tool(e *requestEncoder, t *chat.Tool, at string) {
	e.Open('{')
	e.Str("type", "function")
	e.Key("function")
	e.Open('{')
	e.Str("name", chat.LegalName(t.Name, maxToolName))
	if t.Description.Set {
		e.Str("description", t.Description.Value)
	}
	if t.Schema == nil {
		e.Raw("parameters", []byte(`{"type":"object","properties":{}}`))
	} else {
		e.Raw("parameters", t.Schema)
	}
	e.Close('}')
	e.Close('}')
	for _, x := range t.Extra {
		e.loss.Add(at+"."+x.Name, upstream.UnsupportedField)
	}
	if t.Cache != chat.NoCache {
		e.loss.Add(at+".cache_control", upstream.UnsupportedField)
	}
}

// extra forwards fields that only this provider knows.
func extra(e *requestEncoder) {
	for _, x := range e.r.Extra {
		switch {
		case !slices.Contains(passed, x.Name) || x.Name == "documents":
		case x.Name == "k" && e.r.TopK.Set, x.Name == "p" && e.r.TopP.Set:
			e.loss.Add(x.Name, "given twice")
		default:
			e.Raw(x.Name, x.Raw)
		}
	}
}

// encodeLogprobs requests log probabilities. The provider returns those of the selected
// tokens, and no alternatives.
func encodeLogprobs(e *requestEncoder) {
	r := e.r
	if r.Logprobs.Set {
		e.Bool("logprobs", r.Logprobs.Value)
	}
	if r.TopLogprobs.Value > 0 {
		e.loss.AddResponse("top_logprobs", upstream.UnsupportedField)
	}
	if c := r.Completion; c != nil && c.Logprobs.Set {
		e.loss.AddResponse("logprobs", upstream.UnsupportedField)
	}
}

// appendLogprobs writes items of {text, logprobs:[...]}, a list of them or one, as the
// logprobs object of the OpenAI format. An item of several tokens has one text, with the
// product of their probabilities. It returns nil if there are none.
func appendLogprobs(dst, raw []byte) []byte {
	d := wire.NewDecoder(raw)
	start := len(dst)
	dst = append(dst, `{"content":[`...)
	open := len(dst)
	item := func() {
		text, sum, n := "", 0.0, 0
		each(d, func(key string) {
			switch {
			case key == "text":
				text = upstream.OptString(d)
			case key == "logprobs" && d.Kind() == wire.KindArray:
				for range d.Array {
					sum += d.Float()
					n++
				}
			}
		})
		if n == 0 {
			return
		}
		if len(dst) > open {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"token":`...)
		dst = wire.AppendJSONString(dst, text)
		dst = append(dst, `,"logprob":`...)
		dst = strconv.AppendFloat(dst, sum, 'g', -1, 64)
		dst = append(dst, `,"bytes":[`...)
		for i := range len(text) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(dst, int64(text[i]), 10)
		}
		dst = append(dst, `],"top_logprobs":[]}`...)
	}
	if d.Kind() == wire.KindArray {
		for range d.Array {
			item()
		}
	} else {
		item()
	}
	if d.Err() != nil || len(dst) == open {
		return dst[:start:start]
	}
	return append(dst, `],"refusal":null}`...)
}

// addLogprobs adds the provider's log probabilities to a choice.
func addLogprobs(c *chat.Choice, raw []byte) {
	if raw == nil {
		return
	}
	if b := appendLogprobs(nil, raw); len(b) > 0 {
		c.Logprobs = b
	}
}

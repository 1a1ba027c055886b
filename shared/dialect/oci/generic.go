package oci

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// genericEncoder writes a request of the format GENERIC.
type genericEncoder struct {
	*upstream.Object
	r    *chat.Request
	t    *chat.Traits
	loss *chat.Loss
}

func (e *genericEncoder) write() error {
	r := e.r
	if err := upstream.ReportLoss(r, e.loss, "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "n", "logit_bias", "tools", "response_format", "reasoning"); err != nil {
		return err
	}
	e.Str("apiFormat", "GENERIC")
	if r.Stream {
		e.Bool("isStream", true)
		e.Raw("streamOptions", []byte(`{"isIncludeUsage":true}`))
	}
	bound := "maxTokens"
	if strings.HasPrefix(r.Model, "openai.") {
		bound = "maxCompletionTokens"
	}
	e.IntIf(bound, r.MaxTokens)
	e.IntIf("numGenerations", r.N)
	e.FloatIf("temperature", r.Temperature)
	e.FloatIf("topP", r.TopP)
	e.IntIf("topK", r.TopK)
	e.FloatIf("frequencyPenalty", r.FrequencyPenalty)
	e.FloatIf("presencePenalty", r.PresencePenalty)
	e.IntIf("seed", r.Seed)
	e.ListIf("stop", r.Stop)
	if r.LogitBias != nil {
		e.Raw("logitBias", r.LogitBias)
	}
	e.reasoning()
	e.format()
	if err := e.tools(); err != nil {
		return err
	}
	e.Key("messages")
	e.Open('[')
	for i := range r.Messages {
		if err := e.message(&r.Messages[i]); err != nil {
			return err
		}
	}
	e.Close(']')
	return nil
}

func (e *genericEncoder) reasoning() {
	g := e.r.Reasoning
	switch g.Effort {
	case "":
	case "none", "minimal", "low", "medium", "high":
		e.Str("reasoningEffort", strings.ToUpper(g.Effort))
	default:
		e.loss.Add("reasoning_effort", upstream.UnsupportedField)
	}
	if g.Thinking >= chat.ThinkingBudget {
		e.loss.Add("thinking", upstream.UnsupportedField)
	}
}

func (e *genericEncoder) format() {
	f := &e.r.Format
	if f.Kind == chat.FormatText {
		return
	}
	e.Key("responseFormat")
	e.Open('{')
	if f.Kind == chat.FormatJSON {
		e.Str("type", "JSON_OBJECT")
	} else {
		e.Str("type", "JSON_SCHEMA")
		e.Key("jsonSchema")
		e.Open('{')
		name := f.Name
		if name == "" {
			name = "answer"
		}
		e.Str("name", name)
		e.StrIf("description", f.Description)
		e.Raw("schema", f.Schema)
		if f.WritesStrict(e.t) {
			e.Bool("isStrict", f.Strict.Value)
		}
		e.Close('}')
	}
	e.Close('}')
}

func (e *genericEncoder) tools() error {
	r := e.r
	n := 0
	start := len(e.B)
	e.Key("tools")
	e.Open('[')
	for i := range r.Tools {
		t, at := &r.Tools[i], "tools["+strconv.Itoa(i)+"]"
		if t.ForeignType != "" {
			e.loss.Add(at, upstream.UnsupportedField)
			continue
		}
		n++
		e.Open('{')
		e.Str("type", "FUNCTION")
		e.Str("name", chat.LegalName(t.Name, maxToolName))
		if t.Description.Set {
			e.Str("description", t.Description.Value)
		}
		if t.Schema != nil {
			e.Raw("parameters", t.Schema)
		}
		e.Close('}')
		reportTool(t, at, e.loss)
	}
	e.Close(']')
	if n == 0 {
		e.B = e.B[:start]
		if r.ToolChoice.Forced() {
			return fault.Invalid("tool_choice", "tool_choice forces a tool, but this provider accepts no tools")
		}
		return nil
	}
	if kind := [...]string{"", "AUTO", "NONE", "REQUIRED", "FUNCTION"}[r.ToolChoice.Mode]; kind != "" {
		e.Key("toolChoice")
		e.Open('{')
		e.Str("type", kind)
		if r.ToolChoice.Mode == chat.ToolsNamed {
			e.Str("name", chat.LegalName(r.ToolChoice.Name, maxToolName))
		}
		e.Close('}')
	}
	if r.Parallel.Set {
		e.Bool("isParallelToolCalls", r.Parallel.Value)
	}
	return nil
}

// message writes one message, or one for each tool result.
func (e *genericEncoder) message(m *chat.Message) error {
	if m.Role == chat.ToolRole {
		for i := range m.Parts {
			p := &m.Parts[i]
			if p.Result == nil {
				continue
			}
			if p.Result.CallID == "" {
				at := upstream.Path(m, nil)
				return fault.Invalid(at+".tool_call_id", "%s.tool_call_id must name the tool call that it responds to", at)
			}
			e.Open('{')
			e.Str("role", "TOOL")
			e.Str("toolCallId", p.Result.CallID)
			inner := chat.Message{At: m.At, Parts: p.Result.Parts}
			if err := e.content(&inner); err != nil {
				return err
			}
			e.Close('}')
			reportResult(m, p, e.loss)
		}
		return nil
	}
	e.Open('{')
	e.Str("role", [...]string{"", "SYSTEM", "SYSTEM", "USER", "ASSISTANT"}[m.Role])
	e.StrIf("name", m.Name)
	if err := e.content(m); err != nil {
		return err
	}
	if err := e.calls(m); err != nil {
		return err
	}
	e.Close('}')
	return nil
}

// content writes the texts and media of a message; null when there are none.
func (e *genericEncoder) content(m *chat.Message) error {
	start := len(e.B)
	e.Key("content")
	e.Open('[')
	n := 0
	for i := range m.Parts {
		p, at := &m.Parts[i], upstream.Path(m, &m.Parts[i])
		if p.Cache != chat.NoCache {
			e.loss.Add(at+".cache_control", upstream.UnsupportedField)
		}
		switch p.Kind {
		case chat.Call:
			continue
		case chat.Text, chat.Refusal:
			e.Open('{')
			e.Str("type", "TEXT")
			e.Str("text", p.Text)
			e.Close('}')
		case chat.Image:
			if err := e.image(p, at); err != nil {
				return err
			}
		case chat.Audio:
			e.Open('{')
			e.Str("type", "AUDIO")
			e.Key("audioUrl")
			e.Open('{')
			e.Str("url", "data:audio/"+p.Media.Format+";base64,"+p.Media.Data)
			e.Close('}')
			e.Close('}')
		case chat.Document:
			return fault.Invalid(at, "%s is a document, which this provider does not accept", at)
		default:
			e.loss.Add(at, upstream.UnsupportedField)
			continue
		}
		n++
	}
	e.Close(']')
	if n == 0 {
		e.B = e.B[:start]
		e.Raw("content", []byte("null"))
	}
	return nil
}

func (e *genericEncoder) image(p *chat.Part, at string) error {
	url := p.Media.URL
	if url == "" && p.Media.Data != "" {
		url = "data:" + p.Media.MIME + ";base64," + p.Media.Data
	}
	if url == "" {
		return fault.Invalid(at, "%s must be a data: or https: URL for this provider", at)
	}
	e.Open('{')
	e.Str("type", "IMAGE")
	e.Key("imageUrl")
	e.Open('{')
	e.Str("url", url)
	e.StrIf("detail", strings.ToUpper(p.Media.Detail))
	e.Close('}')
	e.Close('}')
	return nil
}

func (e *genericEncoder) calls(m *chat.Message) error {
	n := 0
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != chat.Call {
			continue
		}
		at := upstream.Path(m, p)
		args, err := upstream.Arguments(p.Call, at+".function.arguments")
		if err != nil {
			return err
		}
		if n++; n == 1 {
			e.Key("toolCalls")
			e.Open('[')
		}
		e.Open('{')
		e.Str("id", p.Call.ID)
		e.Str("type", "FUNCTION")
		e.Str("name", chat.LegalName(p.Call.Name, maxToolName))
		e.Str("arguments", args)
		e.Close('}')
	}
	if n > 0 {
		e.Close(']')
	}
	return nil
}

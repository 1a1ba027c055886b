package oci

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// cohereEncoder writes a request of the format COHERE: one message, a history before it,
// tools with named and typed parameters, calls without ids.
type cohereEncoder struct {
	*upstream.Object
	r    *chat.Request
	loss *chat.Loss
	// calls are the tool calls of the conversation by their ids.
	calls map[string]*chat.ToolCall
}

func (e *cohereEncoder) write() error {
	r := e.r
	if r.Temperature.Set && r.Temperature.Value > 1 {
		return fault.Invalid("temperature", "temperature must be between 0 and 1 for this provider")
	}
	if r.ToolChoice.Forced() {
		return fault.Invalid("tool_choice", "tool_choice must be auto or none for this model, which cannot be forced to call a tool")
	}
	if err := upstream.ReportLoss(r, e.loss, "temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "tools", "response_format"); err != nil {
		return err
	}
	e.Str("apiFormat", "COHERE")
	if r.Stream {
		e.Bool("isStream", true)
		e.Raw("streamOptions", []byte(`{"isIncludeUsage":true}`))
	}
	e.IntIf("maxTokens", r.MaxTokens)
	e.FloatIf("temperature", r.Temperature)
	e.FloatIf("topP", r.TopP)
	e.IntIf("topK", r.TopK)
	e.FloatIf("frequencyPenalty", r.FrequencyPenalty)
	e.FloatIf("presencePenalty", r.PresencePenalty)
	e.IntIf("seed", r.Seed)
	e.ListIf("stopSequences", r.Stop)
	if f := &r.Format; f.Kind != chat.FormatText {
		e.Key("responseFormat")
		e.Open('{')
		e.Str("type", "JSON_OBJECT")
		if f.Kind == chat.FormatSchema {
			e.Raw("schema", f.Schema)
			if f.Description != "" {
				e.loss.Add("response_format.json_schema.description", upstream.UnsupportedField)
			}
		}
		e.Close('}')
	}
	e.tools()
	return e.conversation()
}

func (e *cohereEncoder) tools() {
	n := 0
	for i := range e.r.Tools {
		t, at := &e.r.Tools[i], "tools["+strconv.Itoa(i)+"]"
		if t.ForeignType != "" || e.r.ToolChoice.Mode == chat.ToolsNone {
			e.loss.Add(at, upstream.UnsupportedField)
			continue
		}
		if n++; n == 1 {
			e.Key("tools")
			e.Open('[')
		}
		e.Open('{')
		e.Str("name", chat.LegalName(t.Name, maxToolName))
		e.Str("description", t.Description.Value)
		if t.Schema != nil {
			e.loss.Add(at+".function.parameters", "names, types and descriptions only")
			e.parameters(t.Schema)
		}
		e.Close('}')
		reportTool(t, at, e.loss)
	}
	if n > 0 {
		e.Close(']')
		e.Bool("isForceSingleStep", true)
		if e.r.Parallel.Set && !e.r.Parallel.Value {
			e.loss.Add("parallel_tool_calls", upstream.UnsupportedField)
		}
	}
}

// types are the provider's words for the types of a schema.
var types = map[string]string{"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}

// parameters writes the properties of a schema.
func (e *cohereEncoder) parameters(schema []byte) {
	required := map[string]bool{}
	d := wire.NewDecoder(schema)
	var properties []byte
	object(d, func(key string) {
		switch key {
		case "required":
			list(d, func(int) { required[upstream.OptString(d)] = true })
		case "properties":
			properties = d.Raw()
		}
	})
	e.Key("parameterDefinitions")
	e.Open('{')
	d = wire.NewDecoder(properties)
	if wire.KindOf(properties) == wire.KindObject {
		object(d, func(key string) {
			kind, description := "str", ""
			object(d, func(key string) {
				switch key {
				case "type":
					if word := types[upstream.OptString(d)]; word != "" {
						kind = word
					}
				case "description":
					description = upstream.OptString(d)
				}
			})
			quoted := wire.AppendJSONString(nil, key)
			e.Key(string(quoted[1 : len(quoted)-1]))
			e.Open('{')
			e.StrIf("description", description)
			e.Str("type", kind)
			e.Bool("isRequired", required[key])
			e.Close('}')
		})
	}
	e.Close('}')
}

// conversation writes the system prompts, the history, and the message or tool results to
// be answered.
func (e *cohereEncoder) conversation() error {
	upstream.MovedPrompts(e.r, e.loss)
	ms := e.r.Messages
	var rules []string
	var turns []*chat.Message
	for i := range ms {
		m := &ms[i]
		if m.Role != chat.System && m.Role != chat.Developer {
			turns = append(turns, m)
			continue
		}
		text, err := upstream.Flat(m, e.loss)
		if err != nil {
			return err
		}
		rules = append(rules, text)
	}
	e.StrIf("preambleOverride", strings.Join(rules, "\n\n"))
	n := len(turns) // number of turns in the history
	for n > 0 && turns[n-1].Role == chat.ToolRole {
		n--
	}
	results := turns[n:]
	if len(results) == 0 && n > 0 {
		n--
	}
	if len(results) == 0 && (len(turns) == 0 || turns[n].Role != chat.User) {
		return fault.Invalid("messages", "messages must end with a message of the user or the result of a tool for this provider")
	}
	if err := e.history(turns[:n]); err != nil {
		return err
	}
	if len(results) > 0 {
		e.Str("message", "")
		return e.results(results)
	}
	text, err := upstream.Flat(turns[n], e.loss)
	e.Str("message", text)
	return err
}

func (e *cohereEncoder) history(turns []*chat.Message) error {
	if len(turns) == 0 {
		return nil
	}
	e.Key("chatHistory")
	e.Open('[')
	for i := 0; i < len(turns); i++ {
		m := turns[i]
		e.Open('{')
		switch m.Role {
		case chat.ToolRole:
			e.Str("role", "TOOL")
			j := i
			for j < len(turns) && turns[j].Role == chat.ToolRole {
				j++
			}
			if err := e.results(turns[i:j]); err != nil {
				return err
			}
			i = j - 1
		case chat.Assistant:
			if err := e.chatbot(m); err != nil {
				return err
			}
		default:
			text, err := upstream.Flat(m, e.loss)
			if err != nil {
				return err
			}
			e.Str("role", "USER")
			e.Str("message", text)
		}
		e.Close('}')
	}
	e.Close(']')
	return nil
}

// chatbot writes a response of the model.
func (e *cohereEncoder) chatbot(m *chat.Message) error {
	turn := *m
	turn.Parts = nil
	calls := 0
	for _, p := range m.Parts {
		if p.Kind == chat.Call {
			if calls++; p.Cache != chat.NoCache {
				e.loss.Add(upstream.Path(m, &p)+".cache_control", upstream.UnsupportedField)
			}
			continue
		}
		turn.Parts = append(turn.Parts, p)
	}
	text, err := upstream.Flat(&turn, e.loss)
	if err != nil {
		return err
	}
	e.Str("role", "CHATBOT")
	e.Str("message", text)
	if calls == 0 {
		return nil
	}
	e.Key("toolCalls")
	e.Open('[')
	for i := range m.Parts {
		if p := &m.Parts[i]; p.Kind == chat.Call {
			if err := e.call(p.Call, upstream.Path(m, p)); err != nil {
				return err
			}
		}
	}
	e.Close(']')
	return nil
}

func (e *cohereEncoder) call(c *chat.ToolCall, at string) error {
	args, err := upstream.Arguments(c, at+".function.arguments")
	if err != nil {
		return err
	}
	e.Open('{')
	e.Str("name", chat.LegalName(c.Name, maxToolName))
	e.Raw("parameters", []byte(args))
	e.Close('}')
	return nil
}

// results writes tool results, each with the call that it answers.
func (e *cohereEncoder) results(messages []*chat.Message) error {
	e.Key("toolResults")
	e.Open('[')
	for _, m := range messages {
		for i := range m.Parts {
			r := m.Parts[i].Result
			if r == nil {
				continue
			}
			call, at := e.called(r.CallID), upstream.Path(m, nil)
			if call == nil {
				return fault.Invalid(at+".tool_call_id", "%s.tool_call_id must name a tool call of this conversation", at)
			}
			reportResult(m, &m.Parts[i], e.loss)
			inner := chat.Message{At: m.At, Parts: r.Parts}
			text, err := upstream.Flat(&inner, e.loss)
			if err != nil {
				return err
			}
			e.Open('{')
			e.Key("call")
			if err := e.call(call, at); err != nil {
				return err
			}
			e.Key("outputs")
			e.Open('[')
			e.Open('{')
			e.Str("output", text)
			e.Close('}')
			e.Close(']')
			e.Close('}')
		}
	}
	e.Close(']')
	return nil
}

// called finds the last call with an id.
func (e *cohereEncoder) called(id string) *chat.ToolCall {
	if e.calls == nil {
		e.calls = make(map[string]*chat.ToolCall)
		for i := range e.r.Messages {
			for j := range e.r.Messages[i].Parts {
				if c := e.r.Messages[i].Parts[j].Call; c != nil && c.ID != "" {
					e.calls[c.ID] = c
				}
			}
		}
	}
	return e.calls[id]
}

package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/usage"
)

// Content is the content of a request and its response, in the form of the conventions.
type Content struct {
	attrs  attrs  // of the request's parameters
	texts  attrs  // messages, instructions, tools
	finish string // of the first message of the response; "" if there is none
}

// describe adds the content to a span; it may be nil.
func (c *Content) describe(a *attrs) {
	if c != nil {
		*a = append(append(*a, c.attrs...), c.texts...)
	}
}

// Part is a piece of a message.
type Part struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
	Response  any    `json:"response,omitempty"`
	Modality  string `json:"modality,omitempty"`
	URI       string `json:"uri,omitempty"`
	MimeType  string `json:"mime_type,omitempty"`
}

// MarshalJSON implements json.Marshaler. The conventions demand the content of texts and
// blobs also where it is empty; the bytes of blobs are not exported.
func (p Part) MarshalJSON() ([]byte, error) {
	type plain Part
	if p.Content == "" && (p.Type == "text" || p.Type == "reasoning" || p.Type == "blob") {
		return json.Marshal(struct {
			plain
			Content string `json:"content"`
		}{plain: plain(p)})
	}
	return json.Marshal(plain(p))
}

// Message is one message. Only responses have a Finish.
type Message struct {
	Role   string `json:"role"`
	Parts  []Part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"`
}

type object = map[string]any

// ReadContent reads requests and responses in the formats of clients. What it does not
// understand is omitted. failed reports whether the response failed or was truncated.
func ReadContent(b *usage.Bodies, failed bool) *Content {
	c := &Content{}
	if request, ok := parse(b.Request); ok {
		c.parameters(request)
		c.json(attrInputMessages, inputOf(request))
		if system := partsOf(first(request["system"], request["instructions"])); len(system) > 0 {
			c.json(attrInstructions, system)
		}
		if tools := definitions(request["tools"]); len(tools) > 0 {
			c.json(attrTools, tools)
		}
	}
	answer, ok := parse(b.Response)
	if !ok {
		answer = gather(b.Response)
	}
	if id := str(answer["id"]); id != "" {
		c.attrs.add(attrResponseID, id)
	}
	out := outputOf(answer)
	for i := range out {
		// The conventions demand a reason. Some successful responses have none.
		switch m := &out[i]; {
		case m.Finish == "" && failed:
			m.Finish = "error"
		case m.Finish == "":
			m.Finish = "stop"
		}
		c.finish = out[0].Finish
	}
	c.json(attrOutputMessages, out)
	return c
}

func parse(raw []byte) (object, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var o object
	return o, d.Decode(&o) == nil && !d.More()
}

// json adds an attribute that is JSON, unless the list is empty.
func (c *Content) json(key string, v any) {
	if list, ok := v.([]Message); ok && len(list) == 0 {
		return
	}
	if raw, err := json.Marshal(v); err == nil {
		c.texts.add(key, string(raw))
	}
}

// parameters adds the request's parameters beside its messages.
func (c *Content) parameters(o object) {
	whole := func(key string, v any) {
		if n, ok := v.(json.Number); ok {
			if i, err := n.Int64(); err == nil {
				c.attrs.add(key, i)
			}
		}
	}
	real := func(key string, v any) {
		if n, ok := v.(json.Number); ok {
			if x, err := n.Float64(); err == nil {
				c.attrs.add(key, x)
			}
		}
	}
	texts := func(key string, v any) {
		switch v := v.(type) {
		case string:
			c.attrs.add(key, []string{v})
		case []any:
			var list []string
			for _, s := range v {
				list = append(list, str(s))
			}
			c.attrs.add(key, list)
		}
	}
	whole(attrMaxTokens, first(o["max_tokens"], o["max_completion_tokens"], o["max_output_tokens"]))
	whole(attrSeed, o["seed"])
	if n, ok := o["n"].(json.Number); ok && n != "1" {
		whole(attrChoices, n)
	}
	real(attrTemperature, o["temperature"])
	real(attrTopP, o["top_p"])
	real(attrTopK, o["top_k"])
	real(attrFrequency, o["frequency_penalty"])
	real(attrPresence, o["presence_penalty"])
	texts(attrStop, first(o["stop"], o["stop_sequences"]))
	texts(attrEncodings, o["encoding_format"])
	c.attrs.text(attrOutputType, outputType(o))
}

// outputType returns the kind of content that a request specifies; "" if none.
func outputType(o object) string {
	format, _ := o["response_format"].(object)
	if text, ok := o["text"].(object); ok && format == nil {
		format, _ = text["format"].(object)
	}
	if config, ok := o["output_config"].(object); ok && format == nil {
		format, _ = config["format"].(object)
	}
	kinds, _ := o["modalities"].([]any)
	switch {
	case slices.Contains(kinds, any("audio")):
		return "speech"
	case slices.Contains(kinds, any("image")):
		return "image"
	case str(format["type"]) == "json_object" || str(format["type"]) == "json_schema":
		return "json"
	case str(format["type"]) == "text":
		return "text"
	}
	return ""
}

// definition is the definition of a tool by the conventions.
type definition struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Parameters  any    `json:"parameters,omitempty"`
}

// definitions reads the tools of a request in the form of any client.
func definitions(v any) (out []definition) {
	list, _ := v.([]any)
	for _, it := range list {
		o, _ := it.(object)
		if declared, ok := first(o["functionDeclarations"], o["function_declarations"]).([]any); ok {
			for _, it := range declared {
				f, _ := it.(object)
				out = append(out, function(f, f["parameters"]))
			}
			continue
		}
		kind := str(o["type"])
		f, nested := o["function"].(object)
		switch {
		case nested:
			out = append(out, function(f, f["parameters"]))
		case kind == "function" || kind == "custom" || kind == "" && o["name"] != nil:
			out = append(out, function(o, first(o["parameters"], o["input_schema"])))
		case kind != "":
			out = append(out, definition{Type: kind, Name: cmp.Or(str(o["name"]), str(o["server_label"]), kind)})
		}
	}
	return slices.DeleteFunc(out, func(d definition) bool { return d.Name == "" })
}

func function(f object, parameters any) definition {
	return definition{"function", str(f["name"]), str(f["description"]), parameters}
}

func first(values ...any) any {
	for _, v := range values {
		if v != nil {
			return v
		}
	}
	return nil
}

func str(v any) string { s, _ := v.(string); return s }

// inputOf is the content of a request.
func inputOf(o object) []Message {
	if p := str(o["prompt"]); p != "" {
		return []Message{{Role: "user", Parts: []Part{{Type: "text", Content: p}}}}
	}
	switch list := first(o["messages"], o["input"]).(type) {
	case string:
		return []Message{{Role: "user", Parts: []Part{{Type: "text", Content: list}}}}
	case []any:
		return messagesOf(list)
	}
	return nil
}

// outputOf is the content of a response.
func outputOf(o object) (out []Message) {
	choices, _ := o["choices"].([]any)
	for _, it := range choices {
		choice, _ := it.(object)
		m, _ := choice["message"].(object)
		if m == nil && choice["text"] != nil { // from the older completions
			m = object{"content": choice["text"]}
		}
		if m == nil {
			continue
		}
		made := messageOf(m)
		made.Role, made.Finish = "assistant", finish(str(choice["finish_reason"]))
		out = append(out, made)
	}
	if parts := partsOf(o["content"]); len(parts) > 0 {
		out = append(out, Message{Role: "assistant", Parts: parts, Finish: finish(str(o["stop_reason"]))})
	}
	if items, ok := o["output"].([]any); ok {
		made := Message{Role: "assistant"}
		for _, m := range messagesOf(items) {
			made.Parts = append(made.Parts, m.Parts...)
		}
		made.Finish = finishOf(o, made.Parts)
		if len(made.Parts) > 0 {
			out = append(out, made)
		}
	}
	return out
}

// finish is a finish reason by its name in the conventions; "" if nothing has finished.
func finish(reason string) string {
	switch strings.ToLower(reason) {
	case "", "in_progress", "queued":
		return ""
	case "end_turn", "stop_sequence", "completed", "stop", "complete", "eos", "pause_turn":
		return "stop"
	case "max_tokens", "max_output_tokens", "incomplete", "length", "model_length", "model_context_window_exceeded":
		return "length"
	case "tool_use", "tool_calls", "tool_call", "function_call":
		return "tool_call"
	case "refusal", "content_filter", "content_filtered", "safety", "guardrail_intervened", "blocklist", "prohibited_content", "recitation", "spii", "image_safety", "error_toxic":
		return "content_filter"
	case "failed", "cancelled", "error", "malformed_function_call":
		return "error"
	}
	return reason
}

// finishOf derives the finish reason of a response that only has a status: a response
// with tool calls ended with them, and an incomplete one has a reason.
func finishOf(o object, parts []Part) string {
	status := str(o["status"])
	if details, ok := o["incomplete_details"].(object); ok && status == "incomplete" {
		return finish(cmp.Or(str(details["reason"]), status))
	}
	if finish(status) == "stop" && slices.ContainsFunc(parts, func(p Part) bool { return p.Type == "tool_call" }) {
		return "tool_call"
	}
	return finish(status)
}

func messagesOf(list []any) (out []Message) {
	for _, it := range list {
		if m, ok := it.(object); ok {
			if made := messageOf(m); len(made.Parts) > 0 {
				out = append(out, made)
			}
		}
	}
	return out
}

// messageOf reads a message, or an item of responses, which counts as a message.
func messageOf(m object) Message {
	out := Message{Role: str(m["role"])}
	switch str(m["type"]) {
	case "function_call", "custom_tool_call":
		return Message{Role: "assistant", Parts: []Part{call(str(m["call_id"]), str(m["name"]), first(m["arguments"], m["input"]))}}
	case "function_call_output", "custom_tool_call_output":
		return Message{Role: "tool", Parts: []Part{{Type: "tool_call_response", ID: str(m["call_id"]), Response: m["output"]}}}
	case "reasoning":
		return Message{Role: "assistant", Parts: reasoned(partsOf(first(m["content"], m["summary"])))}
	}
	if out.Role == "tool" {
		out.Parts = []Part{{Type: "tool_call_response", ID: str(m["tool_call_id"]), Response: m["content"]}}
		return out
	}
	if thinking := first(m["reasoning_content"], m["reasoning"]); str(thinking) != "" {
		out.Parts = append(out.Parts, Part{Type: "reasoning", Content: str(thinking)})
	}
	out.Parts = append(out.Parts, partsOf(m["content"])...)
	calls, _ := m["tool_calls"].([]any)
	for _, it := range calls {
		c, _ := it.(object)
		f, _ := c["function"].(object)
		out.Parts = append(out.Parts, call(str(c["id"]), str(f["name"]), f["arguments"]))
	}
	return out
}

func reasoned(parts []Part) []Part {
	for i := range parts {
		parts[i].Type = "reasoning"
	}
	return parts
}

// call is a tool call; arguments that are JSON in a string are shown as JSON.
func call(id, name string, arguments any) Part {
	if s, ok := arguments.(string); ok {
		if o, ok := parse([]byte(s)); ok {
			arguments = o
		}
	}
	return Part{Type: "tool_call", ID: id, Name: name, Arguments: arguments}
}

// partsOf reads the content of a message: a text, or blocks.
func partsOf(v any) (out []Part) {
	switch v := v.(type) {
	case string:
		if v != "" {
			out = append(out, Part{Type: "text", Content: v})
		}
	case []any:
		for _, it := range v {
			if s, ok := it.(string); ok {
				out = append(out, Part{Type: "text", Content: s})
			} else if o, ok := it.(object); ok {
				out = append(out, partOf(o))
			}
		}
	}
	return out
}

// texts are the blocks that have a text.
var texts = []string{"text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal"}

func partOf(o object) Part {
	kind := str(o["type"])
	switch {
	case slices.Contains(texts, kind):
		return Part{Type: "text", Content: str(first(o["text"], o["refusal"]))}
	case kind == "thinking":
		return Part{Type: "reasoning", Content: str(o["thinking"])}
	case kind == "tool_use":
		return call(str(o["id"]), str(o["name"]), o["input"])
	case kind == "tool_result":
		return Part{Type: "tool_call_response", ID: str(o["tool_use_id"]), Response: o["content"]}
	case strings.Contains(kind, "image"):
		at := str(o["image_url"])
		for _, inner := range []any{o["image_url"], o["source"]} {
			if in, ok := inner.(object); ok {
				at = str(in["url"])
			}
		}
		if strings.HasPrefix(at, "http") {
			return Part{Type: "uri", Modality: "image", URI: at}
		}
		mime := str(o["media_type"])
		if source, ok := o["source"].(object); ok {
			mime = str(source["media_type"])
		} else if rest, ok := strings.CutPrefix(at, "data:"); ok {
			mime = rest[:max(strings.IndexAny(rest, ";,"), 0)]
		}
		return Part{Type: "blob", Modality: "image", MimeType: mime}
	case kind == "input_audio":
		return Part{Type: "blob", Modality: "audio"}
	}
	return Part{Type: kind}
}

package anthropic

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// formatMode is how the answer is made JSON.
type formatMode uint8

const (
	formatNone     formatMode = iota
	formatNative              // output_config.format
	formatTool                // by the hidden tool
	formatInstruct            // by a sentence in the system prompt
)

// The hidden tool, and what the model is told about answers in JSON.
const (
	answerTool            = chat.AnswerTool
	answerToolDescription = chat.AnswerToolDescription
	jsonInstruction       = chat.JSONInstruction
)

func (e *toolEncoder) planFormat() error {
	for i := range e.r.Tools {
		if e.r.Tools[i].Name == answerTool {
			return fault.Invalid("tools", "The tool name %s is reserved", answerTool)
		}
	}
	e.r.HiddenAnswer, e.r.UnboundJSON = false, false
	switch e.r.Format.Kind {
	case chat.FormatJSON:
		e.format = formatInstruct
		e.r.UnboundJSON = true
		e.loss.Add("response_format", upstream.InWords)
	case chat.FormatSchema:
		switch {
		case e.t.Schema == chat.SchemaNative:
			e.format = formatNative
		case e.t.Schema == chat.SchemaNone || e.t.NoTools:
			return unsupportedFormat("This model cannot answer in a JSON schema")
		case e.think.on():
			return unsupportedFormat("This model cannot answer in a JSON schema while it thinks")
		default:
			e.format = formatTool
			e.r.HiddenAnswer, e.r.UnboundJSON = true, true
		}
	}
	return nil
}

func unsupportedFormat(message string) error {
	return fault.New(fault.UnsupportedResponse, "response_format", message)
}

// writeOutputConfig writes effort and native format.
func (e *toolEncoder) writeOutputConfig() {
	if e.think.effort == "" && e.format != formatNative {
		return
	}
	e.b = append(e.b, `,"output_config":{`...)
	n := len(e.b)
	if e.think.effort != "" {
		e.b = append(e.b, `"effort":`...)
		e.b = wire.AppendJSONString(e.b, e.think.effort)
	}
	if e.format == formatNative {
		if len(e.b) > n {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, `"format":{"type":"json_schema","schema":`...)
		e.b = append(e.b, e.r.Format.Schema...)
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, '}')
}

// tools writes tools and tool_choice.
func (e *toolEncoder) tools() error {
	r := e.r
	n := 0
	if e.format == formatTool {
		e.b = append(e.b, `,"tools":[`...)
		n++
		e.answerTool()
	}
	own := 0
	for i := range r.Tools {
		t := &r.Tools[i]
		at := place{list: "tools", i: i}
		if r.Legacy {
			at.list = "functions"
		}
		if e.t.NoTools {
			e.loss.Add(at.String(), notTaken)
			continue
		}
		before := len(e.b)
		if n == 0 {
			e.b = append(e.b, `,"tools":[`...)
		} else {
			e.b = append(e.b, ',')
		}
		if !e.tool(t, at) {
			e.b = e.b[:before]
			continue
		}
		n++
		own++
	}
	if n == 0 {
		if r.ToolChoice.Forced() {
			return fault.Invalid("tool_choice", "tool_choice forces a tool, but this provider can be given none")
		}
		return nil
	}
	e.b = append(e.b, ']')
	e.toolChoice(own)
	return nil
}

// answerTool writes the hidden tool.
func (e *toolEncoder) answerTool() {
	f := &e.r.Format
	description := answerToolDescription
	if f.Description != "" {
		description += " " + f.Description
	}
	e.b = append(e.b, `{"name":"`+answerTool+`","description":`...)
	e.b = wire.AppendJSONString(e.b, description)
	e.b = append(e.b, `,"input_schema":`...)
	e.schema(f.Schema)
	e.b = append(e.b, '}')
}

// tool writes one tool; false when it cannot be carried.
func (e *toolEncoder) tool(t *chat.Tool, at place) bool {
	if t.Foreign != "" {
		return e.foreignTool(t, at)
	}
	e.b = append(e.b, `{"name":`...)
	e.b = wire.AppendJSONString(e.b, chat.LegalName(t.Name, e.max))
	if t.Description.Set {
		e.str("description", t.Description.Value)
	}
	e.key("input_schema")
	e.schema(t.Schema)
	if t.Strict.Set {
		switch {
		case e.t.NoStrictTools:
			e.loss.Add(at.String()+".strict", notTaken)
		case t.Strict.Value: // false is the default
			e.b = append(e.b, `,"strict":true`...)
		}
	}
	for _, x := range t.Extra {
		switch x.Name {
		case "defer_loading", "allowed_callers", "input_examples", "eager_input_streaming":
			e.key(x.Name)
			e.b = append(e.b, x.Raw...)
		default:
			e.loss.Add(at.String()+"."+x.Name, notTaken)
		}
	}
	e.marker(t.Cache, at)
	e.b = append(e.b, '}')
	return true
}

var typeKey = wire.NewKeySet("type")

// schema writes the schema of arguments as it came; the provider only wants a
// type at its root.
func (e *toolEncoder) schema(raw []byte) {
	if raw == nil {
		e.b = append(e.b, `{"type":"object","properties":{}}`...)
		return
	}
	var w wire.Walk
	if typeKey.Walk(raw, &w) != nil || !w.Spans[0].Absent() {
		e.b = append(e.b, raw...)
		return
	}
	e.b = wire.Splice(e.b, raw, wire.InsertKey(&w, "type", []byte(`"object"`)))
}

// foreignTool writes a tool of the provider's own. The OpenAI dialect holds it
// as {type:T, T:{name:V,...}}: V is the type here and T the name. A custom tool of
// that dialect looks the same, but there V is its own name.
func (e *toolEncoder) foreignTool(t *chat.Tool, at place) bool {
	if e.r.Dialect == name {
		e.b = append(e.b, t.Raw...)
		return true
	}
	if t.Foreign == "custom" {
		e.loss.Add(at.String(), notTaken)
		return false
	}
	d := wire.NewDecoder(t.Raw)
	var inner []byte
	for key := range d.Object {
		if string(key) == t.Foreign && d.Kind() == wire.KindObject {
			inner = d.Raw()
		}
	}
	version := ""
	in := wire.NewDecoder(inner)
	start := len(e.b)
	e.b = append(e.b, '{')
	if inner != nil {
		for key := range in.Object {
			if string(key) == "name" {
				version = upstream.OptString(in)
				continue
			}
			e.b = wire.AppendJSONString(e.b, key)
			e.b = append(append(append(e.b, ':'), in.Raw()...), ',')
		}
	}
	if version == "" || in.Err() != nil {
		e.b = e.b[:start]
		e.loss.Add(at.String(), notTaken)
		return false
	}
	e.b = append(e.b, `"name":`...)
	e.b = wire.AppendJSONString(e.b, t.Foreign)
	e.str("type", version)
	e.marker(t.Cache, at)
	e.b = append(e.b, '}')
	return true
}

// toolChoice writes which tools may be called. own counts the client's tools.
func (e *toolEncoder) toolChoice(own int) {
	choice := e.r.ToolChoice
	if e.think.on() && choice.Forced() {
		choice = chat.ToolChoice{Mode: chat.ToolsAuto}
	}
	if e.format == formatTool {
		switch {
		case own == 0 || choice.Mode == chat.ToolsNone:
			choice = chat.ToolChoice{Mode: chat.ToolsNamed, Name: answerTool}
		case choice.Mode != chat.ToolsNamed:
			choice = chat.ToolChoice{Mode: chat.ToolsRequired}
		}
	}
	single := e.r.Parallel.Set && !e.r.Parallel.Value
	switch choice.Mode {
	case chat.ToolsUnsaid:
		if !single {
			return
		}
		e.b = append(e.b, `,"tool_choice":{"type":"auto"`...)
	case chat.ToolsAuto:
		e.b = append(e.b, `,"tool_choice":{"type":"auto"`...)
	case chat.ToolsNone:
		e.b = append(e.b, `,"tool_choice":{"type":"none"}`...)
		return
	case chat.ToolsRequired:
		e.b = append(e.b, `,"tool_choice":{"type":"any"`...)
	case chat.ToolsNamed:
		e.b = append(e.b, `,"tool_choice":{"type":"tool","name":`...)
		e.b = wire.AppendJSONString(e.b, chat.LegalName(choice.Name, e.max))
	}
	if single {
		e.b = append(e.b, `,"disable_parallel_tool_use":true`...)
	}
	e.b = append(e.b, '}')
}

// jsonObject reports whether raw is one JSON object.
func jsonObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return false
	}
	d := wire.NewDecoder(raw)
	d.Skip()
	return d.End() == nil
}

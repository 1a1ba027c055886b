package anthropic

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// writeOutputConfig writes effort and native format.
func writeOutputConfig(e *requestEncoder) {
	if e.think.Effort == "" && e.format != claude.Native {
		return
	}
	e.b = append(e.b, `,"output_config":{`...)
	n := len(e.b)
	if e.think.Effort != "" {
		e.b = append(e.b, `"effort":`...)
		e.b = wire.AppendJSONString(e.b, e.think.Effort)
	}
	if e.format == claude.Native {
		if len(e.b) > n {
			e.b = append(e.b, ',')
		}
		e.b = append(e.b, `"format":{"type":"json_schema","schema":`...)
		if e.r.Dialect == name {
			e.b = append(e.b, e.r.Format.Schema...)
		} else {
			e.b = claude.AppendSchema(e.b, e.r.Format.Schema, "response_format.json_schema.schema", e.loss)
		}
		e.b = append(e.b, '}')
	}
	e.b = append(e.b, '}')
}

// tools writes tools and tool_choice.
func tools(e *requestEncoder) error {
	r := e.r
	n := 0
	if e.format == claude.ByTool {
		e.b = append(e.b, `,"tools":[`...)
		n++
		writeHiddenTool(e)
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
		if !encodeTool(e, t, at) {
			e.b = e.b[:before]
			continue
		}
		n++
		own++
	}
	if n == 0 {
		if r.ToolChoice.Forced() {
			return fault.Invalid("tool_choice", "tool_choice forces a tool, but this provider accepts no tools")
		}
		return nil
	}
	e.b = append(e.b, ']')
	toolChoice(e, own)
	return nil
}

// writeHiddenTool writes the hidden tool.
func writeHiddenTool(e *requestEncoder) {
	f := &e.r.Format
	description := chat.ResponseToolDescription
	if f.Description != "" {
		description += " " + f.Description
	}
	e.b = append(e.b, `{"name":"`+chat.ResponseTool+`","description":`...)
	e.b = wire.AppendJSONString(e.b, description)
	e.b = append(e.b, `,"input_schema":`...)
	encodeSchema(e, f.Schema)
	e.b = append(e.b, '}')
}

// encodeTool writes one tool; false when it cannot be carried.
func encodeTool(e *requestEncoder, t *chat.Tool, at place) bool {
	if t.ForeignType != "" {
		return foreignTool(e, t, at)
	}
	e.b = append(e.b, `{"name":`...)
	e.b = wire.AppendJSONString(e.b, chat.LegalName(t.Name, e.max))
	if t.Description.Set {
		str(e, "description", t.Description.Value)
	}
	encodeKey(e, "input_schema")
	schema := t.Schema
	if t.Strict.Value && !e.t.NoStrictTools && schema != nil && e.r.Dialect != name {
		schema = claude.AppendSchema(nil, schema, at.String()+".parameters", e.loss)
	}
	encodeSchema(e, schema)
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
			encodeKey(e, x.Name)
			e.b = append(e.b, x.Raw...)
		default:
			e.loss.Add(at.String()+"."+x.Name, notTaken)
		}
	}
	marker(e, t.Cache, at)
	e.b = append(e.b, '}')
	return true
}

var typeKey = wire.NewKeySet("type")

// encodeSchema writes the schema of arguments unchanged; the provider only wants a type
// at its root.
func encodeSchema(e *requestEncoder, raw []byte) {
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

// foreignTool writes a tool of the provider's own. The OpenAI dialect holds it as {type:T,
// T:{name:V,...}}: here V is the type and T the name. A custom tool of that dialect looks
// the same, but its V is its own name.
func foreignTool(e *requestEncoder, t *chat.Tool, at place) bool {
	if e.r.Dialect == name {
		e.b = append(e.b, t.Raw...)
		return true
	}
	if t.ForeignType == "custom" {
		e.loss.Add(at.String(), notTaken)
		return false
	}
	d := wire.NewDecoder(t.Raw)
	var inner []byte
	for key := range d.Object {
		if string(key) == t.ForeignType && d.Kind() == wire.KindObject {
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
	e.b = wire.AppendJSONString(e.b, t.ForeignType)
	str(e, "type", version)
	marker(e, t.Cache, at)
	e.b = append(e.b, '}')
	return true
}

// toolChoice writes which tools may be called. own counts the client's tools.
func toolChoice(e *requestEncoder, own int) {
	choice := claude.Choice(e.r, e.format, e.think.On(), own)
	single := e.r.Parallel.Set && !e.r.Parallel.Value
	switch choice.Mode {
	case chat.ToolsUnset:
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

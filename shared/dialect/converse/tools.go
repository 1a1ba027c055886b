package converse

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/claude"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

func planFormat(e *requestEncoder) (err error) {
	e.format, err = claude.PlanJSON(e.r, e.t, e.t.Schema == chat.SchemaByTool, e.think.On(), e.loss)
	return err
}

// outputConfig writes the schema of the response. The wire takes it as text.
func outputConfig(e *requestEncoder) {
	if e.format != claude.Native {
		return
	}
	f := &e.r.Format
	e.Key("outputConfig")
	e.B = append(e.B, `{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":`...)
	schema := []byte(f.Schema)
	if e.t.Family == familyAnthropic {
		schema = claude.AppendSchema(nil, schema, "response_format.json_schema.schema", e.loss)
	}
	e.B = wire.AppendJSONString(e.B, schema)
	if f.Name != "" {
		e.Str("name", chat.LegalName(f.Name, maxToolName))
	}
	e.StrIf("description", f.Description)
	e.B = append(e.B, "}}}}"...)
}

func toolPath(e *requestEncoder, i int) string {
	if e.r.Legacy {
		return "functions[" + strconv.Itoa(i) + "]"
	}
	return "tools[" + strconv.Itoa(i) + "]"
}

// planTools decides whether tools are offered at all. Without tools the wire rejects
// calls and results in the history, so these are then given as text.
func planTools(e *requestEncoder) error {
	offered := e.format == claude.ByTool
	if e.r.ToolChoice.Mode == chat.ToolsNone {
		if len(e.r.Tools) > 0 {
			e.loss.Add("tools", "omitted, as tool_choice is none")
		}
		e.flat = !offered
		return nil
	}
	for i := range e.r.Tools {
		offered = offered || e.r.Tools[i].ForeignType == "" && !e.t.NoTools
	}
	if !offered && e.r.ToolChoice.Forced() {
		return fault.Invalid("tool_choice", "tool_choice forces a tool, but this provider accepts no tools")
	}
	e.flat = !offered
	if !offered && len(e.r.Tools) > 0 {
		if e.r.ToolChoice.Mode == chat.ToolsAuto {
			e.loss.Add("tool_choice", "no tool of the client is offered")
		}
		if e.r.Parallel.Set && !e.r.Parallel.Value {
			e.loss.Add("parallel_tool_calls", "no tool of the client is offered")
		}
	}
	return nil
}

// tools writes toolConfig.
func tools(e *requestEncoder) error {
	own, start := 0, len(e.B)
	e.Key("toolConfig")
	e.B = append(e.B, `{"tools":[`...)
	list := len(e.B)
	if e.format == claude.ByTool {
		f := &e.r.Format
		description := chat.ResponseToolDescription
		if f.Description != "" {
			description += " " + f.Description
		}
		toolSpec(e, chat.ResponseTool, description, f.Schema, false)
	}
	for i := range e.r.Tools {
		t := &e.r.Tools[i]
		if e.r.ToolChoice.Mode == chat.ToolsNone || t.ForeignType != "" {
			continue // reported, or written among the additional fields
		}
		if e.t.NoTools {
			e.loss.Add(toolPath(e, i), "not accepted by this model")
			continue
		}
		encodeTool(e, t, i)
		own++
	}
	if len(e.B) == list {
		e.B = e.B[:start]
		return nil
	}
	e.Close(']')
	toolChoice(e, own)
	e.Close('}')
	return nil
}

func encodeTool(e *requestEncoder, t *chat.Tool, i int) {
	strict := t.Strict.Set && t.Strict.Value
	if strict && e.t.NoStrictTools {
		strict = false
		e.loss.Add(toolPath(e, i)+".strict", "not accepted by this model")
	}
	schema := []byte(t.Schema)
	if strict && schema != nil && e.t.Family == familyAnthropic {
		schema = claude.AppendSchema(nil, schema, toolPath(e, i)+".parameters", e.loss)
	}
	toolSpec(e, chat.LegalName(t.Name, maxToolName), t.Description.Value, schema, strict)
	for _, x := range t.Extra {
		e.loss.Add(toolPath(e, i)+"."+x.Name, notTaken)
	}
	path := func() string { return toolPath(e, i) }
	if t.Cache != chat.NoCache && e.t.Family == familyAmazon && !e.t.NoCacheControl {
		e.loss.Add(path()+".cache_control", "not accepted on tools by this model")
		return
	}
	cachePoint(e, t.Cache, path)
}

var typeKey = wire.NewKeySet("type")

// toolSpec writes one tool. The schema goes out unchanged; the provider only wants a type
// at its root.
func toolSpec(e *requestEncoder, name, description string, schema []byte, strict bool) {
	e.Open('{')
	e.Key("toolSpec")
	e.Open('{')
	e.Str("name", name)
	e.StrIf("description", description)
	e.Key("inputSchema")
	e.B = append(e.B, `{"json":`...)
	var w wire.Walk
	switch {
	case schema == nil:
		e.B = append(e.B, `{"type":"object","properties":{}}`...)
	case typeKey.Walk(schema, &w) != nil || !w.Spans[0].Absent():
		e.B = append(e.B, schema...)
	default:
		e.B = wire.Splice(e.B, schema, wire.InsertKey(&w, "type", []byte(`"object"`)))
	}
	e.Close('}')
	if strict {
		e.Bool("strict", true)
	}
	e.B = append(e.B, "}}"...)
}

// choice is the tool choice to write, given what else the request wants. own counts the
// client's tools.
func choice(e *requestEncoder, own int) chat.ToolChoice {
	return claude.Choice(e.r, e.format, e.think.On() && e.t.Family == familyAnthropic, own)
}

// toolChoice writes which tools may be called. The wire has no field that limits the model
// to one call at a time: see single.
func toolChoice(e *requestEncoder, own int) {
	if single(e) {
		return // it is among the additional fields
	}
	c := choice(e, own)
	switch c.Mode {
	case chat.ToolsAuto:
		e.Raw("toolChoice", []byte(`{"auto":{}}`))
	case chat.ToolsRequired:
		e.Raw("toolChoice", []byte(`{"any":{}}`))
	case chat.ToolsNamed:
		e.Key("toolChoice")
		e.B = append(e.B, `{"tool":{"name":`...)
		e.B = wire.AppendJSONString(e.B, chat.LegalName(c.Name, maxToolName))
		e.B = append(e.B, "}}"...)
	}
}

// single reports whether the model must make only one call at a time. Only Claude
// supports that, in its own tool choice.
func single(e *requestEncoder) bool {
	return e.r.Parallel.Set && !e.r.Parallel.Value && !e.flat && e.t.Family == familyAnthropic
}

// claudeChoice writes the tool choice in Claude's own shape, with the one field that the
// wire lacks.
func claudeChoice(e *requestEncoder) {
	own := 0
	for i := range e.r.Tools {
		if e.r.Tools[i].ForeignType == "" {
			own++
		}
	}
	c := choice(e, own)
	e.Key("tool_choice")
	e.Open('{')
	switch c.Mode {
	case chat.ToolsRequired:
		e.Str("type", "any")
	case chat.ToolsNamed:
		e.Str("type", "tool")
		e.Str("name", chat.LegalName(c.Name, maxToolName))
	default:
		e.Str("type", "auto")
	}
	e.Bool("disable_parallel_tool_use", true)
	e.Close('}')
}

// foreignTools writes Claude's own tools (computer, bash, text editor) in its own
// shape.
func foreignTools(e *requestEncoder) {
	open := false
	for i := range e.r.Tools {
		t := &e.r.Tools[i]
		if t.ForeignType == "" || e.r.ToolChoice.Mode == chat.ToolsNone {
			continue
		}
		raw := claudeTool(t, e.r.Dialect)
		if raw == nil || !claudes(e) {
			e.loss.Add(toolPath(e, i), notTaken)
			continue
		}
		if !open {
			e.Key("tools")
			e.Open('[')
			open = true
		}
		e.Open('{')
		e.B = append(e.B[:len(e.B)-1], raw...)
	}
	if open {
		e.Close(']')
	}
}

// claudeTool is one of Claude's own tools in its own shape; nil for any other tool. The
// OpenAI dialect holds it as {type:T, T:{name:V,...}}: there V is the type and T the name.
func claudeTool(t *chat.Tool, client string) []byte {
	if client == messages {
		return t.Raw
	}
	d := wire.NewDecoder(t.Raw)
	var inner []byte
	for key := range d.Object {
		if string(key) == t.ForeignType && d.Kind() == wire.KindObject {
			inner = d.Raw()
		}
	}
	if inner == nil || d.Err() != nil {
		return nil
	}
	o := upstream.Begin(nil)
	version := ""
	in := wire.NewDecoder(inner)
	for key := range in.Object {
		if string(key) == "name" {
			version = upstream.OptString(in)
			continue
		}
		o.Text(string(key))
		o.B = append(append(o.B, ':'), in.Raw()...)
	}
	if version == "" || in.Err() != nil {
		return nil
	}
	o.Str("name", t.ForeignType)
	o.Str("type", version)
	o.Close('}')
	return o.B
}

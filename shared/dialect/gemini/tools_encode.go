package gemini

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// builtins are tools of the provider's own by the names under which clients give
// them, as a function or as a tool's type.
var builtins = map[string]string{
	"googleSearch": "googleSearch", "google_search": "googleSearch",
	"googleSearchRetrieval": "googleSearchRetrieval", "google_search_retrieval": "googleSearchRetrieval",
	"computerUse": "computerUse", "computer_use": "computerUse",
	"googleMaps": "googleMaps", "google_maps": "googleMaps",
	"codeExecution": "codeExecution", "code_execution": "codeExecution",
	"urlContext": "urlContext", "url_context": "urlContext",
	"enterpriseWebSearch": "enterpriseWebSearch", "enterprise_web_search": "enterpriseWebSearch",
	"fileSearch": "fileSearch", "file_search": "fileSearch",
}

// toolPlan lists which of the client's tools are sent.
type toolPlan struct {
	functions int
	builtin   int
	skip      []bool // tools that cannot be carried
}

func toolPath(e *requestEncoder, i int) string {
	if e.r.Legacy {
		return indexed("functions", i)
	}
	return indexed("tools", i)
}

// planTools finds out what can be carried, since other fields depend on it.
func planTools(e *requestEncoder) error {
	r := e.r
	e.tools.skip = make([]bool, len(r.Tools))
	for i := range r.Tools {
		t := &r.Tools[i]
		_, own := builtins[t.Name]
		switch {
		case e.t.NoTools, t.ForeignType != "" && !own:
			e.loss.Add(toolPath(e, i), notTaken)
			e.tools.skip[i] = true
		case own:
			e.tools.builtin++
		default:
			e.tools.functions++
		}
	}
	if e.tools.functions == 0 && r.ToolChoice.Forced() {
		return fault.Invalid("tool_choice", "tool_choice forces a tool, but this provider accepts no tools")
	}
	return nil
}

// writeTools writes tools and toolConfig.
func writeTools(e *requestEncoder) error {
	if e.tools.functions+e.tools.builtin == 0 {
		return nil
	}
	encodeKey(e, "tools")
	e.b = append(e.b, '[')
	if e.tools.functions > 0 {
		e.b = append(e.b, `{"functionDeclarations":[`...)
		for i := range e.r.Tools {
			t := &e.r.Tools[i]
			if _, own := builtins[t.Name]; own || e.tools.skip[i] {
				continue
			}
			if err := function(e, t, i); err != nil {
				return err
			}
		}
		e.b = append(e.b, `]}`...)
	}
	for i := range e.r.Tools {
		t := &e.r.Tools[i]
		if own, ok := builtins[t.Name]; ok && !e.tools.skip[i] {
			builtin(e, t, own)
		}
	}
	e.b = append(e.b, ']')
	toolConfig(e)
	if p := e.r.Parallel; p.Set && !p.Value && e.r.ToolChoice.Mode != chat.ToolsNone {
		e.loss.Add("parallel_tool_calls", notTaken)
	}
	return nil
}

// function writes one functionDeclaration.
func function(e *requestEncoder, t *chat.Tool, i int) error {
	at := toolPath(e, i)
	if !e.r.Legacy {
		at += ".function"
	}
	item(e)
	e.b = append(e.b, '{')
	str(e, "name", chat.LegalName(t.Name, maxToolName))
	if t.Description.Set {
		str(e, "description", t.Description.Value)
	}
	switch {
	case t.Schema == nil:
	case e.t.Schema == chat.SchemaSubset:
		encodeKey(e, "parameters")
		start := len(e.b)
		var err error
		if e.b, err = subset(e, t.Schema, at+".parameters"); err != nil {
			return err
		}
		if string(e.b[start:]) == `{"type":"object","properties":{}}` || string(e.b[start:]) == `{"type":"object"}` {
			e.b = e.b[:start-len(`,"parameters":`)] // an object must have properties
		}
	default:
		encodeKey(e, "parametersJsonSchema")
		jsonSchema(e, t.Schema)
	}
	report(e, at+".strict", t.Strict.Set && t.Strict.Value)
	for _, x := range t.Extra {
		e.loss.Add(at+"."+x.Name, notTaken)
	}
	if t.Cache != chat.NoCache {
		e.loss.Add(toolPath(e, i)+".cache_control", "this provider caches automatically")
	}
	e.b = append(e.b, '}')
	return nil
}

var typeKey = wire.NewKeySet("type")

// jsonSchema writes a schema of arguments unchanged, but adds a type at its root if there
// is none.
func jsonSchema(e *requestEncoder, raw []byte) {
	var w wire.Walk
	if typeKey.Walk(raw, &w) != nil || !w.Spans[0].Absent() {
		e.b = append(e.b, raw...)
		return
	}
	e.b = wire.Splice(e.b, raw, wire.InsertKey(&w, "type", []byte(`"object"`)))
}

// builtin writes a tool of the provider's own with the settings that the client
// gave: the parameters of a function, or the field named like the tool's type.
func builtin(e *requestEncoder, t *chat.Tool, own string) {
	settings := []byte(t.Schema)
	if t.ForeignType != "" {
		d := wire.NewDecoder(t.Raw)
		for key := range d.Object {
			if string(key) == t.ForeignType && d.Kind() == wire.KindObject {
				settings = d.Raw()
			}
		}
	}
	item(e)
	e.b = append(e.b, '{')
	encodeKey(e, own)
	e.b = append(e.b, '{')
	d := wire.NewDecoder(settings)
	if wire.KindOf(bytes.TrimSpace(settings)) == wire.KindObject {
		for key := range d.Object {
			switch word := camel(string(key)); word {
			case "type", "properties", "required", "additionalProperties", "$schema", "description":
				// of a schema in the place of settings
			case "retrievalConfig":
				e.extra.retrieval = d.Raw()
			default:
				item(e)
				e.b = wire.AppendJSONString(e.b, word)
				e.b = append(append(e.b, ':'), d.Raw()...)
			}
		}
	}
	e.b = append(e.b, `}}`...)
}

// toolConfig writes which functions may be called.
func toolConfig(e *requestEncoder) {
	mode := ""
	switch e.r.ToolChoice.Mode {
	case chat.ToolsAuto:
		if mode = "AUTO"; e.r.ToolChoice.HostMode == validated {
			mode = "VALIDATED"
		}
	case chat.ToolsNone:
		mode = "NONE"
	case chat.ToolsRequired, chat.ToolsNamed:
		mode = "ANY"
	}
	if e.tools.functions == 0 {
		report(e, "tool_choice", mode != "")
		mode = ""
	}
	if mode == "" && e.extra.retrieval == nil {
		return
	}
	encodeKey(e, "toolConfig")
	e.b = append(e.b, '{')
	if mode != "" {
		e.b = append(e.b, `"functionCallingConfig":{"mode":"`...)
		e.b = append(append(e.b, mode...), '"')
		if e.r.ToolChoice.Mode == chat.ToolsNamed {
			e.b = append(e.b, `,"allowedFunctionNames":[`...)
			e.b = wire.AppendJSONString(e.b, chat.LegalName(e.r.ToolChoice.Name, maxToolName))
			e.b = append(e.b, ']')
		}
		e.b = append(e.b, '}')
	}
	if e.extra.retrieval != nil {
		encodeRaw(e, "retrievalConfig", e.extra.retrieval)
	}
	e.b = append(e.b, '}')
}

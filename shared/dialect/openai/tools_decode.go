package openai

import (
	"bytes"
	"slices"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/wire"
)

// tool reads one element of tools.
func (q *requestDecoder) tool() chat.Tool {
	d := q.d
	var t chat.Tool
	whole := *d
	seenFunction := false
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			if kind := d.Str(); kind != "function" {
				t.Foreign = kind
			}
		case "function", "custom":
			seenFunction = true
			q.function(&t)
		case "cache_control":
			t.Cache = jsonfield.CacheMarker(d)
		default:
			jsonfield.Keep(d, string(key), &t.Extra)
		}
	}
	if t.Foreign == "custom" && seenFunction && t.Name != "" {
		t.Foreign, t.Custom, t.Schema = "", true, []byte(chat.TextTool)
		return t
	}
	if t.Foreign != "" {
		return chat.Tool{Name: t.Foreign, Foreign: t.Foreign, Raw: bytes.Clone(whole.Raw()), Cache: t.Cache}
	}
	if !seenFunction {
		jsonfield.Missing(d, &whole, "function")
	}
	return t
}

// function reads the description of a function into t.
func (q *requestDecoder) function(t *chat.Tool) {
	d := q.d
	whole := *d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		jsonfield.OfFunction(d, key, "parameters", t)
	}
	if t.Name == "" {
		jsonfield.Missing(d, &whole, "name")
	}
}

// toolChoice reads tool_choice and function_call, with the name at place.
func (q *requestDecoder) toolChoice(place string) chat.ToolChoice {
	d := q.d
	if d.Kind() == wire.KindString {
		switch word := d.Str(); word {
		case "none":
			return chat.ToolChoice{Mode: chat.ToolsNone}
		case "required", "any": // some hosts call it so
			return chat.ToolChoice{Mode: chat.ToolsRequired}
		case "auto":
			return chat.ToolChoice{Mode: chat.ToolsAuto}
		default:
			return chat.ToolChoice{Mode: chat.ToolsAuto, Word: word}
		}
	}
	whole := *d
	name := ""
	allowed := chat.ToolsUnsaid
	for key := range d.Object {
		switch string(key) {
		case "name":
			name = d.Str()
		case "function", "custom":
			for inner := range d.Object {
				if string(inner) == "name" {
					name = d.Str()
				}
			}
		case "allowed_tools":
			allowed = q.allowedTools()
		}
	}
	if allowed != chat.ToolsUnsaid {
		return chat.ToolChoice{Mode: allowed}
	}
	if name == "" {
		jsonfield.Missing(d, &whole, place)
	}
	return chat.ToolChoice{Mode: chat.ToolsNamed, Name: name}
}

// allowedTools reads {mode, tools}: the offered tools that may be called. No other provider
// knows such a list, so the other tools are not offered.
func (q *requestDecoder) allowedTools() chat.ToolChoiceMode {
	d := q.d
	mode := chat.ToolsAuto
	q.allowed = make(map[string]bool)
	for key := range d.Object {
		switch string(key) {
		case "mode":
			switch d.Str() {
			case "auto":
			case "required":
				mode = chat.ToolsRequired
			default:
				q.r.Guess("tool_choice.allowed_tools.mode", "auto")
			}
		case "tools":
			for range d.Array {
				t := q.tool()
				q.allowed[t.Foreign+"/"+t.Name] = true
			}
		}
	}
	return mode
}

// offer omits the tools that may not be called.
func (q *requestDecoder) offer() {
	if q.allowed == nil {
		return
	}
	q.r.Tools = slices.DeleteFunc(q.r.Tools, func(t chat.Tool) bool { return !q.allowed[t.Foreign+"/"+t.Name] })
}

// functionCallID makes the id of a legacy function call from its place, so that
// it is the same on each turn.
func functionCallID(message int) string { return "call_function_" + strconv.Itoa(message) }

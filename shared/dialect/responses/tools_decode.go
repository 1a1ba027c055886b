package responses

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/wire"
)

// textTool is the schema under which a tool of free text is offered to providers whose
// tools take JSON.
const textTool = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// tool reads one element of tools.
func (q *requestDecoder) tool() {
	d := q.d
	var t chat.Tool
	kind := ""
	start := *d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
		case "name":
			t.Name = d.Str()
		case "description":
			t.Description = chat.Some(d.Str())
		case "parameters":
			if d.Kind() != wire.KindObject {
				d.Fail("must be an object")
			}
			t.Schema = clone(d.Raw())
		case "strict":
			t.Strict = chat.Some(d.Bool())
		case "cache_control":
			t.Cache = openai.ReadCacheMarker(d)
		default:
			t.Extra = append(t.Extra, chat.Field{Name: string(key), Raw: clone(d.Raw())})
		}
	}
	if d.Err() != nil {
		return
	}
	switch kind {
	case "":
		openai.Missing(d, &start, "type")
		return
	case "function":
	case "custom":
		t.Custom, t.Schema = true, clone([]byte(textTool))
		t.Extra = dropPlainFormat(t.Extra)
	default:
		q.r.Tools = append(q.r.Tools, chat.Tool{Name: kind, Foreign: kind, Raw: clone(start.Raw()), Cache: t.Cache})
		return
	}
	if t.Name == "" {
		openai.Missing(d, &start, "name")
		return
	}
	q.r.Tools = append(q.r.Tools, t)
}

// dropPlainFormat removes a format that asks for any text, which makes no difference.
func dropPlainFormat(extra []chat.Field) []chat.Field {
	kept := extra[:0]
	for _, x := range extra {
		plain := false
		if x.Name == "format" {
			d := wire.NewDecoder(x.Raw)
			members := 0
			if d.Kind() == wire.KindObject {
				for key := range d.Object {
					members++
					plain = string(key) == "type" && d.Kind() == wire.KindString && d.Str() == "text"
				}
			}
			plain = plain && members == 1
		}
		if !plain {
			kept = append(kept, x)
		}
	}
	return kept
}

// toolChoice reads a mode, {type:"function"|"custom",name}, {type:
// "allowed_tools",mode,tools}, or a hosted tool, which no other provider has.
func (q *requestDecoder) toolChoice() {
	d, r := q.d, q.r
	if d.Kind() == wire.KindString {
		word := d.Str()
		if r.ToolChoice.Mode = choiceMode(word); r.ToolChoice.Mode == chat.ToolsUnsaid {
			r.ToolChoice.Mode, r.ToolChoice.Word = chat.ToolsAuto, word
		}
		return
	}
	start := *d
	kind, mode, name := "", "", ""
	for key := range d.Object {
		if d.Kind() != wire.KindString {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
		case "mode":
			mode = d.Str()
		case "name":
			name = d.Str()
		}
	}
	if d.Err() != nil {
		return
	}
	switch kind {
	case "function", "custom":
		if name == "" {
			openai.Missing(d, &start, "name")
		}
		r.ToolChoice = chat.ToolChoice{Mode: chat.ToolsNamed, Name: name}
	case "allowed_tools":
		r.ToolChoice.Mode = choiceMode(mode)
		r.Extra = append(r.Extra, chat.Field{Name: "tool_choice.tools", Raw: clone(start.Raw())})
	case "":
		openai.Missing(d, &start, "type")
	default:
		r.Extra = append(r.Extra, chat.Field{Name: "tool_choice", Raw: clone(start.Raw())})
	}
}

func choiceMode(s string) chat.ToolChoiceMode {
	switch s {
	case "none":
		return chat.ToolsNone
	case "auto":
		return chat.ToolsAuto
	case "required":
		return chat.ToolsRequired
	}
	return chat.ToolsUnsaid
}

// custom reports whether the client's tool of this name takes free text.
func custom(r *chat.Request, tool string) bool {
	if r == nil {
		return false
	}
	for i := range r.Tools {
		if r.Tools[i].Custom && r.Tools[i].Name == tool {
			return true
		}
	}
	return false
}

// wrapText makes the arguments of a tool of free text.
func wrapText(text string) string {
	return string(append(wire.AppendJSONString([]byte(`{"input":`), text), '}'))
}

// unwrapText is the free text in arguments made by wrapText or by a model. Other arguments
// are returned unchanged.
func unwrapText(args string) string {
	d := wire.NewDecoder([]byte(args))
	text, ok := "", false
	if d.Kind() == wire.KindObject {
		for key := range d.Object {
			if string(key) == "input" && d.Kind() == wire.KindString {
				text, ok = d.Str(), true
			}
		}
	}
	if !ok || d.End() != nil {
		return args
	}
	return text
}

func indexed(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

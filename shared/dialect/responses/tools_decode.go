package responses

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/wire"
)

// namespace reads the tools of {type:"namespace",name,tools}, which other providers are offered
// one by one.
func (q *requestDecoder) namespace(start wire.Decoder, name string) {
	outer := q.d
	q.d = &start
	for key := range start.Object {
		if string(key) == "tools" && start.Kind() == wire.KindArray {
			for range start.Array {
				n := len(q.r.Tools)
				if q.tool(); len(q.r.Tools) > n && q.r.Tools[n].Foreign == "" && start.Err() == nil {
					t := &q.r.Tools[n]
					t.Namespace, t.Name = name, chat.JoinNamespace(name, t.Name)
				}
			}
		}
	}
	if q.d = outer; start.Err() != nil {
		outer.FailWith(start.Err())
	}
}

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
	case "namespace":
		if t.Name == "" {
			openai.Missing(d, &start, "name")
			return
		}
		q.namespace(start, t.Name)
		return
	case "custom":
		t.Custom, t.Schema = true, clone([]byte(chat.TextTool))
		t.Extra = dropPlainFormat(t.Extra)
	case shellTool:
		t.Raw = clone(start.Raw())
		asFunction(&t)
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

// dropPlainFormat removes a format that allows any text, which has no effect.
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
	kind, mode, name, namespace := "", "", "", ""
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
		case "namespace":
			namespace = d.Str()
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
		r.ToolChoice = chat.ToolChoice{Mode: chat.ToolsNamed, Name: chat.JoinNamespace(namespace, name)}
	case "allowed_tools":
		r.ToolChoice.Mode = choiceMode(mode)
		r.Extra = append(r.Extra, chat.Field{Name: "tool_choice.tools", Raw: clone(start.Raw())})
	case shellTool:
		r.ToolChoice = chat.ToolChoice{Mode: chat.ToolsNamed, Name: shellTool}
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

func indexed(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

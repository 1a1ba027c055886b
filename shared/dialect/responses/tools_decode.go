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
				if q.tool(); len(q.r.Tools) > n && q.r.Tools[n].ForeignType == "" && start.Err() == nil {
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
		q.r.Tools = append(q.r.Tools, chat.Tool{Name: kind, ForeignType: kind, Raw: clone(start.Raw()), Cache: t.Cache})
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
	filtered := extra[:0]
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
			filtered = append(filtered, x)
		}
	}
	return filtered
}

// toolChoice reads a mode, {type:"function"|"custom",name}, {type:
// "allowed_tools",mode,tools}, or a hosted tool, which no other provider has.
func (q *requestDecoder) toolChoice() {
	d, r := q.d, q.r
	if d.Kind() == wire.KindString {
		word := d.Str()
		if r.ToolChoice.Mode = choiceMode(word); r.ToolChoice.Mode == chat.ToolsUnset {
			r.ToolChoice.Mode, r.ToolChoice.HostMode = chat.ToolsAuto, word
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
	return chat.ToolsUnset
}

func indexed(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// The local_shell tool has no schema: a model that was trained for it calls it by a
// local_shell_call item. Other providers get a function of the same name with the action
// of that item as arguments (OpenAI API reference, LocalShellExecAction, 2026-11-29).
const (
	shellTool   = "local_shell"
	shellCall   = "local_shell_call"
	shellUse    = "Runs a command on the user's machine and returns its output."
	shellSchema = `{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"}},"working_directory":{"type":"string"},"env":{"type":"object","additionalProperties":{"type":"string"}},"timeout_ms":{"type":"integer"},"user":{"type":"string"}},"required":["command"]}`
)

// asFunction makes a local_shell tool a function; Raw stays what the client wrote.
func asFunction(t *chat.Tool) {
	t.Name, t.Description, t.Schema = shellTool, chat.Some(shellUse), []byte(shellSchema)
}

// isShell reports whether a tool is the client's local_shell tool.
func isShell(r *chat.Request, tool string) bool {
	if r == nil || tool != shellTool {
		return false
	}
	for i := range r.Tools {
		if t := &r.Tools[i]; t.Name == tool && t.ForeignType == "" && t.Raw != nil {
			return true
		}
	}
	return false
}

// shellAction returns the action of a call of local_shell; ok is false if the arguments are none:
// such a call stays a function_call, so that no command is run that the model did not write.
func shellAction(args string) (action []byte, ok bool) {
	d := wire.NewDecoder([]byte(args))
	if d.Kind() != wire.KindObject {
		return nil, false
	}
	action = []byte(`{"type":"exec"`)
	env := false
	for key := range d.Object {
		switch field := string(key); field {
		case "command":
			if d.Kind() != wire.KindArray {
				return nil, false
			}
			probe := *d
			for range probe.Array {
				if probe.Kind() != wire.KindString {
					return nil, false
				}
				probe.Skip()
				ok = true
			}
			action = append(append(action, `,"command":`...), d.Raw()...)
		case "env", "working_directory", "timeout_ms", "user":
			if raw := d.Raw(); !wire.IsNull(raw) {
				env = env || field == "env"
				action = append(append(action, `,"`+field+`":`...), raw...)
			}
		}
	}
	if !env {
		action = append(action, `,"env":{}`...)
	}
	return oneLine(append(action, '}')), ok && d.End() == nil
}

// appendShell writes the fields of a call item that follow its status.
func appendShell(dst, action []byte, callID string) []byte {
	dst = append(append(dst, `,"action":`...), action...)
	return wire.AppendJSONString(append(dst, `,"call_id":`...), callID)
}

// shell writes a call of local_shell of a complete response; false if it is a
// function_call.
func (w *itemWriter) shell(c *chat.ToolCall, tool string) bool {
	if !isShell(w.e.o.Request, tool) {
		return false
	}
	action, ok := shellAction(c.Arguments)
	if ok {
		w.begin("lsh", shellCall)
		w.writeStatus()
		w.b = append(appendShell(w.b, action, c.ID), '}')
	}
	return ok
}

// localShellCall returns the call of local_shell that a delta belongs to, nil if it is of
// another. Such a call is held until it is complete: only then it is known which item it
// is.
func localShellCall(s *streamEncoder, d *chat.Delta) *openItem { return s.shells[d.Call] }

// giveShell writes a call of local_shell that is complete.
func giveShell(s *streamEncoder, dst []byte, call int) []byte {
	it := s.shells[call]
	if it == nil {
		return dst
	}
	delete(s.shells, call)
	args := string(wire.AppendUnquoted(nil, append(append([]byte{'"'}, it.text...), '"')))
	if action, ok := shellAction(args); ok {
		it.kind, it.action, it.text = shellItem, action, nil
		return s.end(s.open(dst, it, "lsh"), it, "completed")
	}
	piece := it.text
	it.text = nil
	if dst = s.open(dst, it, "fc"); len(piece) > 0 {
		it.text = piece
		dst = callDelta(s, dst, it, piece)
	}
	it.ended = true
	return dst
}

// giveShells writes the calls of local_shell that are left at the end, in their order.
func giveShells(s *streamEncoder, dst []byte) []byte {
	for call := 0; len(s.shells) > 0; call++ {
		dst = giveShell(s, dst, call)
	}
	return dst
}

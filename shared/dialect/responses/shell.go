package responses

import (
	"gateway/shared/chat"
	"gateway/shared/wire"
)

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
		if t := &r.Tools[i]; t.Name == tool && t.Foreign == "" && t.Raw != nil {
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

// heldCall returns the call of local_shell that a delta belongs to, nil if it is of
// another. Such a call is held until it is complete: only then it is known which item it
// is.
func heldCall(s *streamEncoder, d *chat.Delta) *openItem { return s.shells[d.Call] }

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

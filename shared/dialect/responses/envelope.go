package responses

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// envelope is what all response objects of one response share.
type envelope struct {
	o       *chat.Options
	id      string // resp_...
	core    string // the id without its prefix; ids of items are made of it
	model   string
	created int64
	echo    []byte // the settings of the request, as fields, each after a comma
	stored  int    // where echo has the value of store
}

func newEnvelope(id, model string, created int64, o *chat.Options) *envelope {
	e := &envelope{o: o, model: model, created: created}
	id = o.ResponseID(id, "resp_")
	if e.model == "" {
		e.model = o.Model
	}
	if e.created == 0 {
		e.created = o.Created
	}
	e.core = id
	for _, prefix := range [...]string{"resp_", "chatcmpl-", "msg_"} {
		if rest, ok := strings.CutPrefix(id, prefix); ok {
			e.core = rest
			break
		}
	}
	e.id = "resp_" + e.core
	e.echo, e.stored = appendEcho(nil, o)
	e.echo = oneLine(e.echo)
	return e
}

// oneLine replaces line ends in JSON, which can only be between its values, by spaces: an
// event is one line.
func oneLine(raw []byte) []byte {
	for i, c := range raw {
		if c == '\n' || c == '\r' {
			raw[i] = ' '
		}
	}
	return raw
}

// itemID is the id of the output item at index.
func (e *envelope) itemID(prefix string, index int) string {
	return prefix + "_" + e.core + "_" + strconv.Itoa(index)
}

// outcome is the state of a response.
type outcome struct {
	status string // in_progress, completed, incomplete, failed
	reason string // of incomplete
	fault  *fault.Fault
	usage  *pricing.Usage // nil while it is not known
	tier   string
}

// outcomeOf is the outcome of a response that has stopped. A response that was cut or
// withheld is never complete.
func outcomeOf(stop chat.StopReason, native string) outcome {
	switch stop {
	case chat.StopLength, chat.StopContext:
		return outcome{status: "incomplete", reason: "max_output_tokens"}
	case chat.StopFilter:
		return outcome{status: "incomplete", reason: "content_filter"}
	case chat.StopPause:
		if native == "" {
			native = "pause_turn"
		}
		return outcome{status: "incomplete", reason: native}
	}
	return outcome{status: "completed"}
}

// append writes the response object; output is the content of its list.
func (e *envelope) append(dst, output []byte, s *outcome) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendJSONString(dst, e.id)
	dst = append(dst, `,"object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, e.created, 10)
	dst = append(dst, `,"status":"`...)
	dst = append(append(dst, s.status...), `","background":false,"error":`...)
	dst = appendFailure(dst, s.fault, e.o)
	dst = append(dst, `,"incomplete_details":`...)
	if s.reason == "" {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, `{"reason":`...)
		dst = append(wire.AppendJSONString(dst, s.reason), '}')
	}
	dst = append(dst, `,"model":`...)
	dst = wire.AppendJSONString(dst, e.model)
	if e.o.ProviderName != "" {
		dst = append(dst, `,"provider":`...)
		dst = wire.AppendJSONString(dst, e.o.ProviderName)
	}
	dst = append(dst, `,"output":[`...)
	dst = append(append(dst, output...), ']')
	dst = append(dst, e.echo[:e.stored]...)
	dst = strconv.AppendBool(dst, e.stores(len(output), s.status))
	dst = append(dst, e.echo[e.stored:]...)
	if s.tier != "" {
		dst = append(dst, `,"service_tier":`...)
		dst = wire.AppendJSONString(dst, s.tier)
	}
	dst = append(dst, `,"usage":`...)
	dst = appendUsage(dst, s.usage)
	return append(dst, '}')
}

// stores reports whether the gateway stores the response, as far as it is known while it is in
// progress. output is the length of the content of its list.
func (e *envelope) stores(output int, status string) bool {
	switch status {
	case "in_progress":
		return e.o.Stores > 0
	case "failed":
		return false
	}
	return output > 0 && output+len("[]") <= e.o.Stores
}

// appendFailure writes {code,message}, or null.
func appendFailure(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	if f == nil {
		return append(dst, "null"...)
	}
	_, message := failure(f, o)
	dst = append(dst, `{"code":`...)
	dst = wire.AppendJSONString(dst, failedCode(f))
	dst = append(dst, `,"message":`...)
	dst = wire.AppendJSONString(dst, message)
	return append(dst, '}')
}

// appendUsage writes a usage object; null when nothing is known.
func appendUsage(dst []byte, u *pricing.Usage) []byte {
	if u == nil || !u.IsReported() {
		return append(dst, "null"...)
	}
	read := u.Cached()
	count := func(member string, n int64) {
		dst = append(dst, member...)
		dst = strconv.AppendInt(dst, n, 10)
	}
	count(`{"input_tokens":`, u.InputTokens())
	count(`,"input_tokens_details":{"cached_tokens":`, read)
	count(`},"output_tokens":`, u.OutputTokens())
	count(`,"output_tokens_details":{"reasoning_tokens":`, u.N(pricing.Reasoning))
	count(`},"total_tokens":`, u.TotalTokens())
	return append(dst, '}')
}

// appendEcho writes the settings that a response repeats, each after a comma. stored is the place
// of the value of store, which is not written.
func appendEcho(dst []byte, o *chat.Options) (echo []byte, stored int) {
	r := o.Request
	if r == nil {
		r = new(chat.Request)
	}
	str := func(member, s string) {
		dst = append(dst, member...)
		if s == "" {
			dst = append(dst, "null"...)
			return
		}
		dst = wire.AppendJSONString(dst, s)
	}
	number := func(member string, v chat.Opt[float64]) {
		dst = append(dst, member...)
		dst = strconv.AppendFloat(dst, v.Or(1), 'g', -1, 64)
	}
	extra := func(member, name, none string) {
		dst = append(dst, member...)
		for _, x := range r.Extra {
			if x.Name == name {
				dst = append(dst, x.Raw...)
				return
			}
		}
		dst = append(dst, none...)
	}
	instructions := ""
	if len(r.Messages) > 0 && r.Messages[0].At < 0 {
		instructions = r.Messages[0].Text()
	}
	str(`,"instructions":`, instructions)
	dst = append(dst, `,"max_output_tokens":`...)
	if r.MaxTokens.Set {
		dst = strconv.AppendInt(dst, r.MaxTokens.Value, 10)
	} else {
		dst = append(dst, "null"...)
	}
	extra(`,"metadata":`, ownOnly+"metadata", "{}")
	dst = append(dst, `,"parallel_tool_calls":`...)
	dst = strconv.AppendBool(dst, r.Parallel.Or(true))
	str(`,"previous_response_id":`, o.Continues)
	str(`,"reasoning":{"effort":`, r.Reasoning.Effort)
	dst = append(dst, `,"summary":null},"store":`...)
	stored = len(dst)
	number(`,"temperature":`, r.Temperature)
	dst = append(dst, `,"text":{"format":`...)
	dst = append(appendFormat(dst, &r.Format), '}')
	dst = append(dst, `,"tool_choice":`...)
	dst = appendToolChoice(dst, r)
	dst = append(dst, `,"tools":[`...)
	for i := range r.Tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendToolEcho(dst, &r.Tools[i])
	}
	dst = append(dst, ']')
	number(`,"top_p":`, r.TopP)
	extra(`,"truncation":`, "truncation", `"disabled"`)
	if r.User != "" {
		str(`,"user":`, r.User)
	}
	return dst, stored
}

// appendFormat writes text.format.
func appendFormat(dst []byte, f *chat.Format) []byte {
	switch f.Kind {
	case chat.FormatJSON:
		return append(dst, `{"type":"json_object"}`...)
	case chat.FormatSchema:
		name := f.Name
		if name == "" {
			name = "answer"
		}
		dst = append(dst, `{"type":"json_schema","name":`...)
		dst = wire.AppendJSONString(dst, name)
		if f.Description != "" {
			dst = append(dst, `,"description":`...)
			dst = wire.AppendJSONString(dst, f.Description)
		}
		dst = append(append(dst, `,"schema":`...), f.Schema...)
		if f.Strict.Set {
			dst = append(dst, `,"strict":`...)
			dst = strconv.AppendBool(dst, f.Strict.Value)
		}
		return append(dst, '}')
	}
	return append(dst, `{"type":"text"}`...)
}

func appendToolChoice(dst []byte, r *chat.Request) []byte {
	switch c := r.ToolChoice; c.Mode {
	case chat.ToolsNone:
		return append(dst, `"none"`...)
	case chat.ToolsRequired:
		return append(dst, `"required"`...)
	case chat.ToolsNamed:
		if isShell(r, c.Name) {
			return append(dst, `{"type":"local_shell"}`...)
		}
		kind := "function"
		if r.CustomTool(c.Name) {
			kind = "custom"
		}
		dst = append(dst, `{"type":"`+kind+`","name":`...)
		return append(wire.AppendJSONString(dst, c.Name), '}')
	}
	return append(dst, `"auto"`...)
}

// appendToolName writes the name of a called tool as the client knows it.
func appendToolName(dst []byte, r *chat.Request, tool string) []byte {
	namespace, own := r.SplitNamespace(tool)
	if namespace != "" {
		dst = append(dst, `,"namespace":`...)
		dst = wire.AppendJSONString(dst, namespace)
	}
	dst = append(dst, `,"name":`...)
	return wire.AppendJSONString(dst, own)
}

// appendToolEcho writes a tool as the client gave it.
func appendToolEcho(dst []byte, t *chat.Tool) []byte {
	if t.Raw != nil {
		return append(dst, t.Raw...)
	}
	if !t.Custom {
		return appendTool(dst, t, t.Name, t.Strict.Value, true)
	}
	dst = append(dst, `{"type":"custom","name":`...)
	dst = wire.AppendJSONString(dst, t.Name)
	if t.Description.Set {
		dst = append(dst, `,"description":`...)
		dst = wire.AppendJSONString(dst, t.Description.Value)
	}
	return append(dst, '}')
}

// appendTool writes a function. strict is always written where the host takes it, because a
// host's default for it is true.
func appendTool(dst []byte, t *chat.Tool, name string, strict, writeStrict bool) []byte {
	dst = append(dst, `{"type":"function","name":`...)
	dst = wire.AppendJSONString(dst, name)
	if t.Description.Set {
		dst = append(dst, `,"description":`...)
		dst = wire.AppendJSONString(dst, t.Description.Value)
	}
	dst = append(dst, `,"parameters":`...)
	if t.Schema == nil {
		dst = append(dst, `{"type":"object","properties":{}}`...)
	} else {
		dst = append(dst, t.Schema...)
	}
	if writeStrict {
		dst = append(dst, `,"strict":`...)
		dst = strconv.AppendBool(dst, strict)
	}
	return append(dst, '}')
}

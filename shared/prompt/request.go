package prompt

import (
	"bytes"
	"encoding/json"
	"slices"
	"sort"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Request is what a caller sends for a prompt: its variables, and fields of the body that
// replace the prompt's own.
type Request struct {
	Variables map[string]any
	root      []member
}

// member is a field of a body; value is its JSON.
type member struct {
	name  string
	value []byte
}

// notSent are fields of a caller's body that never go to a provider: they concern the
// prompt, or are only shown in its description.
var notSent = []string{"variables", "hyperparameters", "prompt_id", "promptId"}

// ParseRequest parses a caller's body, which must outlive the result. An empty body is an empty
// request. The error is a *fault.Fault (400).
func ParseRequest(body []byte) (*Request, error) {
	q := &Request{Variables: map[string]any{}}
	if len(bytes.TrimSpace(body)) == 0 {
		return q, nil
	}
	if err := wire.CheckStrict(body, wire.MaxDepth); err != nil {
		return nil, err
	}
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return nil, fault.Invalid("", "The body must be a JSON object")
	}
	var wrong error
	for key := range d.Object {
		name := string(key)
		value := d.Raw()
		switch {
		case name == "variables":
			wrong = q.readVariables(value)
		case slices.Contains(notSent, name):
		default:
			q.root = append(q.root, member{name, value})
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return q, wrong
}

func (q *Request) readVariables(value []byte) error {
	if wire.IsNull(value) {
		return nil
	}
	if wire.KindOf(value) != wire.KindObject {
		return fault.Invalid("variables", "must be an object")
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&q.Variables); err != nil {
		return fault.Invalid("variables", "must be an object")
	}
	return nil
}

// has reports whether the caller sets a field.
func (q *Request) has(name string) bool {
	return slices.ContainsFunc(q.root, func(m member) bool { return m.name == name && !wire.IsNull(m.value) })
}

// Text is a field of the caller's body that is a text; "" for anything else.
func (q *Request) Text(name string) (text string) {
	for _, m := range q.root {
		if m.name == name && json.Unmarshal(m.value, &text) != nil {
			return ""
		}
	}
	return text
}

// instead are pairs of fields that exclude each other: the caller's field replaces the
// saved field of the other name.
var instead = map[string]string{"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

// Body is the body for the provider: saved parameters, model, tools and the filled-in
// template, overridden by the caller's own fields. Saved parameters that are null are left
// out, and so is whatever the caller sets to null. Only the caller decides whether the
// response is a stream. The error is a *fault.Fault about the template or the variables.
func (s *Saved) Body(q *Request, partials Partials) ([]byte, error) {
	text := "messages"
	if s.Compiled.Type == Completion {
		text = "prompt"
	}
	filled := ""
	if !q.has(text) {
		var err error
		if filled, err = s.Compiled.Render(q.Variables, partials); err != nil {
			return nil, err
		}
	}
	w := writer{out: append(make([]byte, 0, len(filled)+s.size+256), '{')}
	for i := range s.base {
		m := &s.base[i]
		if !q.replaces(m.name) {
			w.member(m.name, m.value)
		}
		if i == 0 && !q.has(text) { // after the model
			w.name(text)
			if s.Compiled.Type == Completion {
				w.out = wire.AppendJSONString(w.out, filled)
			} else {
				w.out = append(w.out, filled...)
			}
		}
	}
	for _, m := range q.root {
		if !wire.IsNull(m.value) {
			w.member(m.name, m.value)
		}
	}
	return append(w.out, '}'), nil
}

// replaces reports whether the caller sets a saved field (null included), or a field that
// replaces it.
func (q *Request) replaces(saved string) bool {
	for i := range q.root {
		m := &q.root[i]
		if m.name == saved || m.name == instead[saved] && !wire.IsNull(m.value) {
			return true
		}
	}
	// Options of a stream only belong to streams.
	return saved == "stream_options" && !q.streams()
}

// streams reports whether the caller requests a stream.
func (q *Request) streams() bool {
	return slices.ContainsFunc(q.root, func(m member) bool { return m.name == "stream" && string(m.value) == "true" })
}

type writer struct{ out []byte }

func (w *writer) name(name string) {
	if len(w.out) > 1 {
		w.out = append(w.out, ',')
	}
	w.out = append(wire.AppendJSONString(w.out, name), ':')
}

func (w *writer) member(name string, value []byte) {
	if len(value) == 0 {
		return
	}
	w.name(name)
	w.out = append(w.out, value...)
}

// members are the fields of a body that come from the prompt itself, except its template:
// the model first, which may be empty.
func (p *Prompt) members() (all []member, size int) {
	var model []byte
	if p.Model != "" {
		model = wire.AppendJSONString(nil, p.Model)
	} else if raw := p.Parameters["model"]; len(raw) > 0 && raw[0] == '"' && string(raw) != `""` {
		model = raw
	}
	for name, raw := range p.Parameters {
		switch {
		case len(raw) == 0 || wire.IsNull(raw):
		case name == "model", name == "stream", name == "messages", name == "prompt", slices.Contains(notSent, name):
		case name == "tools" && p.Tools != nil, name == "functions" && p.Functions != nil, name == "tool_choice" && len(p.ToolChoice) > 0:
		default:
			all = append(all, member{name, raw})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	for _, list := range []struct {
		name  string
		items []json.RawMessage
	}{{"tools", p.Tools}, {"functions", p.Functions}} {
		if len(list.items) > 0 {
			raw, _ := json.Marshal(list.items) // never fails: they are JSON
			all = append(all, member{list.name, raw})
		}
	}
	if len(p.ToolChoice) > 0 && !wire.IsNull(p.ToolChoice) {
		all = append(all, member{"tool_choice", p.ToolChoice})
	}
	all = append([]member{{"model", model}}, all...)
	for _, m := range all {
		size += len(m.name) + len(m.value) + 4
	}
	return all, size
}

package provider

import (
	"bytes"

	"gateway/shared/wire"
)

// Adapt changes a body of the OpenAI chat dialect where the host differs from OpenAI, and
// leaves every other byte. The result is body itself when nothing had to change. dropped
// names the members that were omitted, for the report to the caller. body is a checked
// JSON object.
func (p *Provider) Adapt(body []byte) (adapted []byte, dropped []string) {
	q := &p.Quirks
	if p.Dialect != OpenAIChat {
		return body, nil
	}
	var edits []wire.Edit
	renames := q.renames()
	if len(renames)+len(q.Drop) > 0 || q.RequiredIsAny {
		edits, dropped = q.members(body, renames)
	}
	if !q.Developer && bytes.Contains(body, []byte(`developer"`)) {
		edits = append(edits, developerRoles(body)...)
	}
	if len(edits) == 0 {
		return body, nil
	}
	return wire.Splice(make([]byte, 0, len(body)+16), body, edits...), dropped
}

func (q *Quirks) renames() []Rename {
	if !q.OnlyMaxTokens {
		return q.Rename
	}
	return append(q.Rename[:len(q.Rename):len(q.Rename)], Rename{"max_completion_tokens", "max_tokens"})
}

// members makes the edits of top-level members. If a body has both max_tokens and
// max_completion_tokens, the latter wins.
func (q *Quirks) members(body []byte, renames []Rename) (edits []wire.Edit, dropped []string) {
	var keys []string
	for _, r := range renames {
		keys = append(keys, r.From, r.To)
	}
	keys = append(append(keys, q.Drop...), "tool_choice")
	set := wire.NewKeySet(keys...)
	var w wire.Walk
	if set.Walk(body, &w) != nil {
		return nil, nil // the provider reports the error
	}
	for i := range renames {
		from, to := 2*i, 2*i+1
		if w.Spans[from].Absent() {
			continue
		}
		value := w.Spans[from].Of(body)
		edits = append(edits, wire.DeleteKey(&w, from))
		if w.Spans[from].Present(body) {
			edits = append(edits, set.SetKey(&w, to, value))
		}
	}
	for i, name := range q.Drop {
		if k := 2*len(renames) + i; !w.Spans[k].Absent() {
			edits = append(edits, wire.DeleteKey(&w, k))
			if w.Spans[k].Present(body) {
				dropped = append(dropped, name)
			}
		}
	}
	choice := w.Spans[len(keys)-1]
	if q.RequiredIsAny && string(choice.Of(body)) == `"required"` {
		edits = append(edits, wire.Replace(choice, []byte(`"any"`)))
	}
	return edits, dropped
}

// developerRoles makes the edits that turn the role developer into system.
func developerRoles(body []byte) (edits []wire.Edit) {
	d := wire.NewDecoder(body)
	for key := range d.Object {
		if string(key) != "messages" || d.Kind() != wire.KindArray {
			continue
		}
		for range d.Array {
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) != "role" || d.Kind() != wire.KindString {
					continue
				}
				start := d.Offset()
				if raw := d.RawStr(); string(raw) == `"developer"` {
					edits = append(edits, wire.Replace(wire.Span{Start: start, End: start + len(raw)}, []byte(`"system"`)))
				}
			}
		}
	}
	return edits
}

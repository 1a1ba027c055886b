package mockprovider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The common parts of the handlers of stored objects: how objects are written, changed, checked
// and listed.

// doc writes an object of names and values, in this order. A value that is missing in the
// request is written as null.
func doc(pairs ...any) json.RawMessage {
	b := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, pairs[i].(string)), ':')
		switch v := pairs[i+1].(type) {
		case string:
			b = appendString(b, v)
		case value:
			b = append(b, v.source("null")...)
		case json.RawMessage:
			b = append(b, v...)
		default:
			raw, err := json.Marshal(v)
			if err != nil {
				raw = []byte("null")
			}
			b = append(b, raw...)
		}
	}
	return append(b, '}')
}

// source returns the value as JSON in one line; none replaces an absent value.
func (v value) source(none string) json.RawMessage {
	switch v.kind {
	case absent, null:
		return json.RawMessage(none)
	case text:
		return appendString(nil, v.s)
	case boolean:
		return strconv.AppendBool(nil, v.yes)
	case number:
		return json.RawMessage(v.s)
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(v.s)) != nil {
		return json.RawMessage(none)
	}
	return b.Bytes()
}

// list writes values as an array.
func list(raw []json.RawMessage) json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(raws(raw), []byte{','})...), ']')
}

func raws(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

// orNull writes "" as null.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// with returns the object with its members replaced by the given ones.
func (v value) with(changes value) value {
	out := value{kind: object, obj: slices.Clone(v.obj)}
	for _, m := range changes.obj {
		if i := slices.IndexFunc(out.obj, func(o member) bool { return o.name == m.name }); i >= 0 {
			out.obj[i] = m
		} else {
			out.obj = append(out.obj, m)
		}
	}
	return out
}

// child finds a thing that belongs to another.
func (t *things) child(kind, parent, id string) *thing {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.all {
		if n.kind == kind && n.parent == parent && n.id == id {
			return n
		}
	}
	return nil
}

// children are the things that belong to another, oldest first.
func (t *things) children(kind, parent string) (out []*thing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.all {
		if n.kind == kind && n.parent == parent {
			out = append(out, n)
		}
	}
	return out
}

// drop deletes one thing.
func (t *things) drop(gone *thing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(n *thing) bool { return n == gone })
}

// listing answers with a page of things that belong to another: limit 1 to 100, order,
// after, before. keep may be nil.
func listing(x *exchange, kind, parent, order string, keep func(*thing) bool, write func(*thing) json.RawMessage) *apiError {
	q, err := url.ParseQuery(x.query)
	if err != nil {
		return badRequest("", "", "bad query")
	}
	limit := 20
	if s := q.Get("limit"); s != "" {
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 || limit > 100 {
			return badRequest("limit", "invalid_value", "Invalid 'limit': expected an integer between 1 and 100.")
		}
	}
	if s := q.Get("order"); s != "" {
		if order = s; s != "asc" && s != "desc" {
			return unsupportedValue("order", s, "asc", "desc")
		}
	}
	x.s.things.jobs.Lock()
	all := x.s.things.children(kind, parent)
	if keep != nil {
		all = slices.DeleteFunc(all, func(n *thing) bool { return !keep(n) })
	}
	if order == "desc" {
		slices.Reverse(all)
	}
	at := func(id string) int { return slices.IndexFunc(all, func(n *thing) bool { return n.id == id }) }
	bad := ""
	if after := q.Get("after"); after != "" {
		if i := at(after); i >= 0 {
			all = all[i+1:]
		} else {
			bad = "after"
		}
	}
	if before := q.Get("before"); before != "" && bad == "" {
		if i := at(before); i >= 0 {
			all = all[:i]
		} else {
			bad = "before"
		}
	}
	more := len(all) > limit
	all = all[:min(len(all), limit)]
	rows := make([]json.RawMessage, 0, len(all))
	for _, n := range all {
		rows = append(rows, write(n))
	}
	x.s.things.jobs.Unlock()
	if bad != "" {
		return badRequest(bad, "invalid_value", "Invalid '"+bad+"': there is no "+q.Get(bad))
	}
	var first, last any
	if len(all) > 0 {
		first, last = all[0].id, all[len(all)-1].id
	}
	return listed(x, doc("object", "list", "data", list(rows), "first_id", first, "last_id", last, "has_more", more))
}

// read answers with what do returns. Nothing else changes things meanwhile; do may change
// them.
func read(x *exchange, do func() (json.RawMessage, *apiError)) *apiError {
	x.s.things.jobs.Lock()
	b, e := do()
	x.s.things.jobs.Unlock()
	if e != nil {
		return e
	}
	return listed(x, b)
}

// locked writes things that another request may be changing.
func locked(x *exchange, write func() json.RawMessage) json.RawMessage {
	x.s.things.jobs.Lock()
	defer x.s.things.jobs.Unlock()
	return write()
}

// optionalBody reads a JSON body that may be empty.
func optionalBody(x *exchange) (value, *apiError) {
	if len(x.body) == 0 {
		return value{kind: object}, nil
	}
	return parseBody(x)
}

// checked reads a body that may have the named members, separated by spaces.
func checked(x *exchange, fields string) (value, *apiError) {
	v, e := optionalBody(x)
	if e != nil {
		return v, e
	}
	return v, checkMembers(v, "", fields)
}

func checkMembers(v value, at, fields string) *apiError {
	known := strings.Fields(fields)
	for _, m := range v.obj {
		if !slices.Contains(known, m.name) {
			return badRequest(at+m.name, "unknown_parameter", "Unknown parameter: '"+at+m.name+"'.")
		}
	}
	return checkMetadata(v)
}

// checkMetadata limits metadata to sixteen pairs of short texts.
func checkMetadata(v value) *apiError {
	meta := v.get("metadata")
	if !meta.given() {
		return nil
	}
	if meta.kind != object {
		return wrongType("metadata", "an object", meta.kind)
	}
	if len(meta.obj) > 16 {
		return badRequest("metadata", "object_above_max_properties", "Invalid 'metadata': too many properties. Expected an object with at most 16 properties.")
	}
	for _, m := range meta.obj {
		if m.v.kind != text {
			return wrongType("metadata."+m.name, "a string", m.v.kind)
		}
		if len(m.name) > 64 || len(m.v.s) > 512 {
			return badRequest("metadata."+m.name, "string_above_max_length", "Invalid 'metadata."+m.name+"': string too long.")
		}
	}
	return nil
}

// atMost limits the characters of texts and the entries of lists.
func atMost(v value, bounds map[string]int) *apiError {
	for name, most := range bounds {
		f := v.get(name)
		if f.kind == text && len([]rune(f.s)) > most {
			return badRequest(name, "string_above_max_length", fmt.Sprintf("Invalid '%s': string too long. Expected a string with maximum length %d.", name, most))
		}
		if f.kind == array && len(f.arr) > most {
			return badRequest(name, "array_above_max_length", fmt.Sprintf("Invalid '%s': array too long. Expected an array with maximum length %d.", name, most))
		}
	}
	return nil
}

// filesExist checks that the files that a request names exist.
func filesExist(x *exchange, ids value) *apiError {
	for _, f := range ids.arr {
		if x.s.things.get("file", f.s) == nil {
			return notFound("File", f.s)
		}
	}
	return nil
}

// noBody rejects a body where none is allowed.
func noBody(x *exchange) *apiError {
	if len(x.body) > 0 {
		return badRequest("", "", "This request takes no body.")
	}
	return nil
}

// pollSoon sets the polling interval of the client library.
func pollSoon(x *exchange) { x.w.Header()["Openai-Poll-After-Ms"] = []string{"1"} }

// sendFile answers with the bytes of a file.
func sendFile(x *exchange, n *thing) *apiError {
	row, done, e := begin(x, "", n.id)
	if done {
		return e
	}
	h := x.setHeaders("application/octet-stream", row)
	h["Content-Disposition"] = []string{`attachment; filename="` + n.name + `"`}
	h["Content-Length"] = []string{strconv.Itoa(len(n.content))}
	x.row.close(http.StatusOK, Usage{}, false, "")
	x.w.WriteHeader(http.StatusOK)
	x.write(n.content)
	return nil
}

package mockprovider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// resource is an object that the mock stores under an id.
type resource struct {
	id, kind, parent, scope string
	created                 int64
	reads                   int // an object makes progress when it is read
	stopped                 bool
	state                   string // one that was set; empty for that of the reads
	name, purpose           string
	content                 []byte
	body                    value // of the request that made it
	output, failed          string
	rows, good              int64
	usage                   Usage
	model                   string
	run                     *assistantRun // only for a run
}

// Limits of stored data: objects, and bytes of files. The oldest are dropped first.
const (
	maxObjects     = 2000
	maxObjectBytes = 64 << 20
)

// resources stores the created objects, oldest first.
type resources struct {
	mu      sync.Mutex
	changes sync.Mutex // held while an object changes or is written; locked before mu
	all     []*resource
	bytes   int
}

func (t *resources) add(n *resource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, n)
	t.bytes += len(n.content)
	for len(t.all) > 1 && (len(t.all) > maxObjects || t.bytes > maxObjectBytes) {
		t.bytes -= len(t.all[0].content)
		t.all = t.all[1:]
	}
}

// find returns the objects of a kind for which match is true, oldest first.
func (t *resources) find(kind string, match func(*resource) bool) (out []*resource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.all {
		if n.kind == kind && match(n) {
			out = append(out, n)
		}
	}
	return out
}

// first returns the only object that find found; nil if there is none.
func first(found []*resource) *resource {
	if len(found) == 0 {
		return nil
	}
	return found[0]
}

func (t *resources) get(kind, id string) *resource {
	return first(t.find(kind, func(n *resource) bool { return n.id == id }))
}

// child returns an object that belongs to another.
func (t *resources) child(kind, parent, id string) *resource {
	return first(t.find(kind, func(n *resource) bool { return n.parent == parent && n.id == id }))
}

func (t *resources) children(kind, parent string) []*resource {
	return t.find(kind, func(n *resource) bool { return n.parent == parent })
}

// drop deletes one object, if it is not nil.
func (t *resources) drop(gone *resource) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(n *resource) bool { return n == gone })
}

func (t *resources) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all, t.bytes = nil, 0
}

// keep stores a new object.
func keep(x *exchange, n *resource) *resource {
	n.created = x.s.opts.Now().Unix()
	x.s.objects.add(n)
	return n
}

// replace stores an object instead of the one with the same id.
func replace(x *exchange, n *resource) *resource {
	x.s.objects.drop(x.s.objects.child(n.kind, n.parent, n.id))
	return keep(x, n)
}

// locked writes objects that another request may be changing.
func locked(x *exchange, write func() []byte) []byte {
	x.s.objects.changes.Lock()
	defer x.s.objects.changes.Unlock()
	return write()
}

// source returns the value as JSON in one line; none replaces an absent value.
func (v value) source(none string) json.RawMessage {
	if v.kind == absent || v.kind == null {
		return json.RawMessage(none)
	}
	var b bytes.Buffer
	if json.Compact(&b, appendValue(nil, v)) != nil {
		return json.RawMessage(none)
	}
	return b.Bytes()
}

// list writes values as an array.
func list(raw []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, r := range raw {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, r...)
	}
	return append(b, ']')
}

// orNull writes "" as null.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// with returns the object with its fields replaced by the given ones.
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

// noBody rejects a body where none is allowed.
func noBody(x *exchange) *apiError {
	if len(x.body) > 0 {
		return badRequest("", "", "This request takes no body.")
	}
	return nil
}

// sendFile responds with the bytes of a file.
func sendFile(x *exchange, n *resource) *apiError {
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

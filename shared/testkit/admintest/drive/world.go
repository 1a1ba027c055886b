package drive

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Send makes a call and gives its status and answer.
type Send func(method, path string, body []byte) (int, []byte)

// Place is where things are made.
type Place bool

// The places: in a workspace, which is named, and in the organization.
const (
	Workspace    Place = true
	Organisation Place = false
)

// Resources are the resources that a client has created. It is not safe for concurrent use.
type Resources struct {
	Doc  *Document
	Send Send
	// In is the workspace that workspace_id names; "": one that the client makes.
	In     string
	things map[string]*Resource
	names  map[string][]string // of things, by collection and any of their names
	// New, where it is not nil, gives the name of another thing of a collection that
	// no operation makes; "": it cannot.
	New     func(collection string) string
	adopted bool // things of a workspace that was there are made below it
	made    int
}

// NewResources is an empty world.
func NewResources(d *Document, send Send) *Resources {
	return &Resources{Doc: d, Send: send, things: map[string]*Resource{}, names: map[string][]string{}}
}

// Resource is a resource that a client has created.
type Resource struct {
	Create    *Operation
	Place     Place
	Variables map[string]string // of the paths of its operations, and workspace_id
	Key       string            // how others refer to it
	Names     []string          // all that it is called
	Sent      map[string]any
	Answer    map[string]any
	adopted   bool
}

// RejectedError is a response that is none of success.
type RejectedError struct {
	Op     *Operation
	Path   string
	Status int
	Body   []byte
	Sent   []byte
}

func (r *RejectedError) Error() string {
	return fmt.Sprintf("%s %s: %d %.600s, sent %.600s", r.Op.Method, r.Path, r.Status, r.Body, r.Sent)
}

// Fields are the fields that a rejection names, with what it says of each.
func (r *RejectedError) Fields() map[string]string {
	var b struct {
		Data struct {
			Message string
			Errors  []struct{ Field, Message string }
		}
		Error struct{ Param string }
	}
	out := map[string]string{}
	if json.Unmarshal(r.Body, &b) != nil {
		return out
	}
	for _, e := range b.Data.Errors {
		out[e.Field] = e.Message
	}
	if b.Error.Param != "" && out[b.Error.Param] == "" {
		out[b.Error.Param] = b.Data.Message
	}
	return out
}

// Find is a thing of the collection, made when there is none.
func (w *Resources) Find(collection string, place Place) (*Resource, error) {
	at := fmt.Sprint(collection, place)
	if t := w.things[at]; t != nil {
		return t, nil
	}
	create := w.Doc.created[collection]
	var t *Resource
	var err error
	if create == nil && w.New != nil {
		if key := w.New(collection); key != "" {
			t = &Resource{Place: place, Variables: map[string]string{}, Key: key, Names: []string{key}}
			w.things[at] = t
			return t, nil
		}
	}
	if create == nil {
		t, err = w.find(collection, place)
	} else {
		if place == Workspace && w.takes(create, workspaceID) == nil {
			if len(Variables(create.Path)) == 0 {
				t, err := w.Find(collection, Organisation)
				w.things[at] = t
				return t, err
			}
			if !w.adopted {
				place = Organisation
			}
		}
		for _, enums := range w.Variants(create) {
			if t, err = w.Create(create, place, enums); err == nil {
				break
			}
		}
		if place == Organisation && w.takes(create, workspaceID) != nil && (err != nil || w.inWorkspace(t)) {
			return w.Find(collection, Workspace)
		}
	}
	if err != nil {
		return nil, err
	}
	w.things[at] = t
	return t, nil
}

// inWorkspace reports whether a resource that was made without naming a workspace is in one:
// that of a resource that it refers to.
func (w *Resources) inWorkspace(t *Resource) bool {
	got, err := w.Get(t)
	return err == nil && text(got[workspaceID]) != ""
}

// After numbers names from n on, so that two worlds have none in common.
func (w *Resources) After(n int) { w.made = n }

// Invalidate makes the next Find make another thing.
func (w *Resources) Invalidate(t *Resource) {
	maps.DeleteFunc(w.things, func(_ string, o *Resource) bool { return o == t })
}

// Adopt makes a thing that is there already what Find gives.
func (w *Resources) Adopt(collection string, place Place, names ...string) {
	w.adopted = true
	w.things[fmt.Sprint(collection, place)] = &Resource{Place: place, Variables: map[string]string{}, Key: names[0], Names: names, adopted: true}
}

// InvalidateIn clears the resources of a collection and of the collections below it, so that the
// next Find creates new ones.
func (w *Resources) InvalidateIn(collection string) {
	maps.DeleteFunc(w.things, func(at string, t *Resource) bool { return strings.HasPrefix(at, collection) && !t.adopted })
}

// All are the names of all things, with where they are.
func (w *Resources) All() map[string]Place {
	out := map[string]Place{}
	for _, t := range w.things {
		for _, n := range t.Names {
			out[n] = t.Place
		}
	}
	return out
}

// takes is the schema of a member of an operation's body; nil when it has none.
func (w *Resources) takes(op *Operation, member string) Schema {
	return object(object(op.Body["properties"])[member])
}

// find takes the first entry of a collection that nothing makes.
func (w *Resources) find(collection string, place Place) (*Resource, error) {
	op := w.Doc.At("GET", collection)
	if op == nil {
		return nil, fmt.Errorf("drive: nothing makes what %s has, and nothing lists it", collection)
	}
	path, err := w.Path(op, place, nil)
	if err != nil {
		return nil, err
	}
	status, answer := w.Send("GET", path, nil)
	entries := Entries(answer)
	if status != 200 || len(entries) == 0 {
		return nil, fmt.Errorf("drive: %s has nothing: %d %s", path, status, answer)
	}
	e := entries[len(entries)-1]
	t := &Resource{Place: place, Variables: map[string]string{}, Answer: e}
	w.name(t, collection, e)
	return t, nil
}

// Entries are the entries of a list's answer, whatever its envelope.
func Entries(answer []byte) (out []map[string]any) {
	var v map[string]any
	if json.Unmarshal(answer, &v) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		for _, e := range list(v[name]) {
			if o := object(e); o != nil {
				out = append(out, o)
			}
		}
	}
	return out
}

// name notes what a thing is called by the members of an object.
func (w *Resources) name(t *Resource, collection string, of map[string]any) {
	if data := object(of["data"]); data != nil {
		of = data
	}
	for _, m := range []string{"id", "slug"} {
		if s := text(of[m]); s != "" && !slices.Contains(t.Names, s) {
			t.Names = append(t.Names, s)
		}
	}
	if t.Key == "" && len(t.Names) > 0 {
		t.Key = t.Names[0]
	}
	for _, n := range t.Names {
		w.names[collection+" "+n] = t.Names
	}
}

// NamesOf are all names of what a name means.
func (w *Resources) NamesOf(collection, name string) []string {
	if all := w.names[collection+" "+name]; all != nil {
		return all
	}
	return []string{name}
}

// Variants are the values of the path variables of an operation that are no ids:
// each combination.
func (w *Resources) Variants(op *Operation) []map[string]string {
	out := []map[string]string{{}}
	for _, p := range op.Path1 {
		choice := texts(p.Schema["enum"])
		if len(choice) == 0 {
			continue
		}
		var more []map[string]string
		for _, m := range out {
			for _, c := range choice {
				one := maps.Clone(m)
				one[p.Name] = c
				more = append(more, one)
			}
		}
		out = more
	}
	return out
}

// usual are values of variables that name nothing in the organization.
var usual = map[string]string{"provider": "openai", "model": "gpt-4o-mini", "file": "openai.json", "groupBy": "model", "metadataKey": "team", "family": "configs"}

// Values finds the values of an operation's path variables; known ones are taken as
// they are.
func (w *Resources) Values(op *Operation, place Place, known map[string]string) (map[string]string, error) {
	out := map[string]string{}
	segs, at := strings.Split(op.Path, "/"), ""
	for i, seg := range segs {
		if i == 0 {
			continue
		}
		name := strings.Trim(seg, "{}")
		switch {
		case name == seg:
		case known[name] != "":
			out[name] = known[name]
		case w.Doc.created[collectionAs(at)] != nil || w.Doc.At("GET", at) != nil && usual[name] == "":
			key, err := w.keyAt(at, place, out)
			if err != nil {
				return nil, err
			}
			out[name] = key
		case usual[name] != "":
			out[name] = usual[name]
		default:
			if w.New != nil {
				out[name] = w.New(at)
			}
			if out[name] == "" {
				return nil, fmt.Errorf("drive: %s: the document does not tell what {%s} is", op.Path, name)
			}
		}
		at += "/" + seg
	}
	return out, nil
}

func collectionAs(at string) string { return at }

// keyAt returns the map key of a resource in the collection at a path, with the path's
// variables replaced by values.
func (w *Resources) keyAt(collection string, place Place, values map[string]string) (string, error) {
	if len(Variables(collection)) > 0 && w.Doc.created[collection] == nil {
		op := w.Doc.At("GET", collection)
		path, err := w.Path(op, place, values)
		if err != nil {
			return "", err
		}
		status, answer := w.Send("GET", path, nil)
		entries := Entries(answer)
		if status != 200 || len(entries) == 0 {
			return "", fmt.Errorf("drive: %s has nothing: %d %s", path, status, answer)
		}
		return text(entries[0]["id"]), nil
	}
	t, err := w.Find(collection, place)
	if err != nil {
		return "", err
	}
	for name, v := range t.Variables { // those of the thing that it is below
		if _, ok := values[name]; ok {
			values[name] = v
		}
	}
	return t.Key, nil
}

// Path returns the path of an operation with its variables replaced, and a query with the
// required parameters and the workspace.
func (w *Resources) Path(op *Operation, place Place, known map[string]string) (string, error) {
	values, err := w.Values(op, place, known)
	if err != nil {
		return "", err
	}
	segs := strings.Split(op.Path, "/")
	for i, seg := range segs {
		if v, ok := values[strings.Trim(seg, "{}")]; ok && strings.HasPrefix(seg, "{") {
			segs[i] = url.PathEscape(v)
		}
	}
	query := url.Values{}
	for _, p := range op.Query {
		switch {
		case p.Name == workspaceID && place == Workspace:
			ws, err := w.workspace()
			if err != nil {
				return "", err
			}
			query.Set(p.Name, ws)
		case p.Name == workspaceID:
		case known[p.Name] != "": // required by a link
			query.Set(p.Name, known[p.Name])
		case p.Schema["format"] == "date-time" && p.Required:
			year := "2026"
			if strings.Contains(p.Name, "max") || strings.Contains(p.Name, "end") {
				year = "2027"
			}
			query.Set(p.Name, year+"-01-01T00:00:00Z")
		case p.Required:
			query.Set(p.Name, fmt.Sprint(Sample(p.Schema, p.Name, 1)))
		}
	}
	path := strings.Join(segs, "/")
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return path, nil
}

func (w *Resources) workspace() (string, error) {
	if w.In != "" {
		return w.In, nil
	}
	for _, op := range w.Doc.Operations {
		if to := text(w.takes(op, workspaceID)[RefersTo]); to != "" {
			t, err := w.Find(to, Organisation)
			if err != nil {
				return "", err
			}
			w.In = t.Key
			return w.In, nil
		}
	}
	return "", fmt.Errorf("drive: nothing says what workspace_id refers to")
}

// Body is a new body for an operation, of its example and schema.
func (w *Resources) Body(op *Operation, place Place) (map[string]any, error) {
	w.made++
	body, _ := copyOf(op.Example).(map[string]any)
	if body == nil {
		body = object(Sample(op.Body, "", w.made))
	}
	if len(body) == 0 && w.Doc.Linked(op, "read") == nil {
		body = some(op.Body, w.made)
	}
	if err := w.fill(op.Body, body, place); err != nil {
		return nil, err
	}
	delete(body, workspaceID)
	if place == Workspace && w.takes(op, workspaceID) != nil {
		ws, err := w.workspace()
		if err != nil {
			return nil, err
		}
		body[workspaceID] = ws
	}
	return body, nil
}

// CopyBody is the body of a thing with other names, to make another one.
func (w *Resources) CopyBody(t *Resource) (map[string]any, error) {
	w.made++
	body, _ := copyOf(t.Sent).(map[string]any)
	ws := body[workspaceID]
	if err := w.fill(t.Create.Body, body, t.Place); err != nil {
		return nil, err
	}
	if ws != nil {
		body[workspaceID] = ws
	}
	return body, nil
}

// fill puts real names where a body refers to something, and fresh texts where a
// name must be its own.
func (w *Resources) fill(s Schema, body map[string]any, place Place) error {
	for name, v := range body {
		if name == workspaceID && w.In != "" && object(object(s["properties"])[name])[RefersTo] != nil {
			body[name] = w.In
			continue
		}
		if name == workspaceID {
			continue
		}
		filled, err := w.filled(object(object(s["properties"])[name]), name, v, place)
		if err != nil {
			return err
		}
		body[name] = filled
	}
	return nil
}

// own are fields that must be unique per resource.
var own = []string{"name", "slug", "email", "domain"}

func (w *Resources) filled(s Schema, name string, v any, place Place) (any, error) {
	if to := text(s[RefersTo]); to != "" {
		t, err := w.Find(to, place)
		if err != nil {
			return nil, err
		}
		return t.Key, nil
	}
	s = branch(s, v)
	switch x := v.(type) {
	case map[string]any:
		return x, w.fill(s, x, place)
	case []any:
		for i := range x {
			var err error
			if x[i], err = w.filled(object(s["items"]), name, x[i], place); err != nil {
				return nil, err
			}
		}
	case string:
		if slices.Contains(own, name) && s["enum"] == nil {
			return word(s, name, w.made), nil
		}
		if s["format"] == "date-time" {
			return far, nil
		}
	}
	return v, nil
}

package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// Members is a resource as responses show it.
type Members = map[string]any

// Item is a record with its stored form.
type Item[T any] struct {
	*resource.Record
	Form *T
}

// ComputedField is a field of responses that is computed. Where a field has the same name, it
// changes how that field is shown.
type ComputedField[T any] struct {
	Field
	// Value returns the value in responses; nil is null, and is omitted if the field is
	// Optional. Without a Value, Decorate sets the field.
	Value func(c *Call, it Item[T]) any
}

// showing is what makes a field of a record's answer.
type showing func(c *Call, it stored, body map[string]json.RawMessage) any

// stored is an Item of any type: what does not depend on the type is compiled once, and not
// again for each collection.
type stored struct {
	*resource.Record
	form any // *T
}

func (it Item[T]) stored() stored { return stored{it.Record, it.Form} }

func (sh ComputedField[T]) showing() showing {
	return func(c *Call, it stored, _ map[string]json.RawMessage) any {
		if sh.Value == nil {
			return sh.Absent
		}
		return sh.Value(c, Item[T]{it.Record, it.form.(*T)})
	}
}

// shape is how the records of a collection look in responses. Their fields and the schema of
// both come from one list.
type shape struct {
	object  string
	members []shownMember
}

type shownMember struct {
	Field
	value showing
}

// newShape lists the fields of responses: those of every record, the described fields, the
// limits, and computed ones.
func newShape(object string, where Level, slugs bool, list *List, fields, limits []Field) *shape {
	s := &shape{object: object}
	s.base(where, slugs, slices.Contains(list.Omit, "object"), fields)
	s.fields(fields)
	for _, f := range limits {
		s.put(f, nil)
	}
	return s
}

// markRead marks the fields that no response shows.
func (s *shape) markRead(fields []Field) {
	for i := range fields {
		f := &fields[i]
		f.unread = f.Secret || f.Name == resetField || !s.has(f.Name)
	}
}

// fields are the fields of bodies, as responses have them.
func (s *shape) fields(fields []Field) {
	for i := range fields {
		f := fields[i]
		switch {
		case f.Hidden || f.Trigger:
		case f.Column && f.Name != "tags":
		case f.Column:
			s.put(f, func(_ *Call, it stored, _ map[string]json.RawMessage) any { return orNull(it.Tags, len(it.Tags) == 0) })
		case f.Secret:
			f.Name, f.Optional, f.Type = "masked_"+f.Name, true, String
			f.Min, f.Max, f.Pattern, f.Enum = 0, 0, nil, nil
			s.put(f, func(_ *Call, _ stored, body map[string]json.RawMessage) any { return maskOf(body, fields[i].Name) })
		default:
			s.put(f, func(_ *Call, _ stored, body map[string]json.RawMessage) any { return f.show(body[f.member()]) })
		}
	}
}

// base is what every record has.
func (s *shape) base(where Level, slugs, notListed bool, fields []Field) {
	text := func(name string, value func(it stored) any) {
		s.put(Field{Name: name, Type: String, Required: true}, func(_ *Call, it stored, _ map[string]json.RawMessage) any { return value(it) })
	}
	text("id", func(it stored) any { return it.ID })
	text("status", func(it stored) any { return it.Status })
	text("organisation_id", func(it stored) any { return it.Scope.Org })
	if hasColumn(fields, "name") {
		text("name", func(it stored) any { return it.Name })
	}
	if slugs || hasColumn(fields, "slug") {
		text("slug", func(it stored) any { return it.Slug })
	}
	switch where {
	case InWorkspace:
		text("workspace_id", func(it stored) any { return it.Scope.Workspace })
	case InEither:
		s.put(Field{Name: "workspace_id", Type: String}, func(_ *Call, it stored, _ map[string]json.RawMessage) any {
			return orNull(it.Scope.Workspace, it.Scope.Workspace == "")
		})
	}
	for name, at := range map[string]func(it stored) any{
		"created_at":      func(it stored) any { return FormatTime(it.Created) },
		"last_updated_at": func(it stored) any { return FormatTime(it.Updated) },
	} {
		s.put(Field{Name: name, Type: Timestamp}, func(_ *Call, it stored, _ map[string]json.RawMessage) any { return at(it) })
	}
	s.put(Field{Name: "object", Type: String, Enum: []string{s.object}, Required: true, Single: notListed},
		func(*Call, stored, map[string]json.RawMessage) any { return s.object })
}

func hasColumn(fields []Field, name string) bool {
	return slices.ContainsFunc(fields, func(f Field) bool { return f.Column && f.Name == name })
}

func orNull[V any](v V, null bool) any {
	if null {
		return nil
	}
	return v
}

// put adds a field, or replaces the one of its name.
func (s *shape) put(f Field, value showing) {
	m := shownMember{f, value}
	if n := slices.IndexFunc(s.members, func(o shownMember) bool { return o.Name == f.Name }); n >= 0 {
		s.members[n] = m
		return
	}
	s.members = append(s.members, m)
}

// maskedMember is the field of a stored form that holds the masked forms of
// its secrets: map[string]string, by field.
const maskedMember = "masked"

func maskOf(body map[string]json.RawMessage, name string) any {
	var masks map[string]string
	if raw, ok := body[maskedMember]; ok {
		_ = json.Unmarshal(raw, &masks) // a string map, written by setSecret
	}
	mask, ok := masks[name]
	return orNull(mask, !ok)
}

// show is a stored value as responses have it.
func (f *Field) show(raw json.RawMessage) any {
	if len(raw) == 0 || string(raw) == "null" {
		if !f.AllFields {
			return f.Absent
		}
		raw = json.RawMessage("{}")
	}
	switch {
	case f.Type == Timestamp:
		var s string
		if json.Unmarshal(raw, &s) == nil {
			if t, err := ParseTime(s); err == nil {
				return FormatTime(t)
			}
		}
	case f.Type == Object && len(f.Fields) > 0:
		return f.showMembers(raw)
	}
	return raw
}

func (f *Field) showMembers(raw json.RawMessage) any {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return raw
	}
	out := make(Members, len(f.Fields))
	if f.Open {
		for name, v := range members {
			out[name] = v
		}
	}
	for i := range f.Fields {
		m := &f.Fields[i]
		v, there := members[m.Name]
		switch {
		case m.Hidden:
			delete(out, m.Name)
		case there && (!m.Optional || string(v) != "null") || f.AllFields && !m.Optional:
			out[m.Name] = m.show(v)
		}
	}
	return out
}

// render is a record as reads of one show it; list omits what lists do.
func (s *shape) render(c *Call, it stored, list bool) (Members, error) {
	var body map[string]json.RawMessage
	if len(it.Body) > 0 && it.Body[0] == '{' {
		if err := json.Unmarshal(it.Body, &body); err != nil {
			return nil, fmt.Errorf("admin: stored %s %s: %w", it.Kind, it.ID, err)
		}
	}
	o := make(Members, len(s.members))
	for i := range s.members {
		m := &s.members[i]
		if list && m.Single {
			continue
		}
		var v any
		if m.value != nil {
			v = m.value(c, it, body)
		} else {
			v = m.Absent
		}
		if v != nil || !m.Optional {
			o[m.Name] = v
		}
	}
	return o, nil
}

// schema describes what render gives.
func (s *shape) schema(list bool) Schema {
	props, required := map[string]Schema{}, []string{}
	for i := range s.members {
		m := &s.members[i]
		if list && m.Single {
			continue
		}
		props[m.Name] = m.shownSchema()
		if !m.Optional {
			required = append(required, m.Name)
		}
	}
	slices.Sort(required)
	return Schema{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

// pick is the schema of a response that has some of the fields only.
func (s *shape) pick(names []string) Schema {
	whole := s.schema(false)
	props := map[string]Schema{}
	for _, name := range names {
		props[name] = whole["properties"].(map[string]Schema)[name]
	}
	required := slices.DeleteFunc(slices.Sorted(maps.Keys(props)), func(name string) bool { return !slices.Contains(whole["required"].([]string), name) })
	return Schema{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

func (s *shape) has(name string) bool {
	return slices.ContainsFunc(s.members, func(m shownMember) bool { return m.Name == name })
}

// shownSchema describes a field in responses: null unless it always has a value.
func (f *Field) shownSchema() Schema {
	out := f.readSchema()
	if f.Required || f.Optional || f.Absent != nil || f.AllFields {
		return out
	}
	return nullable(out)
}

// readSchema is the schema of a value in responses. It has no limits, since those apply to
// writes: a value stored under a wider limit is still shown.
func (f *Field) readSchema() Schema {
	s := Schema{}
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	if form := f.form(); form != nil {
		maps.Copy(s, form)
		return s
	}
	switch f.Type {
	case String:
		s["type"] = "string"
		if len(f.Enum) > 0 {
			s["enum"] = f.Enum
		}
	case Timestamp:
		s["type"], s["format"] = "string", "date-time"
	case Integer, Number, Boolean:
		s["type"] = map[Type]string{Integer: "integer", Number: "number", Boolean: "boolean"}[f.Type]
	case Array:
		s["type"] = "array"
		if f.Of != nil {
			s["items"] = f.Of.readSchema()
		}
	case Map:
		s["type"] = "object"
		if f.Of != nil {
			s["additionalProperties"] = f.Of.readSchema()
		}
	case Object:
		f.readMembers(s)
	}
	return s
}

func (f *Field) readMembers(s Schema) {
	props, required := map[string]Schema{}, []string{}
	for i := range f.Fields {
		m := &f.Fields[i]
		if m.Hidden {
			continue
		}
		props[m.Name] = m.shownSchema()
		if (f.AllFields || m.Required) && !m.Optional {
			required = append(required, m.Name)
		}
	}
	slices.Sort(required)
	s["type"], s["properties"], s["additionalProperties"] = "object", props, f.Open
	if len(required) > 0 {
		s["required"] = required
	}
}

// title is an object's word in prose: mcp-server is mcp server.
func title(object string) string {
	return strings.NewReplacer("-", " ", "_", " ").Replace(object)
}

// maxOpened bounds the records of an openCache.
const maxOpened = 20_000

// openCache caches whether workspaces see a record of the organization, so that a list need not
// read every record to omit some. A list row contains the revision of its record; an entry of
// an older revision is not used.
type openCache[T any] struct {
	mu    sync.Mutex
	items map[resource.Ref]Item[T]
}

func opening(sc store.Scope, id string) resource.Ref { return resource.Ref{Scope: sc, ID: id} }

func (o *openCache[T]) get(sc store.Scope, row *resource.Row) (Item[T], bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	it, ok := o.items[opening(sc, row.ID)]
	return it, ok && row.Rev > 0 && it.Rev >= row.Rev
}

func (o *openCache[T]) put(it Item[T]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.items) >= maxOpened || o.items == nil {
		o.items = make(map[resource.Ref]Item[T])
	}
	rec := *it.Record
	rec.Body, rec.Sealed = nil, nil
	o.items[opening(rec.Scope, rec.ID)] = Item[T]{&rec, it.Form}
}

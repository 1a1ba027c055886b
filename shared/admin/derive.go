package admin

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"gateway/shared/fault/bound"
)

// A description names the fields of a stored type by their JSON names. What it leaves open
// (type, bounds, fields below, their docs) is read from the type when a process starts.
// Where the two do not fit, that is a mistake of the program, and the start fails.

var (
	timeType      = reflect.TypeFor[time.Time]()
	rawType       = reflect.TypeFor[json.RawMessage]()
	unmarshalType = reflect.TypeFor[json.Unmarshaler]()
)

// derive fills what the fields of a body leave open from the stored type t.
func derive(fields []Field, t reflect.Type) ([]Field, error) {
	out := slices.Clone(fields)
	var members []bound.Member
	if opaque(t) {
		t = nil // the type reads its JSON itself
	} else {
		var err error
		if members, err = bound.Members(t); err != nil {
			return nil, err
		}
	}
	for i := range out {
		f := &out[i]
		if f.Column || f.Secret || f.Trigger {
			if f.Type == 0 && f.Trigger {
				return nil, fmt.Errorf("the field %s is not stored and has no type", f.Name)
			}
			if f.Type == 0 {
				f.Type = String
			}
			continue
		}
		if t == nil {
			continue
		}
		if err := bindMember(f, members, t); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// opaque types say nothing about the fields of their JSON.
func opaque(t reflect.Type) bool {
	return t == rawType || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(unmarshalType)
}

func bindMember(f *Field, members []bound.Member, of reflect.Type) error {
	n := slices.IndexFunc(members, func(m bound.Member) bool { return m.Name == f.member() })
	if n < 0 {
		return fmt.Errorf("the field %s is no member of %s", f.Name, of)
	}
	if f.Doc == "" {
		f.Doc = members[n].Doc
	}
	return fill(f, members[n].Type, members[n].Bound)
}

// fill sets what a field leaves open from the type of its field.
func fill(f *Field, t reflect.Type, b bound.Bound) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if f.Min == 0 && f.Max == 0 {
		f.Min, f.Max = b.Min, b.Max
	}
	if len(f.Enum) == 0 {
		f.Enum = b.Enum
	}
	kind := typeOf(t)
	f.instant = t == timeType
	if f.Type == 0 {
		f.Type = kind
	}
	switch {
	case f.Type != kind:
		return nil // the description differs on purpose: its Check or Convert brings the two together
	case kind == Array || kind == Map:
		if f.Of == nil {
			f.Of = new(Field)
		} else {
			one := *f.Of
			f.Of = &one
		}
		each := bound.Bound{}
		if b.Each != nil {
			each = *b.Each
		}
		return fill(f.Of, t.Elem(), each)
	case kind == Object:
		return fillMembers(f, t)
	}
	return nil
}

// fillMembers fills the fields of an object: those that the description names,
// else all of the type.
func fillMembers(f *Field, t reflect.Type) error {
	members, err := bound.Members(t)
	if err != nil {
		return err
	}
	if f.Fields == nil {
		for _, m := range members {
			f.Fields = append(f.Fields, Field{Name: m.Name})
		}
	} else {
		f.Fields = slices.Clone(f.Fields)
	}
	for i := range f.Fields {
		if f.Fields[i].ReadOnly {
			continue
		}
		if err := bindMember(&f.Fields[i], members, t); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return nil
}

func typeOf(t reflect.Type) Type {
	switch {
	case t == timeType:
		return Timestamp
	case t == rawType || reflect.PointerTo(t).Implements(unmarshalType):
		return Any
	}
	switch t.Kind() {
	case reflect.String:
		return String
	case reflect.Bool:
		return Boolean
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Integer
	case reflect.Float32, reflect.Float64:
		return Number
	case reflect.Slice, reflect.Array:
		return Array
	case reflect.Map:
		return Map
	case reflect.Struct:
		return Object
	}
	return Any
}

// member is the name of the field in the stored form.
func (f *Field) member() string {
	if f.In != "" {
		return f.In
	}
	return f.Name
}

// stored is the JSON of a value as the type reads it: times have the one spelling that it
// knows.
func (f *Field) stored(raw json.RawMessage) json.RawMessage {
	switch {
	case string(raw) == "null":
	case f.instant && f.Type == Timestamp:
		var s string
		if json.Unmarshal(raw, &s) == nil {
			if t, err := ParseTime(s); err == nil {
				raw, _ = json.Marshal(t) // a time of our years has JSON
			}
		}
	case f.Type == Object && slices.ContainsFunc(f.Fields, func(m Field) bool { return m.instant || len(m.Fields) > 0 }):
		raw = f.mapMembers(raw, func(m *Field, v json.RawMessage) json.RawMessage { return m.stored(v) })
	}
	return raw
}

// mapMembers changes the fields of an object that the description names.
func (f *Field) mapMembers(raw json.RawMessage, change func(*Field, json.RawMessage) json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return raw
	}
	for i := range f.Fields {
		if v, ok := members[f.Fields[i].Name]; ok {
			members[f.Fields[i].Name] = change(&f.Fields[i], v)
		}
	}
	out, err := json.Marshal(members)
	if err != nil {
		return raw
	}
	return out
}

// FieldOf is a field that is not stored as it is sent; its form and its bounds are those of
// a type.
func FieldOf[V any](name, doc string, most int64) Field {
	f := Field{Name: name, Doc: doc, Max: most, Trigger: true}
	if err := fill(&f, reflect.TypeFor[V](), bound.Bound{}); err != nil {
		return Field{Name: name, Trigger: true} // has no type, which stops the start
	}
	requireMembers(&f)
	return f
}

// requireMembers makes fields required that have to have a value.
func requireMembers(f *Field) {
	if f.Of != nil {
		requireMembers(f.Of)
	}
	for i := range f.Fields {
		m := &f.Fields[i]
		m.Required = m.Type == String && m.Min > 0
	}
}

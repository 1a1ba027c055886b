package admin

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	"gateway/shared/fault/bound"
)

// Instant is a time as answers write it, for answers that are Go values.
type Instant time.Time

// MarshalJSON gives RFC 3339, UTC, milliseconds; null for the zero time.
func (t Instant) MarshalJSON() ([]byte, error) { return json.Marshal(FormatTime(time.Time(t))) }

var (
	instantType = reflect.TypeFor[Instant]()
	numberType  = reflect.TypeFor[json.Number]()
)

// SchemaOf describes answers that are Go values, so that they are not written
// twice: an object has the members of its struct and no other; those with
// omitempty may be absent, pointers may be null. The tags doc and enum count.
func SchemaOf[T any]() Schema { return schemaOf(reflect.TypeFor[T](), "", bound.Bound{}) }

// SchemaOfType is SchemaOf for a type that is not known when this is compiled.
func SchemaOfType(t reflect.Type) Schema { return schemaOf(t, "", bound.Bound{}) }

// MergeSchemas describes objects that have the members of all of several schemas of
// SchemaOf.
func MergeSchemas(objects ...Schema) Schema {
	props, required := map[string]Schema{}, []string{}
	for _, s := range objects {
		maps.Copy(props, s["properties"].(map[string]Schema))
		required = append(required, s["required"].([]string)...)
	}
	slices.Sort(required)
	return Schema{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

func schemaOf(t reflect.Type, doc string, b bound.Bound) Schema {
	null := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	f := Field{Doc: doc, Type: typeOf(t), Enum: b.Enum}
	switch t {
	case instantType:
		f.Type = Timestamp
	case numberType:
		f.Type = Number
	}
	var s Schema
	switch f.Type {
	case Object:
		s = structSchema(t)
		if doc != "" {
			s["description"] = doc
		}
	case Array, Map:
		each := bound.Bound{}
		if b.Each != nil {
			each = *b.Each
		}
		member := map[Type]string{Array: "items", Map: "additionalProperties"}[f.Type]
		s = f.readSchema()
		s[member] = schemaOf(t.Elem(), "", each)
	default:
		s = f.readSchema()
	}
	if null {
		return nullable(s)
	}
	return s
}

func structSchema(t reflect.Type) Schema {
	members, err := bound.Members(t)
	if err != nil {
		panic("admin: " + err.Error()) // a mistake of the type, which its first test meets
	}
	props, required := map[string]Schema{}, []string{}
	for _, m := range members {
		props[m.Name] = schemaOf(m.Type, m.Doc, m.Bound)
		if !m.Optional() {
			required = append(required, m.Name)
		}
	}
	slices.Sort(required)
	return Schema{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

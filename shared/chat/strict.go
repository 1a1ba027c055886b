package chat

import (
	"strings"

	"gateway/shared/wire"
)

// HoldsStrict reports whether hosts with strict mode accept a JSON schema: each object in it
// must require all of its properties and allow no others.
func HoldsStrict(schema []byte) bool {
	if wire.KindOf(schema) != wire.KindObject {
		return false
	}
	d := wire.NewDecoder(schema)
	return holdsStrict(d) && d.Err() == nil
}

// holdsStrict checks the schema at d.
func holdsStrict(d *wire.Decoder) bool {
	ok := true
	object, closed := false, false
	var properties, required []string
	for key := range d.Object {
		switch string(key) {
		case "type":
			switch d.Kind() {
			case wire.KindString:
				object = d.Str() == "object" || object
			case wire.KindArray:
				for range d.Array {
					object = d.Kind() == wire.KindString && string(d.Bytes()) == "object" || object
				}
			}
		case "properties":
			object = true
			if d.Kind() != wire.KindObject {
				return false
			}
			for name := range d.Object {
				properties = append(properties, string(name))
				ok = inner(d) && ok
			}
		case "required":
			if d.Kind() != wire.KindArray {
				return false
			}
			for range d.Array {
				required = append(required, d.Str())
			}
		case "additionalProperties":
			closed = d.Kind() == wire.KindBool && !d.Bool()
		case "items":
			ok = inner(d) && ok
		case "anyOf", "oneOf", "allOf", "prefixItems":
			if d.Kind() != wire.KindArray {
				return false
			}
			for range d.Array {
				ok = inner(d) && ok
			}
		case "$defs", "definitions":
			if d.Kind() != wire.KindObject {
				return false
			}
			for range d.Object {
				ok = inner(d) && ok
			}
		}
	}
	if !object {
		return ok
	}
	return ok && closed && all(properties, required)
}

// inner checks a nested schema; true and false are schemas too.
func inner(d *wire.Decoder) bool { return d.Kind() == wire.KindObject && holdsStrict(d) }

func all(properties, required []string) bool {
	known := make(map[string]bool, len(required))
	for _, name := range required {
		known[name] = true
	}
	for _, name := range properties {
		if !known[name] {
			return false
		}
	}
	return true
}

// WritesStrict reports whether a tool's strict is written for a host of OpenAI's format.
// Clients of other formats may use schemas with optional properties in strict mode, which such
// a host rejects with 400.
func (r *Request) WritesStrict(t *Tool) bool {
	return t.Strict.Set && (!t.Strict.Value || strings.HasPrefix(r.Dialect, "openai.") || HoldsStrict(t.Schema))
}

// rootKeys describe the values at the root of a schema.
var rootKeys = wire.NewKeySet("type", "properties", "$ref", "anyOf", "oneOf", "allOf")

// ObjectSchema returns the schema of a tool's arguments as hosts of OpenAI's format require it:
// an object with properties, even if empty. It returns other schemas unchanged.
func ObjectSchema(schema []byte) []byte {
	var w wire.Walk
	if schema == nil || rootKeys.Walk(schema, &w) != nil {
		return schema
	}
	typ, properties := w.Spans[0], w.Spans[1]
	for _, s := range w.Spans[2:] {
		if !s.Absent() {
			return schema
		}
	}
	if !typ.Absent() && string(typ.Of(schema)) != `"object"` {
		return schema
	}
	if properties.Absent() {
		schema = wire.Splice(nil, schema, wire.InsertKey(&w, "properties", []byte("{}")))
	}
	if typ.Absent() {
		if rootKeys.Walk(schema, &w) != nil {
			return schema
		}
		schema = wire.Splice(nil, schema, wire.InsertKey(&w, "type", []byte(`"object"`)))
	}
	return schema
}

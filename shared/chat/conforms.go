package chat

import (
	"bytes"

	"gateway/shared/wire"
)

// Conforms reports whether a JSON value matches what a JSON schema says by type, enum, const,
// properties, required, additionalProperties: false and items. Other keywords are not read.
func Conforms(schema, value []byte) bool { return conforms(schema, value, 0) }

var schemaKeys = wire.NewKeySet("type", "enum", "const", "properties", "required", "additionalProperties", "items")

const (
	keyType = iota
	keyEnum
	keyConst
	keyProperties
	keyRequired
	keyAdditional
	keyItems
)

func conforms(schema, value []byte, depth int) bool {
	var w wire.Walk
	if depth > 64 || wire.KindOf(schema) != wire.KindObject || schemaKeys.Walk(schema, &w) != nil {
		return string(schema) != "false"
	}
	of := func(key int) []byte {
		if s := w.Spans[key]; !s.Absent() {
			return s.Of(schema)
		}
		return nil
	}
	if t := of(keyType); t != nil && !isOfType(t, value) {
		return false
	}
	if c := of(keyConst); c != nil && !bytes.Equal(c, value) {
		return false
	}
	if enum := of(keyEnum); wire.KindOf(enum) == wire.KindArray {
		listed := false
		for d := range elements(enum) {
			listed = listed || bytes.Equal(d, value)
		}
		if !listed {
			return false
		}
	}
	switch wire.KindOf(value) {
	case wire.KindArray:
		items := of(keyItems)
		for v := range elements(value) {
			if items != nil && !conforms(items, v, depth+1) {
				return false
			}
		}
	case wire.KindObject:
		return objectConforms(of(keyProperties), of(keyRequired), string(of(keyAdditional)) == "false", value, depth)
	}
	return true
}

// objectConforms checks the members of an object.
func objectConforms(properties, required []byte, closed bool, value []byte, depth int) bool {
	schemas := map[string][]byte{}
	if wire.KindOf(properties) == wire.KindObject {
		d := wire.NewDecoder(properties)
		for key := range d.Object {
			name := string(key)
			schemas[name] = d.Raw()
		}
	}
	has := map[string]bool{}
	d := wire.NewDecoder(value)
	for key := range d.Object {
		name := string(key)
		has[name] = true
		schema, known := schemas[name]
		if !known && closed || known && !conforms(schema, bytes.TrimSpace(d.Raw()), depth+1) {
			return false
		}
	}
	if wire.KindOf(required) == wire.KindArray {
		for name := range elements(required) {
			if !has[wire.NewDecoder(name).Str()] {
				return false
			}
		}
	}
	return d.Err() == nil
}

// isOfType reports whether value is of a type, or of one of a list of types.
func isOfType(types, value []byte) bool {
	if wire.KindOf(types) == wire.KindArray {
		for t := range elements(types) {
			if isOfType(t, value) {
				return true
			}
		}
		return false
	}
	switch kind := wire.KindOf(value); string(types) {
	case `"object"`:
		return kind == wire.KindObject
	case `"array"`:
		return kind == wire.KindArray
	case `"string"`:
		return kind == wire.KindString
	case `"boolean"`:
		return kind == wire.KindBool
	case `"number"`, `"integer"`:
		return kind == wire.KindNumber
	case `"null"`:
		return wire.IsNull(value)
	}
	return true
}

// elements yields the values of a JSON list.
func elements(list []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		d := wire.NewDecoder(list)
		for range d.Array {
			if !yield(bytes.TrimSpace(d.Raw())) {
				return
			}
		}
	}
}

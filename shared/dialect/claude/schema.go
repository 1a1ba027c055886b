package claude

import (
	"gateway/shared/chat"
	"gateway/shared/wire"
)

// refused are the keywords of a JSON schema that Anthropic rejects with 400 in
// structured outputs and in tools with strict: true. Its own SDK moves them into the
// description, so that the model reads them all the same.
// (docs.claude.com/en/docs/build-with-claude/structured-outputs, transformJSONSchema of
// @anthropic-ai/sdk 1.14.0, 2026-11-28)
var refused = map[string]bool{
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true,
	"minLength": true, "maxLength": true, "maxItems": true, "uniqueItems": true,
	"contains": true, "minContains": true, "maxContains": true,
	"minProperties": true, "maxProperties": true, "patternProperties": true, "propertyNames": true,
	"unevaluatedProperties": true, "unevaluatedItems": true, "dependentRequired": true, "dependentSchemas": true,
	"not": true, "if": true, "then": true, "else": true, "prefixItems": true,
}

// formats are the values of format that it takes.
var formats = map[string]bool{
	`"date-time"`: true, `"time"`: true, `"date"`: true, `"duration"`: true, `"email"`: true,
	`"hostname"`: true, `"uri"`: true, `"ipv4"`: true, `"ipv6"`: true, `"uuid"`: true,
}

// maxDepth bounds how deep schemas are read.
const maxDepth = 64

// AppendSchema appends a schema that the provider must enforce for a response or a tool's
// arguments. Rejected keywords become a part of the description, and objects are closed,
// as required. Restrictions are reported below path. A schema without changes is appended
// unchanged.
func AppendSchema(dst, schema []byte, path string, loss *chat.Loss) []byte {
	before := len(dst)
	n := narrower{b: dst, loss: loss}
	if n.schema(schema, path, 0); !n.changed || n.failed {
		return append(n.b[:before], schema...)
	}
	return n.b
}

// narrower writes a schema without rejected keywords.
type narrower struct {
	b               []byte
	loss            *chat.Loss
	changed, failed bool
}

func (n *narrower) key(open int, name []byte) {
	if len(n.b) > open {
		n.b = append(n.b, ',')
	}
	n.b = append(wire.AppendJSONString(n.b, name), ':')
}

// schema writes one schema; true and false are schemas too.
func (n *narrower) schema(raw []byte, path string, depth int) {
	if wire.KindOf(raw) != wire.KindObject || depth > maxDepth {
		n.b = append(n.b, raw...)
		return
	}
	var description, moved []byte
	object, closed := false, false
	n.b = append(n.b, '{')
	open := len(n.b)
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		name := string(key)
		value := d.Raw()
		at := path + "." + name
		switch {
		case name == "description" && wire.KindOf(value) == wire.KindString:
			description = value
			continue
		case n.rejects(name, value):
			if len(moved) > 0 {
				moved = append(moved, ", "...)
			}
			moved = append(append(append(moved, name...), ": "...), value...)
			n.report(at, "moved into the description")
			continue
		case name == "type":
			object = object || string(value) == `"object"`
		case name == "additionalProperties":
			if closed = true; string(value) != "false" {
				n.report(at, "this provider accepts only false")
				value = []byte("false")
			}
		case name == "oneOf":
			name = "anyOf"
			n.report(at, "sent as anyOf")
		}
		n.key(open, []byte(name))
		switch name {
		case "properties", "$defs", "definitions":
			object = object || name == "properties"
			n.each(value, at, depth)
		case "anyOf", "allOf":
			n.list(value, at, depth)
		case "items":
			n.schema(value, at, depth+1)
		default:
			n.b = append(n.b, value...)
		}
	}
	n.failed = n.failed || d.Err() != nil
	if object && !closed { // what it gives then matches the schema all the same
		n.changed = true
		n.key(open, []byte("additionalProperties"))
		n.b = append(n.b, "false"...)
	}
	if moved != nil {
		text := "{" + string(moved) + "}"
		if before := wire.NewDecoder(description).Str(); before != "" {
			text = before + "\n\n" + text
		}
		description = wire.AppendJSONString(nil, text)
	}
	if description != nil {
		n.key(open, []byte("description"))
		n.b = append(n.b, description...)
	}
	n.b = append(n.b, '}')
}

func (n *narrower) rejects(name string, value []byte) bool {
	switch name {
	case "minItems":
		return string(value) != "0" && string(value) != "1"
	case "format":
		return !formats[string(value)]
	}
	return refused[name]
}

func (n *narrower) report(path, reason string) {
	n.changed = true
	n.loss.Add(path, reason)
}

// each writes schemas by their names.
func (n *narrower) each(raw []byte, path string, depth int) {
	if wire.KindOf(raw) != wire.KindObject {
		n.b = append(n.b, raw...)
		return
	}
	n.b = append(n.b, '{')
	open := len(n.b)
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		at := path + "." + string(key)
		n.key(open, key)
		n.schema(d.Raw(), at, depth+1)
	}
	n.b = append(n.b, '}')
}

// list writes a list of schemas.
func (n *narrower) list(raw []byte, path string, depth int) {
	if wire.KindOf(raw) != wire.KindArray {
		n.b = append(n.b, raw...)
		return
	}
	n.b = append(n.b, '[')
	open := len(n.b)
	d := wire.NewDecoder(raw)
	for range d.Array {
		if len(n.b) > open {
			n.b = append(n.b, ',')
		}
		n.schema(d.Raw(), path, depth+1)
	}
	n.b = append(n.b, ']')
}

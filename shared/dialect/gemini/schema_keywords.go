package gemini

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// kinds writes a schema of several types as alternatives.
func (s *subsetter) kinds(ks []keyword, kinds []string, path string, nullable bool) {
	s.e.b = append(s.e.b, `{"anyOf":[`...)
	for _, k := range kinds {
		item(s.e)
		s.node(append([]keyword{{"type", wire.AppendJSONString(nil, k)}}, without(ks, "type")...), path, nullable)
	}
	s.e.b = append(s.e.b, `]}`...)
}

// keywords writes what the subset has beside the type.
func (s *subsetter) keywords(ks []keyword, kind, path string, nullable *bool) {
	e := s.e
	for _, k := range ks {
		at := path + "." + k.name
		switch k.name {
		case "type", "$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "readOnly", "writeOnly", "deprecated", "examples":
		case "title", "description":
			if wire.KindOf(k.raw) == wire.KindString {
				encodeRaw(e, k.name, k.raw)
			}
		case "nullable":
			*nullable = *nullable || string(k.raw) == "true"
		case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum":
			if fits(k.name, kind) && wire.KindOf(k.raw) == wire.KindNumber {
				encodeRaw(e, k.name, k.raw)
			}
		case "pattern":
			encodeRaw(e, k.name, k.raw)
		case "default", "example", "propertyOrdering":
			encodeRaw(e, k.name, k.raw)
		case "format":
			if f := string(k.raw); kind == "string" && f != `"date-time"` && f != `"enum"` {
				s.narrowed(at, notInSubset)
			} else {
				encodeRaw(e, k.name, k.raw)
			}
		case "enum", "const":
			s.enum(k, kind, at, nullable)
		case "properties":
			s.properties(k.raw, at)
		case "required":
			s.required(k.raw, find(ks, "properties"))
		case "items":
			if v := k.raw; wire.KindOf(v) == wire.KindObject {
				encodeKey(e, "items")
				s.node(s.members(v), at, false)
			}
		case "additionalProperties":
			if string(k.raw) != "true" {
				s.narrowed(at, notInSubset)
			}
		default:
			s.narrowed(at, notInSubset)
		}
	}
	if items := find(ks, "items"); kind == "array" && wire.KindOf(items) != wire.KindObject {
		s.narrowed(path+".items", "a list needs the type of its items: text")
		encodeRaw(e, "items", []byte(`{"type":"string"}`))
	}
}

// fits reports whether a bound belongs to a type.
func fits(bound, kind string) bool {
	switch bound {
	case "minItems", "maxItems":
		return kind == "array"
	case "minLength", "maxLength":
		return kind == "string"
	case "minProperties", "maxProperties":
		return kind == "object"
	}
	return kind == "number" || kind == "integer"
}

// enum writes a list of texts; other values have no place.
func (s *subsetter) enum(k keyword, kind, at string, nullable *bool) {
	values := [][]byte{k.raw}
	if k.name == "enum" {
		values = elements(k.raw)
	}
	var texts [][]byte
	for _, v := range values {
		switch {
		case wire.IsNull(v):
			*nullable = true
		case wire.KindOf(v) == wire.KindString && kind == "string":
			texts = append(texts, v)
		default:
			s.narrowed(at, "lists can only contain texts")
			return
		}
	}
	if len(texts) > 0 {
		encodeRaw(s.e, "enum", list(texts))
	}
}

func (s *subsetter) properties(raw []byte, path string) {
	if wire.KindOf(raw) != wire.KindObject {
		return
	}
	encodeKey(s.e, "properties")
	s.e.b = append(s.e.b, '{')
	for _, p := range s.members(raw) {
		item(s.e)
		s.e.b = append(wire.AppendJSONString(s.e.b, p.name), ':')
		at := path + "." + p.name
		if wire.KindOf(p.raw) != wire.KindObject {
			s.narrowed(at, notInSubset)
		}
		s.node(s.members(p.raw), at, false)
	}
	s.e.b = append(s.e.b, '}')
}

// required writes the names that properties has; the provider rejects others.
func (s *subsetter) required(raw, properties []byte) {
	known := s.members(properties)
	var names [][]byte
	for _, v := range elements(raw) {
		if wire.KindOf(v) == wire.KindString && find(known, wire.NewDecoder(v).Str()) != nil {
			names = append(names, v)
		}
	}
	if len(names) > 0 {
		encodeRaw(s.e, "required", list(names))
	}
}

var keys = wire.NewKeySet("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings")

var kinds = [...]wire.Kind{wire.KindArray, wire.KindObject, wire.KindArray, wire.KindObject, wire.KindObject, wire.KindArray}

// check tests that a body is a request: the fields that count have their type.
func check(body []byte, c *chat.Checked) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i, key := range keys.Keys() {
		span := c.Walk.Spans[i]
		if !span.Present(body) {
			if key == "contents" {
				return fault.Invalid(key, "%s is required", key)
			}
			continue
		}
		if got := wire.KindOf(span.Of(body)); got != kinds[i] {
			return fault.Invalid(key, "%s must be %s, not %s", key, kinds[i], got)
		}
	}
	return nil
}

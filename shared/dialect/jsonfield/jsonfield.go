// Package jsonfield reads and writes the JSON fields that several client formats have in
// common, so that the dialects accept and reject the same.
package jsonfield

import (
	"bytes"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Missing sets the fault for an object without the field name; whole is at the object. If
// several names are missing ("id and name"), the fault is about the object. An earlier
// error takes precedence.
func Missing(d, whole *wire.Decoder, name string) {
	whole.Kind() // moves to the object
	if at := whole.Path(); d.Err() == nil {
		field := at + "." + name
		if strings.Contains(name, " ") {
			field = at
		}
		d.FailWith(fault.Invalid(field, "%s must have %s", at, name))
	}
}

// CacheMarker reads {type:"ephemeral",ttl:"5m"|"1h"}. Anything but an object is no marker.
func CacheMarker(d *wire.Decoder) chat.Cache {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return chat.NoCache
	}
	c := chat.CacheShort
	for key := range d.Object {
		if string(key) == "ttl" && d.Kind() == wire.KindString {
			switch d.Str() {
			case "1h":
				c = chat.Cache1h
			case "5m":
				c = chat.Cache5m
			default:
				d.Fail("must be 5m or 1h")
			}
		}
	}
	return c
}

// Thinking reads {type:"enabled"|"adaptive"|"disabled",budget_tokens,display} into t.
// Without a type, t.Thinking stays as it was; an unknown type counts as some way of
// thinking.
func Thinking(d *wire.Decoder, t *chat.Reasoning) {
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			switch way := d.Str(); way {
			case "enabled":
				t.Thinking = chat.ThinkingBudget
			case "adaptive":
				t.Thinking = chat.ThinkingAdaptive
			case "disabled":
				t.Thinking = chat.ThinkingOff
			default:
				t.Thinking, t.UnknownType = chat.ThinkingAdaptive, way
			}
		case "budget_tokens":
			t.Budget = chat.Some(d.Int())
		case "display":
			t.Display = d.Str()
		}
	}
}

// OfFunction reads the field key of a function's description into t: name, description,
// strict, cache_control, and the schema of the arguments, which is the field named
// schema. Other fields are stored in t.Extra.
func OfFunction(d *wire.Decoder, key []byte, schema string, t *chat.Tool) {
	switch string(key) {
	case "name":
		t.Name = d.Str()
	case "description":
		t.Description = chat.Some(d.Str())
	case schema:
		t.Schema = Object(d)
	case "strict":
		t.Strict = chat.Some(d.Bool())
	case "cache_control":
		t.Cache = CacheMarker(d)
	default:
		AddCopy(d, string(key), &t.Extra)
	}
}

// Object returns a copy of the bytes of an object; anything else is a mistake.
func Object(d *wire.Decoder) []byte {
	if d.Kind() != wire.KindObject {
		d.Fail("must be an object")
	}
	return bytes.Clone(d.Raw())
}

// AddCopy adds a copy of the value to fields under name.
func AddCopy(d *wire.Decoder, name string, fields *[]chat.Field) {
	*fields = append(*fields, chat.Field{Name: name, Raw: bytes.Clone(d.Raw())})
}

// AppendOrNull writes s as a JSON string, or null when it is empty.
func AppendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return wire.AppendJSONString(dst, s)
}

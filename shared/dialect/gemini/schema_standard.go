package gemini

import (
	"strings"

	"gateway/shared/wire"
)

// standard converts a schema in Gemini's format to a JSON Schema. In Gemini's format
// types are in capitals and limits may be texts. raw is valid JSON. Parts that are JSON
// Schema already remain.
func standard(dst, raw []byte) []byte {
	if wire.KindOf(raw) != wire.KindObject {
		return append(dst, raw...)
	}
	nullable := false
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		if v := d.Raw(); string(key) == "nullable" {
			nullable = string(v) == "true"
		}
	}
	dst = append(dst, '{')
	d = wire.NewDecoder(raw)
	for key := range d.Object {
		name, v := string(key), d.Raw()
		if name == "nullable" || name == "propertyOrdering" || name == "format" && string(v) == `"enum"` {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendJSONString(dst, name), ':')
		dst = standardMember(dst, name, v, nullable)
	}
	return append(dst, '}')
}

func standardMember(dst []byte, name string, v []byte, nullable bool) []byte {
	kind := wire.KindOf(v)
	switch {
	case name == "type" && kind == wire.KindString:
		word := strings.ToLower(string(v)) // of letters
		if nullable {
			return append(append(append(dst, '['), word...), `,"null"]`...)
		}
		return append(dst, word...)
	case name == "items":
		return standard(dst, v)
	case name == "properties" && kind == wire.KindObject:
		dst = append(dst, '{')
		d := wire.NewDecoder(v)
		for key := range d.Object {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(wire.AppendJSONString(dst, string(key)), ':')
			dst = standard(dst, d.Raw())
		}
		return append(dst, '}')
	case name == "anyOf" && kind == wire.KindArray:
		dst = append(dst, '[')
		d := wire.NewDecoder(v)
		for i := range d.Array {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = standard(dst, d.Raw())
		}
		return append(dst, ']')
	case textBounds[name] && kind == wire.KindString:
		if s, err := wire.ScanString(v, name); err == nil && isCount(s) {
			return append(dst, s...)
		}
	}
	return append(dst, v...)
}

// textBounds are complete numbers, which Gemini's clients may write as texts.
var textBounds = map[string]bool{"minItems": true, "maxItems": true, "minLength": true, "maxLength": true, "minProperties": true, "maxProperties": true}

func isCount(s string) bool {
	return s != "" && len(s) < 19 && strings.Trim(s, "0123456789") == "" && (s == "0" || s[0] != '0')
}

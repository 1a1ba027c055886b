package mcp

import (
	"bytes"
	"encoding/json"
	"slices"

	"gateway/shared/wire"
)

// Fields returns the fields of a JSON object, or nil if raw is not an object. The values alias
// raw. Of duplicate fields the last one wins; wire.CheckStrict rejects duplicates.
func Fields(raw []byte) map[string]json.RawMessage {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); wire.KindOf(raw) != wire.KindObject {
		return nil
	}
	d := wire.NewDecoder(raw)
	out := make(map[string]json.RawMessage, 8)
	for key := range d.Object {
		out[string(key)] = d.Raw()
	}
	if d.End() != nil {
		return nil
	}
	return out
}

// AppendFields appends a JSON object with the fields in the order of their names.
func AppendFields(dst []byte, members map[string]json.RawMessage) []byte {
	dst = append(dst, '{')
	var room [16]string // most objects have fewer fields
	names := room[:0]
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendJSONString(dst, name), ':')
		if raw := members[name]; raw != nil {
			dst = append(dst, raw...)
		} else {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}

// ParseString decodes a valid JSON string into s like json.Unmarshal: null leaves s unchanged.
// ok is false for any other type.
func ParseString(raw json.RawMessage, s *string) (ok bool) {
	if len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"' && isPlain(raw[1:len(raw)-1]) {
		*s = string(raw[1 : len(raw)-1])
		return true
	}
	return len(raw) > 0 && json.Unmarshal(raw, s) == nil
}

// isPlain reports whether a quoted string has no escapes.
func isPlain(inner []byte) bool {
	for _, c := range inner {
		if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// ValidID reports whether the id of a message, which is valid JSON, is a string or an integer.
func ValidID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	if len(id) < 18 && len(bytes.Trim(id, "0123456789")) == 0 {
		return true
	}
	var n int64
	return id[0] != 'n' && json.Unmarshal(id, &n) == nil
}

package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"gateway/shared/wire"
)

// Members are those of an object, where raw is one and is JSON; nil where it is not. They
// are parts of raw: none may be changed, nor kept for longer than it. A member that stands
// twice is the later one; wire.CheckStrict refuses such.
func Members(raw []byte) map[string]json.RawMessage {
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

// AppendMembers appends an object of members that are JSON, in the order of their names.
func AppendMembers(dst []byte, members map[string]json.RawMessage) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
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

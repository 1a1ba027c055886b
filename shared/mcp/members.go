package mcp

import (
	"bytes"
	"encoding/json"
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
	var room [16]string // most objects have fewer members
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

// Text reads a text of checked JSON into s, as json.Unmarshal does: null changes nothing, and
// ok is false for another form.
func Text(raw json.RawMessage, s *string) (ok bool) {
	if len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"' && plain(raw[1:len(raw)-1]) {
		*s = string(raw[1 : len(raw)-1])
		return true
	}
	return len(raw) > 0 && json.Unmarshal(raw, s) == nil
}

// plain tells whether what stands between quotes is what it says, letter by letter.
func plain(inner []byte) bool {
	for _, c := range inner {
		if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// GoodID tells whether the id of a message, which is checked JSON, is a text or a whole
// number.
func GoodID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	if len(id) < 18 && len(bytes.Trim(id, "0123456789")) == 0 {
		return true
	}
	var n int64
	return id[0] != 'n' && json.Unmarshal(id, &n) == nil
}

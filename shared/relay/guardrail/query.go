package guardrail

import (
	"bytes"
	"encoding/json"

	"gateway/shared/wire"
)

// queryField is the field with the texts of a query string in a guardrail's input. It is added
// to the fields of a body, and is not sent.
const queryField = "query_parameters"

// withQuery returns a body with the texts of a query string, for guardrails.
func withQuery(body, query []byte) []byte {
	if len(query) == 0 {
		return body
	}
	out := append([]byte(`{"`+queryField+`":`), query...)
	switch rest := bytes.TrimLeft(body, " \t\r\n"); {
	case len(rest) == 0:
	case rest[0] != '{': // an array or a text
		out = append(append(out, `,"body":`...), rest...)
	default:
		if rest = bytes.TrimLeft(rest[1:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
			out = append(out, ',')
		}
		return append(out, rest...)
	}
	return append(out, '}')
}

// withoutQuery returns a body with query texts after guardrails have changed it. ok is false if
// it cannot be sent in place of the body: they changed the query string, or the body is not an
// object.
func withoutQuery(changed, body, query []byte) (now []byte, ok bool) {
	var members map[string]json.RawMessage
	if wire.KindOf(bytes.TrimLeft(body, " \t\r\n")) != wire.KindObject || json.Unmarshal(changed, &members) != nil || !sameJSON(members[queryField], query) {
		return nil, false
	}
	prefix := withQuery(nil, query)
	if rest, ok := bytes.CutPrefix(changed, prefix[:len(prefix)-1]); ok { // all other bytes stay the same
		return append([]byte{'{'}, bytes.TrimPrefix(rest, []byte{','})...), true
	}
	delete(members, queryField)
	now, err := json.Marshal(members)
	return now, err == nil
}

// sameJSON reports whether two JSON values differ at most in white space.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

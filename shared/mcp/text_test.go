package mcp

import (
	"encoding/json"
	"testing"

	"gateway/shared/wire"
)

// FuzzStringsAndIDs compares ParseString and ValidID with json.Unmarshal.
func FuzzStringsAndIDs(f *testing.F) {
	for _, s := range []string{`"plain"`, `""`, `"a\u00e9\n"`, `"é"`, `"\ud800"`, "\"\x7f\"", `"a"b"`, `"`, `null`, `true`, `{}`, `[]`, `7`, `-7`, `0`, `007`, `7.0`, `7e1`, `9223372036854775807`, `9223372036854775808`, `12345678901234567`, `123456789012345678`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, want := "before", "before"
		ok, err := ParseString(raw, &got), json.Unmarshal(raw, &want)
		if len(raw) > 0 && (raw[0] == ' ' || raw[0] == '\t' || raw[0] == '\n' || raw[0] == '\r') {
			return // values in a message have no leading space
		}
		if ok != (err == nil) || got != want {
			t.Errorf("%q: %q %t, and json says %q %v", raw, got, ok, want, err)
		}
		if wire.CheckStrict(raw, maxDepth) != nil {
			return
		}
		var n int64
		if id := raw[0] == '"' || json.Unmarshal(raw, &n) == nil && string(raw) != "null"; ValidID(raw) != id {
			t.Errorf("%q as an id: %t", raw, !id)
		}
	})
}

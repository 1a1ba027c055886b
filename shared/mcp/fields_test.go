package mcp

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"gateway/shared/wire"
)

// FuzzFields compares Fields with encoding/json and checks that AppendFields preserves values.
func FuzzFields(f *testing.F) {
	for _, s := range []string{`{}`, ` { "a" : [1, 2] , "b":null, "\u0061b":"x" } `, `[]`, `null`, `"{}"`, `{"a":{"b":{}}}`, `{"a":1,}`, `{"a" 1}`, `{"a":1}x`, `{"\ud83d\ude00":"é"}`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got := Fields(raw)
		if wire.CheckStrict(raw, maxDepth) != nil {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(raw, &want) != nil {
			want = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %s, not %s", raw, got, want)
		}
		if got == nil {
			return
		}
		written := AppendFields(nil, got)
		if again := Fields(written); !reflect.DeepEqual(again, want) || !json.Valid(written) || bytes.Contains(written, []byte("\n,")) {
			t.Fatalf("%s is written %s", raw, written)
		}
	})
}

package expect

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"gateway/shared/prompt"
)

func TestJudgeReportsWhyAnAssertionFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, value, text string
		holds             bool
	}{
		{"contains", `"b"`, "abc", true}, {"contains", `"B"`, "abc", false}, {"not_contains", `"x"`, "abc", true}, {"not_contains", `"b"`, "abc", false},
		{"equals", `"abc"`, " abc\n", true}, {"equals", `""`, "", true}, {"equals", `"abc"`, "abcd", false},
		{"regex", `"^a.c$"`, "abc", true}, {"regex", `"^b"`, "abc", false}, {"regex", `"^(a+)+$"`, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", false},
		{"json_schema", `{"type":"array","maxItems":1}`, "[1]", true}, {"json_schema", `{"type":"array","maxItems":1}`, "[1,2]", false}, {"json_schema", `{}`, "{", false},
		{"max_latency_ms", `50`, "", true}, {"max_latency_ms", `49`, "", false},
		{"guardrail", `"good"`, "", true}, {"guardrail", `"bad"`, "", false}, {"guardrail", `"gone"`, "", false},
	} {
		a := prompt.Assertion{Type: c.kind, Value: json.RawMessage(c.value)}
		if bad := Validate("tests", []prompt.Case{{Name: "a", Assertions: []prompt.Assertion{a}}}); len(bad) > 0 {
			t.Errorf("%s %s: %v", c.kind, c.value, bad)
		}
		holds, why := Judge(t.Context(), &a, &Outcome{Text: c.text, Latency: 50 * time.Millisecond, Guard: func(name string) (bool, error) {
			if name == "gone" {
				return false, errors.New("gone")
			}
			return name == "good", nil
		}})
		if holds != c.holds || holds == (why != "") {
			t.Errorf("%s %s of %q: %v, %q", c.kind, c.value, c.text, holds, why)
		}
	}
}

// FuzzTable: whatever a table says, it is rejected or can be judged.
func FuzzTable(f *testing.F) {
	f.Add(`[{"name":"a","assertions":[{"type":"regex","value":"a+"},{"type":"json_schema","value":{"type":"object"}}]}]`, "text")
	f.Add(`[{"name":"a","render_only":true,"assertions":[{"type":"equals","value":"","on":"rendered"}]}]`, "{}")
	f.Fuzz(func(t *testing.T, table, text string) {
		var cases []prompt.Case
		if json.Unmarshal([]byte(table), &cases) != nil || len(Validate("tests", cases)) > 0 {
			return
		}
		for _, c := range cases {
			for i := range c.Assertions {
				Judge(t.Context(), &c.Assertions[i], &Outcome{Text: text, Guard: func(string) (bool, error) { return true, nil }})
			}
		}
	})
}

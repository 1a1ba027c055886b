package gate

import (
	"encoding/json"
	"testing"
)

// TestResultsOfServersWithSessions: for a client without they say what kind they are, once,
// whatever the server says there.
func TestResultsOfServersWithSessions(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{}`:              `{"resultType":"complete"}`,
		`{ "content":[]}`: `{"resultType":"complete", "content":[]}`,
		`{"content":[],"resultType":"input_required","requestState":"s"}`: `{"resultType":"complete","content":[],"requestState":"s"}`,
		`{"result\u0054ype":"input_required"}`:                            `{"resultType":"complete"}`,
		`{"ttlMs":9,"cacheScope":"public"}`:                               `{"resultType":"complete"}`,
		`{"a":{"ttlMs":"\u00e9"}}`:                                        `{"resultType":"complete","a":{"ttlMs":"\u00e9"}}`,
	} {
		got := dated(json.RawMessage(result), "tools/call")
		var whole, wanted map[string]any
		if json.Unmarshal(got, &whole) != nil || json.Unmarshal([]byte(want), &wanted) != nil || len(got) != len(want) || len(whole) != len(wanted) || whole["resultType"] != "complete" {
			t.Errorf("%s: %s, want %s", result, got, want)
		}
	}
}

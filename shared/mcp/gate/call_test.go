package gate

import (
	"encoding/json"
	"testing"
)

// Results of servers with sessions have exactly one resultType for stateless clients, whatever
// the server sends.
func TestSessionResultsGetOneResultType(t *testing.T) {
	t.Parallel()
	for result, want := range map[string]string{
		`{}`:              `{"resultType":"complete"}`,
		`{ "content":[]}`: `{"resultType":"complete", "content":[]}`,
		`{"content":[],"resultType":"input_required","requestState":"s"}`: `{"resultType":"complete","content":[],"requestState":"s"}`,
		`{"result\u0054ype":"input_required"}`:                            `{"resultType":"complete"}`,
		`{"ttlMs":9,"cacheScope":"public"}`:                               `{"resultType":"complete"}`,
		`{"a":{"ttlMs":"\u00e9"}}`:                                        `{"resultType":"complete","a":{"ttlMs":"\u00e9"}}`,
	} {
		got := addStatelessFields(json.RawMessage(result), "tools/call")
		var whole, wanted map[string]any
		if json.Unmarshal(got, &whole) != nil || json.Unmarshal([]byte(want), &wanted) != nil || len(got) != len(want) || len(whole) != len(wanted) || whole["resultType"] != "complete" {
			t.Errorf("%s: %s, want %s", result, got, want)
		}
	}
}

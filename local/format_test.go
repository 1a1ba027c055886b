package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestJSONThatIsOnlyRequestedIsChecked: Claude and most models of Bedrock have no JSON mode.
// If they answer something else, that never looks like a good answer.
func TestJSONThatIsOnlyRequestedIsChecked(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	r.mock.Reset()
	format := `,"max_tokens":100,"response_format":{"type":"json_object"}`
	lenient := []string{"X-Gateway-Strict-Open-Ai-Compliance", "false"}
	requests := 0
	for _, model := range []string{"@mock-anthropic/claude-sonnet-4-5", "@bedrock/" + bedrockClaude} {
		for _, c := range []struct{ text, want string }{
			{`{"a":1}`, `{"a":1}`}, {"```json{\"a\":1}```", `{"a":1}`}, {"words", ""}, {`{"a":1,}`, ""}, {`[1]`, ""},
		} {
			requests += 2
			got := r.call("POST", "/chat/completions", chatBody(model, "JSON\nmock: say="+c.text, format), lenient...)
			streamed := r.call("POST", "/chat/completions", chatBody(model, "JSON\nmock: say="+c.text, format+`,"stream":true`))
			if c.want == "" {
				if got.status != 502 || !strings.Contains(got.body, "asked for one JSON object") {
					t.Errorf("%s: %s: %d %s", model, c.text, got.status, got.body)
				}
				if streamed.status == 200 && (strings.Contains(streamed.body, "[DONE]") || !strings.Contains(streamed.body, `"error"`)) {
					t.Errorf("%s: %s, streamed: %s", model, c.text, streamed.body)
				}
				continue
			}
			if want := fmt.Sprintf(`"content":%q`, c.want); got.status != 200 || !strings.Contains(got.body, want) {
				t.Errorf("%s: %s: %d %s", model, c.text, got.status, got.body)
			}
			if report := got.header.Get("X-Gateway-Translation"); !strings.Contains(report, "response_format (requested by text") {
				t.Errorf("%s: the loss report %q", model, report)
			}
			if streamed.status != 200 || !strings.Contains(streamed.body, "[DONE]") || strings.Contains(streamed.body, "```") {
				t.Errorf("%s: %s, streamed: %d %s", model, c.text, streamed.status, streamed.body)
			}
		}
	}
	// An answer that is refused was made all the same, and is paid for.
	var output int64
	for _, rec := range r.records(requests) {
		output += rec.Usage.OutputTokens()
	}
	if bill := r.mock.Bill().Total; output < bill.Output*9/10 || output > bill.Output*2 {
		t.Errorf("books: %d tokens; bill %+v", output, bill)
	}
}

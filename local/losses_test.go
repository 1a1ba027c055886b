package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestStrictTranslationRefusesWhatWouldBeLost(t *testing.T) {
	t.Parallel()
	r := start(t)
	lossy := chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_tokens":9,"logit_bias":{"1":2},"seed":7`)
	got := r.call("POST", "/chat/completions", lossy, "X-Gateway-Strict-Open-Ai-Compliance", "false")
	if got.status != 200 || !strings.Contains(got.header.Get("X-Gateway-Translation"), "logit_bias") || !strings.Contains(got.header.Get("X-Gateway-Translation"), "seed") {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	before := len(r.mock.Requests(100))
	got = r.call("POST", "/chat/completions", lossy, "X-Gateway-Translation", "strict")
	if got.status != 400 || !strings.Contains(got.body, "logit_bias") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := len(r.mock.Requests(100)); n != before {
		t.Errorf("%d requests were sent", n-before)
	}
	whole := chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_tokens":9`)
	if got = r.call("POST", "/chat/completions", whole, "X-Gateway-Translation", "strict"); got.status != 200 {
		t.Errorf("nothing to lose: %d %s", got.status, got.body)
	}
	if got = r.call("POST", "/chat/completions", whole, "X-Gateway-Translation", "lax"); got.status != 400 || !strings.Contains(got.body, "x-gateway-translation") {
		t.Errorf("an unknown value: %d %s", got.status, got.body)
	}
}

// If an answer has something for which the client's shape has no place, the log of the
// request names it, whole and streamed, and so does the header when there is still time.
func TestLossesOfAResponseAreReported(t *testing.T) {
	t.Parallel()
	r := start(t)
	thinks := func(more string) string {
		return chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_completion_tokens":3000,"reasoning_effort":"low"`+more)
	}
	messages := func(more string) string {
		return chatBody("@mock/gpt-4o-mini", "Hello", `,"max_tokens":9`+more)
	}
	lenient := []string{"X-Gateway-Strict-Open-Ai-Compliance", "false"}
	requests := []struct {
		path, body string
		headers    []string
		missed     string // in the log; "" for nothing
		header     bool
	}{
		{"/chat/completions", thinks(""), nil, "choices[0].message.thinking", false},
		{"/chat/completions", thinks(`,"stream":true`), nil, "choices[0].message.thinking", false},
		{"/chat/completions", thinks(""), lenient, "", false},
		{"/chat/completions", thinks(`,"stream":true`), lenient, "", false},
		{"/responses", `{"model":"@mock-anthropic/claude-sonnet-4-5","input":"Hello","max_output_tokens":3000,"reasoning":{"effort":"low"}}`, nil, "", false},
		{"/messages", messages(""), nil, "system_fingerprint", true},
		{"/messages", messages(""), lenient, "system_fingerprint", true},
		{"/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), lenient, "", false},
	}
	for _, c := range requests {
		got := r.call("POST", c.path, c.body, c.headers...)
		if got.status != 200 {
			t.Fatalf("%s %s: %d %s", c.path, c.body, got.status, got.body)
		}
		if header := got.header.Get("X-Gateway-Translation"); strings.Contains(header, "missed="+c.missed) != (c.header && c.missed != "") {
			t.Errorf("%s %s: the header is %q", c.path, c.body, header)
		}
	}
	rows := r.logs(len(requests), workspaceKey)
	for i, c := range requests {
		id := rows[len(rows)-1-i]["id"].(string)
		missed, _ := json.Marshal(member(r.get("/logs/"+id, workspaceKey), "decision/missed"))
		steps, _ := json.Marshal(r.get("/logs/"+id+"/explain", workspaceKey)["steps"])
		if got := strings.Contains(string(missed), `"`+c.missed+`"`); got != (c.missed != "") || c.missed == "" && string(missed) != "[]" {
			t.Errorf("%s %s: the log says %s", c.path, c.body, missed)
		}
		if got := strings.Contains(string(steps), c.missed+" of the response cannot be represented"); c.missed != "" && !got {
			t.Errorf("%s %s: %s", c.path, c.body, steps)
		}
	}
}

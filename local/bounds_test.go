package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestBoundsAreJudgedByTheTarget sends bodies that exceed a limit of the specification to
// targets that set it wider and to others, on all clients' routes.
func TestBoundsAreJudgedByTheTarget(t *testing.T) {
	t.Parallel()
	r := start(t)
	own := fmt.Sprintf(`{"provider":"vllm","custom_host":%q,"api_key":"k"}`, r.mockBase())
	stops := func(n int) string {
		return `"stop":["` + strings.Join(strings.Fields(strings.Repeat("s ", n)), `","`) + `"]`
	}
	const chat = `"model":"m","messages":[{"role":"user","content":"Hello"}],`
	for _, c := range []struct {
		target, path, body, field string // field: "" when the target takes it
	}{
		{`{"provider":"openai","api_key":"k"}`, "/chat/completions", chat + stops(5), "stop"},
		{`{"provider":"cohere","api_key":"k"}`, "/chat/completions", chat + stops(5), ""},
		{`{"provider":"cohere","api_key":"k"}`, "/chat/completions", chat + stops(6), "stop"},
		{`{"provider":"google","api_key":"k"}`, "/chat/completions", chat + stops(5), ""},
		{`{"provider":"google","api_key":"k"}`, "/chat/completions", chat + stops(6), "stop"},
		{`{"provider":"deepseek","api_key":"k"}`, "/chat/completions", chat + stops(16), ""},
		{`{"provider":"deepseek","api_key":"k"}`, "/chat/completions", chat + stops(17), "stop"},
		{`{"provider":"deepseek","api_key":"k"}`, "/chat/completions", chat + stops(16) + `,"stream":true`, ""},
		{`{"provider":"together-ai","api_key":"k"}`, "/chat/completions", chat + `"logprobs":1`, ""},
		{`{"provider":"openai","api_key":"k"}`, "/chat/completions", chat + `"logprobs":1`, "logprobs"},
		{`{"provider":"mistral-ai","api_key":"k"}`, "/chat/completions", chat + `"tool_choice":"any","tools":[{"type":"function","function":{"name":"f"}}]`, ""},
		{`{"provider":"anthropic","api_key":"k"}`, "/chat/completions", chat + `"tools":[` + manyTools(129) + `]`, ""},
		{`{"provider":"google","api_key":"k"}`, "/chat/completions", chat + `"tools":[` + manyTools(129) + `]`, ""},
		{`{"provider":"groq","api_key":"k"}`, "/chat/completions", chat + `"tools":[` + manyTools(129) + `]`, "tools"},
		{own, "/chat/completions", chat + `"temperature":3,"logprobs":true,"top_logprobs":50,"max_tokens":-1,` + stops(9), ""},
		{own, "/completions", `"model":"m","prompt":"x","temperature":3,"logprobs":50,"max_tokens":-1,` + stops(9), ""},
		{own, "/responses", `"model":"m","input":"x","temperature":3`, ""},
		{`{"provider":"openai","api_key":"k"}`, "/responses", `"model":"m","input":"x","temperature":3`, "temperature"},
		{`{"provider":"openai","api_key":"k"}`, "/completions", `"model":"m","prompt":"x","max_tokens":-1`, "max_tokens"},
		// What a config makes of the body is what counts.
		{`{"provider":"openai","api_key":"k","override_params":{"stop":["a"]}}`, "/chat/completions", chat + stops(5), ""},
		{`{"provider":"openai","api_key":"k","override_params":{"temperature":3}}`, "/chat/completions", chat + stops(1), "temperature"},
		{`{"provider":"vllm","custom_host":"https://gpu.example.com/v1","api_key":"k","override_params":{"temperature":3}}`, "/chat/completions", chat + stops(5), ""},
	} {
		got := r.dryRun(fmt.Sprintf(`{"config":%s,"path":%q,"body":{%s}}`, c.target, c.path, c.body))
		targets, _ := got["targets"].([]any)
		if len(targets) != 1 {
			t.Errorf("%s %s %.90s: %v", c.target, c.path, c.body, got)
			continue
		}
		if field, _ := member(targets[0], "error/field").(string); field != c.field || (c.field == "") != (member(targets[0], "error") == nil) {
			t.Errorf("%s %s %.90s: error %v, want one on %q", c.target, c.path, c.body, member(targets[0], "error"), c.field)
		}
	}
	// A fallback continues to a target that has room.
	got := r.dryRun(fmt.Sprintf(`{"config":{"strategy":{"mode":"fallback"},"targets":[{"provider":"openai","api_key":"k"},{"provider":"deepseek","api_key":"k"}]},"path":"/chat/completions","body":{%s%s}}`, chat, stops(9)))
	if targets := got["targets"].([]any); len(targets) != 2 || member(targets[0], "error/field") != "stop" || member(targets[1], "error") != nil {
		t.Errorf("a fallback: %v", got)
	}
	// The client of a target without room reads the same rejection as ever.
	refused := r.call("POST", "/chat/completions", `{`+chat+stops(5)+`}`, "X-Gateway-Provider", "openai", "Authorization", "Bearer k")
	if refused.status != 400 || !strings.Contains(refused.body, "stop must contain at most 4 sequences, not 5") {
		t.Errorf("%d %s", refused.status, refused.body)
	}
	if n := len(r.mock.Requests(10)); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func manyTools(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"type":"function","function":{"name":"f%d","parameters":{"type":"object"}}}`, i))
	}
	return strings.Join(all, ",")
}

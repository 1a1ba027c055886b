package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestCacheMarkersBecomeBreakpoints: markers of Anthropic's shape and of ours become
// breakpoints in both shapes of OpenAI, if the model accepts them. The answer reports those
// that have no place.
func TestCacheMarkersBecomeBreakpoints(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.divert()
	r.mock.Reset()
	const marked, breakpoint = `"cache_control":{"type":"ephemeral"}`, `"prompt_cache_breakpoint":{"mode":"explicit"}`
	system := `"system":[{"type":"text","text":"Rules.",` + marked + `}],`
	messages := `"messages":[{"role":"user","content":[{"type":"text","text":"Hello",` + marked + `}]}]`
	tool := `,"tools":[{"name":"w","input_schema":{"type":"object"},` + marked + `}]`
	n := 0
	for _, c := range []struct {
		path, model, body, upstream string
		breakpoints, requests       int
		loss                        string
	}{
		{"/messages", "gpt-5.6", `"max_tokens":50,` + system + messages, "/v1/chat/completions", 2, 1, ""},
		{"/messages", "gpt-5.6", `"max_tokens":50,` + system + messages + tool, "/v1/responses", 2, 1, "tools[0].cache_control"},
		{"/messages", "gpt-4o", `"max_tokens":50,` + system + messages, "/v1/chat/completions", 0, 1, "system[0].cache_control"},
		{"/messages", "gpt-5.6-no-breakpoints", `"max_tokens":50,` + system + messages, "/v1/chat/completions", 0, 2, "system[0].cache_control"},
		{"/messages", "gpt-5.6-no-breakpoints", `"max_tokens":50,` + system + messages, "/v1/chat/completions", 0, 1, "system[0].cache_control"},
		{"/chat/completions", "gpt-5.6", messages + `,"tools":[{"type":"function","function":{"name":"w"}}]`, "/v1/responses", 1, 1, ""},
	} {
		before := r.mock.Bill().Total.Requests
		got := r.call("POST", c.path, fmt.Sprintf(`{"model":%q,%s}`, c.model, c.body), "X-Gateway-Provider", "openai", "Authorization", "Bearer mock-key", "X-Gateway-Strict-Open-Ai-Compliance", "false")
		n++
		sent := r.mock.Requests(1)[0]
		if got.status != 200 || sent.Path != c.upstream || strings.Count(string(sent.Body), breakpoint) != c.breakpoints || strings.Contains(string(sent.Body), "cache_control") {
			t.Errorf("%s %s: %d %s: %s %s", c.path, c.model, got.status, got.body, sent.Path, sent.Body)
		}
		if requests := int(r.mock.Bill().Total.Requests - before); requests != c.requests {
			t.Errorf("%s %s: %d requests", c.path, c.model, requests)
		}
		if loss := got.header.Get("X-Gateway-Translation"); c.loss == "" && strings.Contains(loss, "cache_control") || !strings.Contains(loss, c.loss) {
			t.Errorf("%s %s: told %q, not %q", c.path, c.model, loss, c.loss)
		}
	}
	r.bookedAsBilled(n)
}

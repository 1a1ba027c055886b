package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPassedThroughAnswersThatBreakOffAreBooked: by the usage that came, otherwise by an
// estimate that is marked as one. Something that never was a response costs nothing.
func TestPassedThroughAnswersThatBreakOffAreBooked(t *testing.T) {
	t.Parallel()
	words := strings.Repeat("word ", 400)
	const usage = `,"usage":{"prompt_tokens":11,"completion_tokens":500,"total_tokens":511}`
	for _, c := range []struct {
		name, provider, path, answer string
		in, least                    int64 // input, 0: an estimate; output at least
		estimated                    bool
	}{
		{"within the text", "openai", "/proxy/chat/completions", `{"id":"1","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"` + words, 0, 300, true},
		{"behind the text", "openai", "/proxy/chat/completions", `{"id":"1","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"` + words + `"},"finish_reason":"stop"}]`, 0, 300, true},
		{"a version of the path", "openai", "/proxy/v1/chat/completions", `{"id":"1","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"` + words, 0, 300, true},
		{"behind the usage", "openai", "/proxy/chat/completions", `{"id":"1","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"` + words + `"},"finish_reason":"stop"}]` + usage, 11, 500, false},
		{"within the usage", "openai", "/proxy/chat/completions", `{"id":"1","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"` + words + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,`, 11, 300, true},
		{"messages", "anthropic", "/proxy/messages", `{"id":"1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"` + words, 0, 300, true},
		{"an error", "openai", "/proxy/chat/completions", `{"error":{"message":"` + words, -1, 0, false},
		{"before the text", "openai", "/proxy/chat/completions", `{"id":"1","model":"gpt-4o-mini","choices":[`, -1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Content-Length", fmt.Sprint(len(c.answer)+100))
				fmt.Fprint(w, c.answer)
			}))
			t.Cleanup(host.Close)
			r := start(t)
			_, _ = r.try("POST", c.path, `{"model":"gpt-4o-mini","max_tokens":900,"messages":[{"role":"user","content":"Tell me many words"}]}`,
				"X-Gateway-Provider", c.provider, "X-Gateway-Custom-Host", host.URL, "Authorization", "Bearer k")
			rec := r.records(1)[0]
			in, out := rec.Usage.InputTokens(), rec.Usage.OutputTokens()
			if c.in < 0 && (in != 0 || out != 0) || c.in > 0 && in != c.in || c.in == 0 && in == 0 || out < c.least || out > 2*c.least || rec.Usage.Estimated != c.estimated {
				t.Errorf("%d in, %d out, estimated %t: %+v", in, out, rec.Usage.Estimated, rec.Usage)
			}
		})
	}
}

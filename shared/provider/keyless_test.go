package provider

import (
	"context"
	"net/http"
	"testing"
)

// TestAHostOfOnesOwnNeedsNoKey: where the shape is OpenAI's, and nowhere else.
func TestAHostOfOnesOwnNeedsNoKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, host string
		ok             bool
	}{
		{"openai", "http://gpu:8000/v1", true}, {"together-ai", "https://llm.example.com/v1", true}, {"vllm", "http://gpu:8000/v1", true},
		{"openai", "", false}, {"openai", "https://eu.api.openai.com/v1", false}, {"anthropic", "https://llm.example.com/v1", false},
	} {
		u, err := ExactURL("https://llm.example.com/v1/chat/completions")
		if err != nil {
			t.Fatal(err)
		}
		req := &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}}
		target := Target{Provider: row(t, c.provider), CustomHost: c.host}
		if err := target.Authorize(context.Background(), req, nil); (err == nil) != c.ok || req.Header.Get("Authorization") != "" {
			t.Errorf("%s at %q: %v, %v", c.provider, c.host, err, req.Header)
		}
	}
}

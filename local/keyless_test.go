package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// TestASavedHostOfOnesOwnNeedsNoKey saves a host with OpenAI's format that asks for no
// key, and calls it: no credential is sent, neither an empty one nor the gateway's.
func TestASavedHostOfOnesOwnNeedsNoKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	var calls, withKey atomic.Int64
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		calls.Add(1)
		if len(req.Header["Authorization"])+len(req.Header["Api-Key"])+len(req.Header["X-Api-Key"]) > 0 {
			withKey.Add(1)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"here"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	defer host.Close()
	for _, p := range []string{"openai", "vllm"} {
		r.save("own-"+p, `"ai_provider_id":"`+p+`","configurations":{"custom_host":"`+host.URL+`/v1"}`)
		for _, path := range []string{"/chat/completions", "/proxy/chat/completions", "/messages"} {
			got := r.call("POST", path, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, "X-Gateway-Provider", "@own-"+p)
			if got.status != 200 {
				t.Errorf("%s %s: %d %s", p, path, got.status, got.body)
			}
		}
	}
	if calls.Load() != 6 || withKey.Load() != 0 {
		t.Errorf("%d calls, %d of them with a credential", calls.Load(), withKey.Load())
	}
}

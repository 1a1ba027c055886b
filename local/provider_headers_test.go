package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Whoever complains to the provider needs its name of the request most when it
// failed, and its rate limits when they are used up: errors of every kind carry
// both, also those that only the body of a success tells.
func TestErrorsCarryTheProvidersHeaders(t *testing.T) {
	t.Parallel()
	r := start(t)
	answers := map[string]struct {
		status int
		body   string
		want   int
	}{
		"limited":     {429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, 429},
		"no-json":     {500, `<h1>broken</h1>`, 500},
		"in-success":  {200, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, 529},
		"not-one":     {200, `<h1>maintenance</h1>`, 502},
		"stream-fail": {200, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n", 529},
	}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		a := answers[req.Header.Get("X-Case")]
		w.Header().Set("Request-Id", "req_of_the_provider")
		w.Header().Set("Anthropic-Ratelimit-Requests-Remaining", "0")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	}))
	defer host.Close()
	r.save("failing", `"ai_provider_id":"anthropic","key":"sk-failing","configurations":{"custom_host":"`+host.URL+`/v1"}`)
	for name, a := range answers {
		for _, path := range []string{"/chat/completions", "/messages"} {
			body := fmt.Sprintf(`{"model":"@failing/claude-sonnet-4-5","max_tokens":9,"stream":%t,"messages":[{"role":"user","content":"x"}]}`, name == "stream-fail")
			got := r.call("POST", path, body, "X-Case", name, "X-Gateway-Forward-Headers", "x-case")
			if got.status != a.want {
				t.Errorf("%s of %s: %d %s", path, name, got.status, got.body)
			}
			if id, left := got.header.Get("X-Gateway-Provider-Request-Id"), got.header.Get("X-Gateway-Provider-Anthropic-Ratelimit-Requests-Remaining"); id != "req_of_the_provider" || left != "0" {
				t.Errorf("%s of %s: request id %q, limit %q: %v", path, name, id, left, got.header)
			}
		}
	}
	// What the gateway rejects itself knows of no provider.
	if got := r.call("POST", "/chat/completions", `{"model":"@failing/m"}`); got.status != 400 || got.header.Get("X-Gateway-Provider-Request-Id") != "" {
		t.Errorf("%d %v", got.status, got.header)
	}
}

package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/host/alias"
)

// A client that knows another prefix works by address and key alone, on the data
// plane, in the administration and on pass-through, and nothing of its headers goes
// to a provider.
func TestHeadersUnderAnotherPrefix(t *testing.T) {
	t.Parallel()
	o, err := parse([]string{"-addr", "127.0.0.1:0", "-data", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if o.serve.Aliases, err = alias.Parse("x-acme"); err != nil {
		t.Fatal(err)
	}
	g := startWith(t, o)
	for _, c := range []struct {
		method, path, body string
		status             int
		headers            []string
		answer             string // a header of the response
	}{
		{"POST", "/chat/completions", chatBody("gpt-5.4", "hello", ""), 200, []string{"x-acme-api-key", workspaceKey, "x-acme-provider", "@mock", "x-acme-trace-id", "trace-of-alias"}, "x-acme-trace-id"},
		{"POST", "/messages", `{"model":"@mock/claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`, 200, []string{"x-acme-api-key", workspaceKey, "x-acme-trace-id", "trace-of-alias"}, "x-acme-trace-id"},
		{"POST", "/proxy/chat/completions", chatBody("gpt-5.4", "hello", ""), 200, []string{"x-acme-api-key", workspaceKey, "x-acme-provider", "@mock", "x-acme-trace-id", "trace-of-alias"}, "x-acme-trace-id"},
		{"GET", "/configs?workspace_id=" + g.workspace(), "", 200, []string{"x-acme-api-key", adminKey}, ""},
		{"GET", "/configs", "", 400, []string{"x-acme-api-key", adminKey, "x-gateway-api-key", "another"}, ""},
		{"GET", "/configs", "", 401, []string{"x-foreign-api-key", adminKey}, ""},
	} {
		got := g.without(c.method, c.path, c.body, c.headers...)
		if got.status != c.status {
			t.Errorf("%s %s: %d %s", c.method, c.path, got.status, got.body)
		}
		if c.answer != "" && (got.header.Get(c.answer) == "" || got.header.Get(strings.Replace(c.answer, "x-acme", "x-gateway", 1)) != "") {
			t.Errorf("%s %s: answered with %v", c.method, c.path, got.header)
		}
	}
	for _, sent := range g.mock.Requests(100) {
		for name := range sent.Headers {
			if n := strings.ToLower(name); strings.HasPrefix(n, "x-acme") || strings.HasPrefix(n, "x-gateway") {
				t.Errorf("%s went to the provider", name)
			}
		}
	}
}

// without sends a request without a key of its own; headers come as name, value pairs.
func (r *running) without(method, path, body string, headers ...string) reply {
	r.t.Helper()
	req, err := http.NewRequest(method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(raw)}
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// picky is a host with OpenAI's format that rejects some members.
type picky struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

func newPicky(t *testing.T, status int, refused ...string) *picky {
	p := &picky{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		p.mu.Lock()
		p.bodies = append(p.bodies, string(body))
		p.mu.Unlock()
		for _, member := range refused {
			if strings.Contains(string(body), `"`+member+`"`) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"error":{"message":"Extra inputs are not permitted: %s","type":"invalid_request_error"}}`, member)
				return
			}
		}
		var request struct{ Stream bool }
		_ = json.Unmarshal(body, &request)
		if request.Stream {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"{}\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"{}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *picky) sent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.bodies)
}

// TestRejectedAdditionsAreRetriedWithout: the host is called again without the
// addition, and from then on never with it, for the host and model that rejected. What the
// client wrote itself stays.
func TestRejectedAdditionsAreRetriedWithout(t *testing.T) {
	t.Parallel()
	r := start(t)
	const schema = `"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}`
	for _, c := range []struct{ name, provider, path, body, member string }{
		{"chat", "openai", "/chat/completions", `"messages":[{"role":"user","content":"x"}],"stream":true`, "stream_options"},
		{"completions", "vllm", "/completions", `"prompt":"x","stream":true`, "stream_options"},
		{"messages", "openai", "/messages", `"max_tokens":9,"messages":[{"role":"user","content":"x"}],"stream":true`, "stream_options"},
		{"schema", "openai", "/messages", `"max_tokens":9,"messages":[{"role":"user","content":"x"}],` + schema, "strict"},
		{"both", "openai", "/messages", `"max_tokens":9,"messages":[{"role":"user","content":"x"}],"stream":true,` + schema, "strict"},
	} {
		for _, status := range []int{400, 422} {
			host := newPicky(t, status, c.member)
			h := []string{"X-Gateway-Provider", c.provider, "X-Gateway-Custom-Host", host.URL + "/v1", "Authorization", "Bearer k"}
			for i := range 2 {
				got := r.call("POST", c.path, `{"model":"m",`+c.body+`}`, h...)
				if got.status != 200 {
					t.Fatalf("%s %d: call %d: %d %s", c.name, status, i, got.status, got.body)
				}
			}
			sent := host.sent()
			if len(sent) != 3 || !strings.Contains(sent[0], c.member) || strings.Contains(sent[1]+sent[2], c.member) {
				t.Errorf("%s %d: %q", c.name, status, sent)
			}
			// Another model of the host is called with it.
			r.call("POST", c.path, `{"model":"m2",`+c.body+`}`, h...)
			if sent := host.sent(); len(sent) != 5 || !strings.Contains(sent[3], c.member) {
				t.Errorf("%s %d: another model: %q", c.name, status, sent)
			}
		}
	}
}

func TestWhatTheClientWroteIsNotTakenOut(t *testing.T) {
	t.Parallel()
	r := start(t)
	for name, c := range map[string]struct {
		status       int
		refuse, body string
	}{
		"usage that was asked for": {400, "stream_options", `"stream":true,"stream_options":{"include_usage":true}`},
		"a member of the client's": {400, "logit_bias", `"stream":true,"logit_bias":{"1":1}`},
		"another status":           {403, "stream_options", `"stream":true`},
	} {
		host := newPicky(t, c.status, c.refuse)
		got := r.call("POST", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],`+c.body+`}`,
			"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", host.URL+"/v1", "Authorization", "Bearer k")
		if got.status != c.status || len(host.sent()) != 1 {
			t.Errorf("%s: %d after %d requests: %s", name, got.status, len(host.sent()), got.body)
		}
	}
	// A host that rejects for another reason too is called twice and not remembered.
	host := newPicky(t, 400, "stream_options", "logit_bias")
	for range 2 {
		got := r.call("POST", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"logit_bias":{"1":1}}`,
			"X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", host.URL+"/v1", "Authorization", "Bearer k")
		if got.status != 400 || !strings.Contains(got.body, "logit_bias") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if n := len(host.sent()); n != 4 {
		t.Errorf("%d requests", n)
	}
}

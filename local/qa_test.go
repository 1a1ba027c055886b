package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// refusal reads an error response of the data plane.
type refusal struct {
	Type, Status, Message string
	Error                 struct{ Message, Type, Param, Code string }
	Errors                []string
}

func (r reply) refusal(t *testing.T) refusal {
	t.Helper()
	var got refusal
	if err := json.Unmarshal([]byte(r.body), &got); err != nil {
		t.Fatalf("not JSON: %v: %s", err, r.body)
	}
	return got
}

// Anthropic's clients look for "type":"error", when they count tokens too.
func TestCountingTokensIsRefusedInAnthropicsShape(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, headers := range [][]string{{"X-Gateway-Provider", "@mock-anthropic"}, {"X-Gateway-Provider", "@mock"}, {"X-Gateway-Api-Key", "unknown"}} {
		got := r.call("POST", "/messages/count_tokens", `{}`, headers...)
		if why := got.refusal(t); why.Type != "error" || why.Error.Type == "" || got.status/100 != 4 {
			t.Errorf("%v: %d %s", headers, got.status, got.body)
		}
	}
}

// The version and the betas that a client of Anthropic names reach the provider;
// the gateway's own names of the headers win.
func TestAnthropicHeadersReachTheProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}`
	for _, c := range []struct {
		headers       []string
		version, beta string
	}{
		{nil, "2023-06-01", ""},
		{[]string{"Anthropic-Version", "2026-10-21", "Anthropic-Beta", "a,b"}, "2026-10-21", "a,b"},
		{[]string{"Anthropic-Version", "2023-06-01", "X-Gateway-Anthropic-Version", "2026-10-21", "X-Gateway-Anthropic-Beta", "c"}, "2026-10-21", "c"},
	} {
		for _, path := range []string{"/messages", "/messages/count_tokens"} {
			sent := body
			if path != "/messages" {
				sent = strings.Replace(body, `"max_tokens":9,`, "", 1)
			}
			got := r.call("POST", path, sent, append([]string{"X-Gateway-Provider", "@mock-anthropic"}, c.headers...)...)
			if got.status != 200 {
				t.Fatalf("%s %v: %d %s", path, c.headers, got.status, got.body)
			}
			h := http.Header(r.mock.Requests(1)[0].Headers)
			if h.Get("Anthropic-Version") != c.version || h.Get("Anthropic-Beta") != c.beta {
				t.Errorf("%s %v: the provider got %q and %q", path, c.headers, h.Get("Anthropic-Version"), h.Get("Anthropic-Beta"))
			}
		}
	}
	openAI := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Provider", "@mock", "Anthropic-Beta", "a")
	if h := http.Header(r.mock.Requests(1)[0].Headers); openAI.status != 200 || h.Get("Anthropic-Beta") != "" {
		t.Errorf("%d: another provider got %v", openAI.status, h)
	}
}

// Clients of one provider send their only key in its header, and betas on several
// lines. The key of the gateway goes no further.
func TestHeadersOfClientsOfOneProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	for name, c := range map[string]struct{ provider, path, body string }{
		"X-Api-Key":      {"@mock-anthropic", "/messages", `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}`},
		"Api-Key":        {"@mock", "/chat/completions", chatBody("gpt-4o-mini", "Hello", "")},
		"X-Goog-Api-Key": {"@mock", "/chat/completions", chatBody("gpt-4o-mini", "Hello", "")},
	} {
		for _, key := range []string{workspaceKey, "unknown"} {
			req, err := http.NewRequest("POST", r.base+c.path, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{name: {key}, "X-Gateway-Provider": {c.provider}, "Anthropic-Beta": {"a, b", "c"}, "Content-Type": {"application/json"}}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if key == "unknown" {
				if resp.StatusCode != 401 {
					t.Errorf("%s: an unknown key: %d", name, resp.StatusCode)
				}
				continue
			}
			h := http.Header(r.mock.Requests(1)[0].Headers)
			if resp.StatusCode != 200 || strings.Contains(fmt.Sprint(h), workspaceKey) {
				t.Errorf("%s: %d, the provider got %v", name, resp.StatusCode, h)
			}
			if got := h.Values("Anthropic-Beta"); name == "X-Api-Key" && (len(got) != 1 || got[0] != "a, b,c") {
				t.Errorf("betas: %q", got)
			}
		}
	}
}

// Which of two targets is meant must not depend on who reads the headers.
func TestTargetHeadersAreSentOnce(t *testing.T) {
	t.Parallel()
	r := start(t)
	for name, values := range map[string][]string{
		"X-Gateway-Provider": {"@mock", "@mock-anthropic"},
		"X-Gateway-Config":   {`{"provider":"@mock"}`, `{"provider":"@mock-anthropic"}`},
	} {
		req, err := http.NewRequest("POST", r.base+"/chat/completions", strings.NewReader(chatBody("gpt-4o-mini", "Hello", "")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = http.Header{name: values, "X-Gateway-Api-Key": {workspaceKey}, "Content-Type": {"application/json"}}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var why refusal
		err = json.NewDecoder(resp.Body).Decode(&why)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 400 || why.Error.Param != strings.ToLower(name) {
			t.Errorf("%s: %d %+v %v", name, resp.StatusCode, why, err)
		}
	}
}

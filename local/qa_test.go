package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// refusal reads an error answer of the data plane.
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

// A client that shows nothing but the message still learns which field it is.
func TestMessagesNameTheFieldAtFault(t *testing.T) {
	t.Parallel()
	r := start(t)
	mock := []string{"X-Gateway-Provider", "@mock"}
	claude := []string{"X-Gateway-Provider", "@mock-anthropic"}
	const hello = `"messages":[{"role":"user","content":"Hello"}]`
	for _, c := range []struct {
		method, path, body string
		headers            []string
		param              string
	}{
		{"POST", "/chat/completions", `{` + hello + `}`, mock, "model"},
		{"POST", "/chat/completions", `{"model":"m","n":1.5,` + hello + `}`, mock, "n"},
		{"POST", "/chat/completions", chatBody("m", "Hello", ""), append(mock, "X-Gateway-Trace-Id", strings.Repeat("x", 300)), "x-gateway-trace-id"},
		{"POST", "/chat/completions", `{"model":"m","tool_choice":{"type":"function"},` + hello + `}`, claude, "tool_choice.function.name"},
		{"POST", "/chat/completions", `{"model":"m","function_call":{},` + hello + `}`, claude, "function_call.name"},
		{"POST", "/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{}}]}]}`, claude, "messages[0].content[0].file"},
		{"POST", "/chat/completions", "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}", claude, "messages[0].content"},
		{"POST", "/chat/completions", chatBody("m", "Hello", ""), append(mock, "Content-Encoding", "gzip"), "content-encoding"},
		{"POST", "/embeddings", `{"input":"x"}`, mock, "model"},
		{"POST", "/moderations", `{"input":["a",5]}`, mock, "input[1]"},
		{"POST", "/rerank", `{"model":"m","query":"q","documents":[{"text":5}]}`, mock, "documents[0].text"},
		{"POST", "/ocr", `{"model":"m","document":{"type":"document_url"}}`, mock, "document.document_url"},
		{"GET", "/models?limit=x", "", nil, "limit"},
	} {
		got := r.call(c.method, c.path, c.body, c.headers...)
		why := got.refusal(t)
		if got.status != 400 || why.Status != "failure" || why.Error.Param != c.param || why.Error.Message != why.Message {
			t.Errorf("%s: %d %s, want 400 naming %s", c.body, got.status, got.body, c.param)
		}
		field, _, _ := strings.Cut(c.param, ".")
		if !strings.Contains(why.Message, field) && !strings.Contains(why.Message, "at byte") {
			t.Errorf("%s: the message %q does not name %s", c.body, why.Message, c.param)
		}
	}
}

func TestConfigsOfRequestsAreRefusedByPath(t *testing.T) {
	t.Parallel()
	r := start(t)
	for config, want := range map[string]string{
		`{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@mock","weight":-1}]}`: "path: targets,0,weight, message: must be at least 0",
		`{"provider":5}`: "path: provider, message: must be a string, not a number",
	} {
		got := r.call("POST", "/chat/completions", chatBody("m", "Hello", ""), "X-Gateway-Config", config)
		if why := got.refusal(t); got.status != 400 || !slices.Equal(why.Errors, []string{want}) || !strings.HasPrefix(why.Message, "Invalid config passed: ") {
			t.Errorf("%s: %d %s, want %s", config, got.status, got.body, want)
		}
	}
	for _, config := range []string{`{"provider"`, `[]`, `pc-nowhere`} {
		got := r.call("POST", "/chat/completions", chatBody("m", "Hello", ""), "X-Gateway-Config", config)
		if why := got.refusal(t); got.status != 400 || why.Error.Code != "invalid_config" || why.Error.Param != "x-gateway-config" || strings.Contains(why.Message, "body") {
			t.Errorf("%s: %d %s", config, got.status, got.body)
		}
	}
}

// A provider's success that is no JSON is no success, in whatever shape the
// client speaks.
func TestSuccessesThatAreNoJSONAreBadGateways(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, fault := range []string{"empty", "garbage", "garbage=after:20"} {
		for _, c := range []struct{ path, body, provider string }{
			{"/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"x\nmock: ` + fault + `"}]}`, "@mock"},
			{"/completions", `{"model":"gpt-3.5-turbo-instruct","prompt":"x\nmock: ` + fault + `"}`, "@mock"},
			{"/embeddings", `{"model":"text-embedding-3-small","input":"x\nmock: ` + fault + `"}`, "@mock"},
			{"/responses", `{"model":"gpt-4o","input":"x\nmock: ` + fault + `"}`, "@mock"},
			{"/messages", `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"x\nmock: ` + fault + `"}]}`, "@mock-anthropic"},
		} {
			got := r.call("POST", c.path, c.body, "X-Gateway-Provider", c.provider)
			if why := got.refusal(t); got.status != http.StatusBadGateway || why.Error.Code != "invalid_provider_response" || strings.Contains(got.body, "[DONE]") {
				t.Errorf("%s of %s: %d %s", fault, c.path, got.status, got.body)
			}
		}
	}
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

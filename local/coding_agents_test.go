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

// plainHost is a provider that writes down what it receives and responds as it is told to.
type plainHost struct {
	mu     sync.Mutex
	header http.Header
	path   string
	body   string
	status int
	answer string
	set    map[string]string // headers of the response
}

const wholeMessage = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":2}}`

func (h *plainHost) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	h.mu.Lock()
	h.header, h.path, h.body = req.Header.Clone(), req.URL.RequestURI(), string(body)
	status, answer := h.status, h.answer
	for k, v := range h.set {
		w.Header().Set(k, v)
	}
	h.mu.Unlock()
	if status == 0 {
		status, answer = 200, wholeMessage
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// respond has the host answer so from here on.
func (h *plainHost) respond(status int, answer string, headers ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status, h.answer, h.set = status, answer, map[string]string{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.set[headers[i]] = headers[i+1]
	}
}

// got is what the host was sent last.
func (h *plainHost) got() (header http.Header, path, body string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.header, h.path, h.body
}

// startAgents runs a gateway with a host of each shape that coding agents speak: claude,
// aws and google serve Anthropic's models, gpt one of another make.
func startAgents(t *testing.T) (*running, *plainHost) {
	t.Helper()
	host := &plainHost{}
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	r := start(t)
	r.save("claude", `"ai_provider_id":"anthropic","key":"sk-claude","configurations":{"custom_host":"`+server.URL+`/v1"}`)
	r.save("gpt", `"ai_provider_id":"openai","key":"sk-gpt","configurations":{"custom_host":"`+server.URL+`/v1"}`)
	r.save("aws", `"ai_provider_id":"bedrock","configurations":{"aws_auth_type":"accessKey","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret","aws_region":"us-east-1","custom_host":"`+server.URL+`"}`)
	_, _, account := googleMock(t)
	r.save("google", `"ai_provider_id":"vertex-ai","configurations":{"vertex_auth_type":"serviceAccount","vertex_region":"us-east5","vertex_service_account_json":`+asJSON(account)+`,"custom_host":"`+server.URL+`"}`)
	return r, host
}

// agentBody is a turn as a coding agent sends it: blocks of system, tools and thinking,
// with members that this gateway does not know, and with its own spaces and escapes.
const agentBody = `{ "model":"claude-sonnet-4-5" ,"max_tokens":32000,"system":[{"type":"text","text":"x-billing: cc"},{"type":"text","text":"You are \u0061n agent","cache_control":{"type":"ephemeral","ttl":"1h"}}],
 "messages":[{"role":"user","content":[{"type":"text","text":"Go"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"Hm/\/","signature":"c2ln\/bmF0+w=="},{"type":"redacted_thinking","data":"ZGF0YQ=="},{"type":"tool_use","id":"toolu_1","name":"Edit","input":{"b":1.50,"a":"ü"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"ok"},{"type":"text","text":"On","cache_control":{"type":"ephemeral"}}]}],
 "tools":[{"name":"Edit","description":"d","input_schema":{"type":"object","properties":{}},"strict":true,"eager_input_streaming":true},{"type":"tool_search_tool_regex_20251119","name":"search"},{"name":"Later","input_schema":{"type":"object"},"defer_loading":true}],
 "thinking":{"type":"adaptive","display":"updates"},"output_config":{"effort":"xhigh","task_budget":{"type":"tokens","total":50000}},"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"metadata":{"user_id":"{\"session_id\":\"s\"}"},"of_tomorrow":{"z":[1,2e3,null]}}`

const agentBetas = "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,context-1m-2025-08-07,oauth-2025-04-20,of-tomorrow-2027-01-01"

var agentHeaders = []string{
	"X-Gateway-Provider", "@claude", "Anthropic-Version", "2023-06-01", "Anthropic-Beta", agentBetas, "Anthropic-Of-Tomorrow", "yes", "X-App", "cli",
	"X-Claude-Code-Session-Id", "session-1", "X-Claude-Code-Agent-Id", "agent-1", "X-Claude-Code-Parent-Agent-Id", "agent-0", "X-Claude-Code-Of-Tomorrow", "yes",
}

// Rules 1, 4 to 10, 12 to 16 and 25 of the contract: a provider of the same shape gets what
// the agent wrote, byte for byte, with its headers.
func TestCodingAgentsAreForwardedAsTheyWrite(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	for _, path := range []string{"/messages?beta=true", "/messages", "/v1/messages?beta=true", "/messages/count_tokens?beta=true"} {
		if strings.Contains(path, "count_tokens") {
			host.respond(200, `{"input_tokens":7}`)
		}
		got := r.call("POST", path, agentBody, agentHeaders...)
		header, at, body := host.got()
		if got.status != 200 || body != agentBody {
			t.Errorf("%s: %d %s\nthe provider got %s", path, got.status, got.body, body)
		}
		if want := "/v1/" + strings.TrimPrefix(strings.TrimPrefix(path, "/"), "v1/"); at != strings.TrimSuffix(want, "?beta=true") {
			t.Errorf("%s is sent to %s", path, at)
		}
		for name, want := range map[string]string{
			"Anthropic-Version": "2023-06-01", "Anthropic-Beta": agentBetas, "Anthropic-Of-Tomorrow": "yes", "X-Api-Key": "sk-claude",
			"Authorization": "", "X-Claude-Code-Session-Id": "", "X-Claude-Code-Agent-Id": "", "X-Claude-Code-Parent-Agent-Id": "", "X-Gateway-Provider": "",
		} {
			if header.Get(name) != want {
				t.Errorf("%s: %s is %q, want %q", path, name, header.Get(name), want)
			}
		}
	}
	for _, rec := range r.byTime(4) {
		if rec.Agent.Session != "session-1" || rec.Agent.ID != "agent-1" || rec.Agent.Parent != "agent-0" || rec.Metadata["_user"] != "" {
			t.Errorf("the log has %+v, user %q", rec.Agent, rec.Metadata["_user"])
		}
	}
}

// Rules 17 to 19: an error is the provider's, byte for byte, with its status and what it
// says about trying again; headers have the gateway's own code, the provider and the trace.
// What the gateway itself rejects has the caller's shape.
func TestCodingAgentsReadTheProvidersOwnErrors(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	for _, c := range []struct {
		status int
		body   string
		code   string
	}{
		{400, `{"type":"error", "error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"},"request_id":"req_1"}`, "context_length_exceeded"},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: ` + "`thinking`" + ` blocks cannot be modified \u2014","details":{"error_code":"thread_x"}}}` + "\n", "provider_error"},
		{401, `{"error":{"type":"authentication_error","message":"OAuth authentication is currently not supported."},"type":"error"}`, ""},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, ""},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"Extra usage is required for long context requests."}}`, "rate_limit_exceeded"},
		{500, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, ""},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "overloaded"},
	} {
		for _, path := range []string{"/messages", "/messages/count_tokens", "/proxy/v1/messages"} {
			for _, stream := range []string{"", `,"stream":true`} {
				if strings.HasSuffix(path, "tokens") && stream != "" {
					continue
				}
				host.respond(c.status, c.body, "Retry-After", "Wed, 25 Nov 2026 02:00:00 GMT", "Retry-After-Ms", "1500", "X-Should-Retry", "true", "Request-Id", "req_1")
				got := r.call("POST", path, `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"x"}]`+stream+`}`, agentHeaders...)
				if got.status != c.status || got.body != c.body {
					t.Errorf("%s: %d %s\nthe provider said %d %s", path, got.status, got.body, c.status, c.body)
				}
				for name, want := range map[string]string{"Retry-After": "Wed, 25 Nov 2026 02:00:00 GMT", "Retry-After-Ms": "1500", "X-Should-Retry": "true", "X-Gateway-Provider": "anthropic", "Content-Type": "application/json"} {
					if got.header.Get(name) != want {
						t.Errorf("%s, %d: %s is %q", path, c.status, name, got.header.Get(name))
					}
				}
				if got.header.Get("X-Gateway-Trace-Id") == "" || path != "/proxy/v1/messages" && (got.header.Get("X-Gateway-Error-Code") == "" || c.code != "" && got.header.Get("X-Gateway-Error-Code") != c.code) {
					t.Errorf("%s, %d: code %q, trace %q", path, c.status, got.header.Get("X-Gateway-Error-Code"), got.header.Get("X-Gateway-Trace-Id"))
				}
			}
		}
	}
	// A page of a proxy is no error of that shape, and one of another shape is translated.
	host.respond(502, `<html>bad gateway</html>`, "Content-Type", "text/html")
	if got := r.call("POST", "/messages", chatBody("claude-sonnet-4-5", "x", `,"max_tokens":9`), agentHeaders...); got.status != 502 || !strings.HasPrefix(got.body, `{"type":"error","error":{`) || got.header.Get("X-Gateway-Error-Code") != "invalid_provider_response" {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	host.respond(429, `{"error":{"message":"slow down","type":"rate_limit","param":null,"code":"x"}}`, "Retry-After", "3")
	if got := r.call("POST", "/messages", chatBody("@gpt/gpt-4o", "x", `,"max_tokens":9`)); got.status != 429 || !strings.HasPrefix(got.body, `{"type":"error","error":{"type":"rate_limit_error"`) || got.header.Get("Retry-After") != "3" {
		t.Errorf("%d %s %v", got.status, got.body, got.header)
	}
	// The gateway's own: the shape of the caller, with the code as a header.
	for _, c := range []struct {
		key, body string
		status    int
	}{{"no-such-key", "", 401}, {workspaceKey, `{"model":"@nobody/m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, 400}, {workspaceKey, `{"model":5}`, 400}} {
		got := r.call("POST", "/messages", c.body, "X-Gateway-Api-Key", c.key)
		if got.status < 400 || got.json(t)["type"] != "error" || got.json(t)["error"].(map[string]any)["type"] == nil || got.header.Get("X-Gateway-Error-Code") == "" || got.header.Get("X-Gateway-Trace-Id") == "" {
			t.Errorf("%d %s %v", got.status, got.body, got.header)
		}
	}
}

// A secret of the gateway's that a provider repeats is hidden, whatever else stays.
func TestUnchangedErrorsShowNoCredential(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	host.respond(401, `{"type":"error","error":{"type":"authentication_error","message":"the key sk-claude is wrong"}}`)
	got := r.call("POST", "/messages", chatBody("claude-sonnet-4-5", "x", `,"max_tokens":9`), agentHeaders...)
	if got.status != 401 || strings.Contains(got.body, "sk-claude") || !strings.Contains(got.body, "is wrong") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Rules 2, 9 and 14: a request for a provider of another make is translated, and the response
// says what was not carried, betas too. An unknown alias is no reason to reject.
func TestCodingAgentsAreInformedOfLosses(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	host.respond(200, `{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":1,"total_tokens":6}}`)
	headers := append(slices.Clone(agentHeaders), "X-Gateway-Provider", "@gpt")
	got := r.call("POST", "/messages?beta=true", `{"model":"opus-of-tomorrow","max_tokens":9,"context_management":{"edits":[]},"thinking":{"type":"adaptive"},"messages":[{"role":"user","content":"x"}]}`, headers...)
	header, _, _ := host.got()
	lost := got.header.Get("X-Gateway-Translation")
	if got.status != 200 || !strings.Contains(lost, "anthropic-beta") || !strings.Contains(lost, "context_management") || header.Get("Anthropic-Beta") != "" {
		t.Errorf("%d %s: %q", got.status, got.body, lost)
	}
	got = r.call("POST", "/messages?beta=true", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, append(headers, "X-Gateway-Translation", "strict")...)
	if got.status != 400 || !strings.Contains(got.body, "anthropic-beta") {
		t.Errorf("strict: %d %s", got.status, got.body)
	}
}

// Rules 11 and 20 to 22: one identity however the key comes, the list of models at once
// and in the format that is asked for, at every base that clients make; no redirect, and
// probes that fail cleanly.
func TestCodingAgentsFindTheirWay(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	root := strings.TrimSuffix(r.base, "/v1")
	direct := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	send := func(method, url, body string, headers ...string) (int, http.Header, string) {
		t.Helper()
		req, err := http.NewRequest(method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		resp, err := direct.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		if resp.StatusCode >= 300 && resp.StatusCode < 400 {
			t.Errorf("%s %s redirects to %s", method, url, resp.Header.Get("Location"))
		}
		return resp.StatusCode, resp.Header, string(raw)
	}
	keys := [][]string{{"X-Api-Key", workspaceKey}, {"Authorization", "Bearer " + workspaceKey}, {"X-Api-Key", workspaceKey, "Authorization", "Bearer " + workspaceKey}}
	for _, base := range []string{root, root + "/v1", root + "/v1/v1"} {
		for _, key := range keys {
			status, _, body := send("POST", base+"/messages?beta=true", agentBody, append(slices.Clone(agentHeaders), key...)...)
			if header, _, _ := host.got(); status != 200 || header.Get("X-Api-Key") != "sk-claude" || header.Get("Authorization") != "" {
				t.Errorf("%s with %v: %d %s", base, key, status, body)
			}
			for _, path := range []string{"/models?limit=1000", "/models"} {
				status, _, body = send("GET", base+path, "", append([]string{"Anthropic-Version", "2023-06-01", "X-Gateway-Provider", "@claude"}, key...)...)
				if status != 200 || !strings.HasPrefix(body, `{"data":[{"type":"model","id":"claude-`) || !strings.Contains(body, `"has_more":false`) || !strings.Contains(body, `"display_name":"Claude `) {
					t.Errorf("%s%s with %v: %d %.300s", base, path, key, status, body)
				}
			}
			status, _, body = send("GET", base+"/models", "", key...)
			if status != 200 || !strings.HasPrefix(body, `{"object":"list","data":[{"id":"@`) {
				t.Errorf("%s/models with %v: %d %.300s", base, key, status, body)
			}
		}
	}
	if status, _, body := send("POST", root+"/v1/messages", agentBody, "X-Api-Key", workspaceKey, "Authorization", "Bearer another", "X-Gateway-Provider", "@claude"); status != 200 && status != 401 {
		t.Errorf("two keys: %d %s", status, body)
	}
	for _, probe := range []string{"HEAD /", "HEAD /v1", "HEAD /v1/messages", "GET /inference-profiles?type=SYSTEM_DEFINED", "GET /v1/inference-profiles?type=SYSTEM_DEFINED", "GET /v1/nothing", "GET //v1/models", "GET /v1/models/", "OPTIONS /v1/messages"} {
		method, path, _ := strings.Cut(probe, " ")
		if status, _, body := send(method, root+path, "", "X-Api-Key", workspaceKey); status >= 500 || len(body) > 2000 {
			t.Errorf("%s: %d %.300s", probe, status, body)
		}
	}
}

// Rules 23 and 24: agents in their Bedrock and Vertex forms, byte for byte.
func TestCodingAgentsOfClouds(t *testing.T) {
	t.Parallel()
	r, host := startAgents(t)
	const model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
	of := func(version, more string) string {
		return `{"anthropic_version":"` + version + `","anthropic_beta":["context-1m-2025-08-07"], "max_tokens":9,"of_tomorrow":1,"messages":[{"role":"user","content":"x"}]` + more + `}`
	}
	for _, c := range []struct{ provider, path, body string }{
		{"aws", "/model/" + model + "/invoke", of("bedrock-2023-05-31", "")},
		{"aws", "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke", of("bedrock-2023-05-31", "")},
		{"google", "/projects/proj/locations/us-east5/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict", of("vertex-2023-10-16", "")},
	} {
		host.respond(0, "")
		headers := append(slices.Clone(agentHeaders), "X-Gateway-Provider", "@"+c.provider)
		got := r.call("POST", c.path, c.body, headers...)
		if header, at, body := host.got(); got.status != 200 || got.body != wholeMessage || body != c.body || !strings.HasSuffix(at, c.path) || header.Get("X-Claude-Code-Session-Id") != "" || header.Get("X-Gateway-Provider") != "" {
			t.Errorf("%s: %d %s\n%s got %s", c.path, got.status, got.body, at, body)
		}
		host.respond(429, `{"message":"Too many tokens, please wait before trying again."}`, "Retry-After", "7", "X-Amzn-Errortype", "ThrottlingException")
		got = r.call("POST", c.path, c.body, headers...)
		if got.status != 429 || got.body != `{"message":"Too many tokens, please wait before trying again."}` || got.header.Get("Retry-After") != "7" || got.header.Get("X-Amzn-Errortype") != "ThrottlingException" {
			t.Errorf("%s: %d %s %v", c.path, got.status, got.body, got.header)
		}
	}
	sessions := 0
	for _, rec := range r.byTime(6) {
		if rec.Agent.Session == "session-1" {
			sessions++
		}
	}
	if sessions != 6 {
		t.Errorf("%d of 6 records name the session", sessions)
	}
	// The same turns by the gateway's own route: betas go where the host reads them.
	host.respond(200, `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":1,"totalTokens":4},"metrics":{"latencyMs":1}}`)
	got := r.call("POST", "/messages", fmt.Sprintf(`{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, model), append(slices.Clone(agentHeaders), "X-Gateway-Provider", "@aws", "X-Gateway-Anthropic-Beta", "context-1m-2025-08-07", "X-Gateway-Strict-Open-Ai-Compliance", "false")...)
	if _, _, body := host.got(); got.status != 200 || !strings.Contains(body, `"anthropic_beta":["context-1m-2025-08-07"]`) || !strings.Contains(got.header.Get("X-Gateway-Translation"), "anthropic-beta") {
		t.Errorf("betas for Converse: %d %s: %s", got.status, got.body, body)
	}
	host.respond(0, "")
	got = r.call("POST", "/messages", `{"model":"anthropic.claude-sonnet-4-5@20250929","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, append(slices.Clone(agentHeaders), "X-Gateway-Provider", "@google")...)
	if header, _, body := host.got(); got.status != 200 || header.Get("Anthropic-Beta") != agentBetas {
		t.Errorf("betas for Vertex AI: %d %s: %v %s", got.status, got.body, header, body)
	}
}

func asJSON(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

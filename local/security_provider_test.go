package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestADisabledModelIsRefusedHoweverItIsSent names a model that the integration
// does not allow.
func TestADisabledModelIsRefusedHoweverItIsSent(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"narrow","slug":"narrow","workspace_id":%q,"ai_provider_id":"openai","key":"mock-narrow","configurations":{"custom_host":%q}}`, r.workspace(), r.mockBase()))
	r.admin("PUT", "/integrations/narrow/models?workspace_id="+r.workspace(), `{"allow_all_models":false,"models":[{"slug":"gpt-4o-mini","enabled":true}]}`)
	body := `{"model":"gpt-4o","messages":[{"role":"user","content":"x"}]}`
	before := r.mock.Bill().Total.Requests
	for name, sent := range map[string]string{
		"plain": body, "escaped key": strings.Replace(body, "model", `\u006dodel`, 1), "5 MB of spaces": strings.Replace(body, "{", "{"+strings.Repeat(" ", 5<<20), 1),
	} {
		if got := r.call("POST", "/proxy/chat/completions", sent, "X-Gateway-Provider", "@narrow"); got.status != 403 && got.status != 400 {
			t.Errorf("%s: %d %.100s", name, got.status, got.body)
		}
	}
	got := r.bare(fmt.Sprintf("POST /v1/proxy/chat/completions HTTP/1.1\r\nHost: g\r\nConnection: close\r\nX-Gateway-Api-Key: %s\r\nX-Gateway-Provider: @narrow\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", workspaceKey, len(body), body))
	if got.status != 403 && got.status != 400 {
		t.Errorf("in chunks: %d %.100s", got.status, got.body)
	}
	if n := r.mock.Bill().Total.Requests - before; n != 0 {
		t.Errorf("the provider bills %d calls of a model that is not enabled", n)
	}
}

// TestTheGatewaysKeyStaysHereUnderProvidersNames sends it where clients of other
// providers put theirs.
func TestTheGatewaysKeyStaysHereUnderProvidersNames(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, h := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		for _, way := range [][]string{{"X-Gateway-Provider", "@mock"}, {"X-Gateway-Provider", "anthropic", "X-Gateway-Custom-Host", r.mockBase()}} {
			r.call("POST", "/proxy/echo/x", `{}`, append(way, h, workspaceKey)...)
			r.call("POST", "/messages", chatBody("claude-sonnet-4-5", "Hello", `,"max_tokens":5`), append(way, h, workspaceKey)...)
		}
	}
	for _, req := range r.mock.Requests(1000) {
		if strings.Contains(fmt.Sprint(req.Headers), workspaceKey) {
			t.Errorf("%s: %v", req.Path, req.Headers)
		}
	}
}

// TestAProvidersErrorIsNoPlainTextInTheBooks: providers repeat prompts in errors.
func TestAProvidersErrorIsNoPlainTextInTheBooks(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.call("POST", "/chat/completions", `{"model":"@mock/m","messages":[{"role":"CANARYprompt","content":"x"}]}`, "X-Gateway-Debug", "false")
	if rec := r.records(1)[0]; strings.Contains(rec.ErrorMessage, "CANARYprompt") {
		t.Errorf("the record keeps the provider's words: %q", rec.ErrorMessage)
	}
	if got := r.call("GET", "/logs", ""); strings.Contains(got.body, "CANARYprompt") {
		t.Error("the list of logs shows the provider's words")
	}
}

// TestALogHidesThePasswordOfAnAddress: a custom host with user information is
// rejected, and its log must not show it.
func TestALogHidesThePasswordOfAnAddress(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "x", ""), "X-Gateway-Provider", "openai", "Authorization", "Bearer x", "X-Gateway-Custom-Host", "https://user:CANARYpassword@example.com")
	if got := r.call("GET", "/logs/"+r.records(1)[0].ID, ""); got.status != 200 || strings.Contains(got.body, "CANARYpassword") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestEveryRouteRunsGuardrails: whatever a route accepts and returns, its guardrails are
// asked first whether it may be called at all.
func TestEveryRouteRunsGuardrails(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, field := range []string{"input_guardrails", "before_request_hooks"} {
		for _, s := range rows(t) {
			if s.costs == listed || s.costs == tool { // those of tools ask the workspace's: TestMCPCallsAreGoverned
				continue
			}
			if s.prepare != nil {
				s.path = strings.Replace(s.path, "{id}", s.prepare(r), 1)
			}
			headers := append([]string{"X-Gateway-Config", `{"provider":"@mock","` + field + `":[{"id":"g","default.allowedRequestTypes":{"allowedTypes":["otel"]},"deny":true}]}`}, s.headers...)
			if got := r.call(s.method, s.path, s.body, headers...); got.status != 446 || !strings.Contains(got.body, `Guardrail \"g\", check default.allowedRequestTypes`) {
				t.Errorf("%s %s with %s: %d %.120s", s.method, s.path, field, got.status, got.body)
			}
		}
	}
}

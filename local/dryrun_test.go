package main

import (
	"strings"
	"testing"
)

// dryRun walks a request through and gives the response.
func (r *running) dryRun(body string) map[string]any {
	r.t.Helper()
	got := r.call("POST", "/configs/dry-run", body)
	if got.status != 200 {
		r.t.Fatalf("%d %s", got.status, got.body)
	}
	return got.json(r.t)
}

func TestDryRunShowsNoSecretsAndOnlyTheOwnWorkspace(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.call("POST", "/configs/dry-run", `{"path":"/proxy/echo/x?","body":{"a":1}}`)
	if got.status != 400 || !strings.Contains(got.body, `"path"`) {
		t.Errorf("a path with a query: %d %s", got.status, got.body)
	}
	text := r.call("POST", "/configs/dry-run", `{"config":{"provider":"openai","api_key":"sk-secret-of-the-config"},"path":"/chat/completions","headers":{"authorization":"Bearer sk-secret-of-the-caller","x-gateway-forward-headers":"x-mine","x-mine":"1"},"body":{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}}`)
	if text.status != 200 || strings.Contains(text.body, "sk-secret") || !strings.Contains(text.body, "api.openai.com") {
		t.Errorf("%d %s", text.status, text.body)
	}
	r.tenant("strangers", "admin-of-strangers", "workspace-of-strangers")
	other := r.call("POST", "/configs/dry-run", `{"config":{"provider":"@mock-anthropic-of-nobody"},"path":"/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}}`, "X-Gateway-Api-Key", "workspace-of-strangers")
	if other.status != 200 || member(other.json(t)["targets"].([]any)[0], "error/status") == nil {
		t.Errorf("%d %s", other.status, other.body)
	}
	for name, body := range map[string]string{
		"no path": `{}`, "unknown member": `{"path":"/chat/completions","x":1}`, "a list": `[]`, "admin path": `{"path":"/models","method":"GET"}`, "wrong type": `{"path":7}`,
		"bad status": `{"path":"/chat/completions","assume":[99]}`, "bad header": `{"path":"/chat/completions","headers":{"a b":"c"}}`, "method": `{"path":"/chat/completions","method":"PATCH"}`,
		"line break": "{\"path\":\"/chat/completions\",\"headers\":{\"a\":\"b\\r\\nc: d\"}}", "form": `{"path":"/files","method":"POST"}`,
	} {
		if got := r.call("POST", "/configs/dry-run", body); got.status != 400 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}

// If only saved configuration is accepted, a config can still be tried before it is saved;
// anything else that a request brings is rejected as in a real request.
func TestDryRunTriesConfigsThatCouldNotBeSent(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("PUT", "/admin/organisation/settings", `{"data_plane_security_settings":{"block_inline_config":true}}`)
	const request = `"path":"/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}`
	if got := r.call("POST", "/chat/completions", chatBody("gpt-4o", "Hello", ""), "X-Gateway-Config", `{"provider":"@mock"}`); got.status != 400 || !strings.Contains(got.body, "inline_config_blocked") {
		t.Fatalf("a request: %d %s", got.status, got.body)
	}
	if got := r.dryRun(`{"config":{"provider":"@mock"},` + request + `}`); member(got, "error") != nil || len(got["targets"].([]any)) != 1 {
		t.Errorf("a config: %v", got)
	}
	for code, headers := range map[string]string{
		"inline_config_blocked":          `"x-gateway-config":"{\"provider\":\"@mock\"}"`,
		"inline_provider_blocked":        `"x-gateway-provider":"openai"`,
		"inline_custom_host_blocked":     `"x-gateway-provider":"@mock","x-gateway-custom-host":"https://example.com"`,
		"inline_forward_headers_blocked": `"x-gateway-provider":"@mock","x-gateway-forward-headers":"x-a"`,
		"inline_provider_url_blocked":    `"x-gateway-provider":"@mock","x-gateway-azure-foundry-url":"https://example.com"`,
	} {
		if got := r.dryRun(`{"config":null,"headers":{` + headers + `},` + request + `}`); member(got, "error/code") != code {
			t.Errorf("%s: %v", code, got)
		}
	}
}

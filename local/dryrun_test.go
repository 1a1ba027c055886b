package main

import (
	"fmt"
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

func TestDryRunReportsTheRequestAndSendsNothing(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("POST", "/configs", fmt.Sprintf(`{"name":"spare","workspace_id":%q,"config":{"strategy":{"mode":"fallback","on_status_codes":[429,503]},"retry":{"attempts":2},
		"targets":[{"provider":"@mock","override_params":{"model":"gpt-4o","temperature":0.5}},{"provider":"@mock-anthropic","override_params":{"model":"claude-sonnet-4-5"},"request_timeout":5000}]}}`, r.workspace()))
	slug := ""
	for _, c := range r.admin("GET", "/configs?workspace_id="+r.workspace(), "")["data"].([]any) {
		slug = c.(map[string]any)["slug"].(string)
	}
	const request = `"path":"/chat/completions","headers":{"x-gateway-metadata":"{\"team\":\"ads\"}"},"body":{"model":"x","messages":[{"role":"user","content":"Hello"}],"logit_bias":{"1":2},"max_tokens":9}`

	got := r.dryRun(fmt.Sprintf(`{"config":%q,%s}`, slug, request))
	targets := got["targets"].([]any)
	if got["sent"] != false || got["error"] != nil || len(targets) != 1 || member(got, "config/slug") != slug || member(got, "config/mode") != "fallback" {
		t.Fatalf("%v", got)
	}
	first := targets[0]
	for path, want := range map[string]any{
		"path": "config.targets[0]", "provider": "openai", "slug": "mock", "model": "gpt-4o", "method": "POST", "stream": false, "retries": 2.0, "assumed_status": 200.0,
		"body/model": "gpt-4o", "body/temperature": 0.5, "body/logit_bias/1": 2.0, "price_bound/priced": true, "error": nil, "headers/Content-Type": "application/json",
	} {
		if member(first, path) != want {
			t.Errorf("%s is %v, want %v", path, member(first, path), want)
		}
	}
	if cents, _ := member(first, "price_bound/cents").(float64); cents <= 0 || !strings.HasSuffix(member(first, "url").(string), "/chat/completions") {
		t.Errorf("%v", first)
	}

	got = r.dryRun(fmt.Sprintf(`{"config":%q,"assume":[503],%s}`, slug, request))
	targets = got["targets"].([]any)
	if len(targets) != 2 {
		t.Fatalf("%d targets: %v", len(targets), got)
	}
	second := targets[1]
	for path, want := range map[string]any{
		"path": "config.targets[1]", "provider": "anthropic", "model": "claude-sonnet-4-5", "timeout_ms": 5000.0, "body/model": "claude-sonnet-4-5", "body/max_tokens": 9.0,
	} {
		if member(second, path) != want {
			t.Errorf("%s is %v, want %v", path, member(second, path), want)
		}
	}
	if losses := second.(map[string]any)["losses"].([]any); len(losses) != 1 || member(losses[0], "path") != "logit_bias" {
		t.Errorf("losses %v", losses)
	}

	got = r.dryRun(`{"config":{"strategy":{"mode":"fallback"},"targets":[{"provider":"@nobody"},{"provider":"@mock"}]},` + request + `}`)
	targets = got["targets"].([]any)
	if len(targets) != 2 || member(targets[0], "error/status") == nil || member(targets[1], "error") != nil || member(got, "decision/skips").([]any)[0].(map[string]any)["reason"] != "refused" {
		t.Errorf("a missing provider: %v", got)
	}
	if got = r.dryRun(`{"path":"/chat/completions","body":{"model":"@mock/gpt-4o"}}`); member(got, "error/status") != 400.0 || member(got, "error/field") != "messages" {
		t.Errorf("a bad body: %v", got)
	}
	if got = r.dryRun(`{"config":{"strategy":{"mode":"magic"}},` + request + `}`); member(got, "error/status") != 400.0 {
		t.Errorf("a bad config: %v", got)
	}
	if n := len(r.mock.Requests(100)); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
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

func TestDryRunReportsAllErrorsOfAConfig(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.dryRun(`{"config":{"strategy":{"mode":"best"},"retry":{"attempts":"x"},"targets":[{"weight":-1}]},"path":"/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}}`)
	var fields []string
	errors, _ := member(got, "error/errors").([]any)
	for _, e := range errors {
		fields = append(fields, member(e, "field").(string))
	}
	if want := "strategy.mode retry.attempts targets[0].weight"; strings.Join(fields, " ") != want || member(got, "error/code") != "invalid_config" {
		t.Errorf("%v", got)
	}
	if member(got, "decision/draws") == nil {
		t.Error("no list of draws")
	}
}

// The credential's header is shown and its value is not; one that is missing is
// told.
func TestDryRunShowsThePlaceOfCredentials(t *testing.T) {
	t.Parallel()
	r := start(t)
	send := func(config string) any {
		t.Helper()
		got := r.dryRun(`{"config":` + config + `,"path":"/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}]}}`)
		return got["targets"].([]any)[0]
	}
	for config, header := range map[string]string{
		`{"provider":"@mock"}`: "Authorization", `{"provider":"@mock-anthropic"}`: "X-Api-Key", `{"provider":"openai","api_key":"sk-secret"}`: "Authorization",
		`{"provider":"bedrock","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret","aws_region":"us-east-1","override_params":{"model":"amazon.nova-lite-v1:0"}}`: "Authorization",
		`{"provider":"openai","api_key":"sk-secret","custom_headers":{"x-team":"sk-secret"}}`:                                                                                      "X-Team",
	} {
		if got := send(config); member(got, "headers/"+header) != "*****" {
			t.Errorf("%s: %v", config, got)
		}
	}
	if got := send(`{"provider":"openai"}`); member(got, "error/status") == nil {
		t.Errorf("without a key: %v", got)
	}
	if n := len(r.mock.Requests(100)); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestDryRunDoesNotResolveProfiles(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.bedrock("bedrock", bedrockKeys)
	r.mock.Reset()
	got := r.dryRun(`{"path":"/chat/completions","body":{"model":"@bedrock/arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/claude","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}}`)
	if targets := got["targets"].([]any); len(targets) != 1 || member(targets[0], "error") != nil || member(targets[0], "provider") != "bedrock" {
		t.Errorf("%v", got)
	}
	if n := len(r.mock.Requests(100)); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/provider"
)

// listener counts who calls it.
func listener(t *testing.T) (url string, calls *atomic.Int64) {
	calls = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { calls.Add(1); w.WriteHeader(500) }))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// credentialForms are the ways in which a config can hold something of a
// provider's credential.
func credentialForms(p *provider.Provider) []map[string]any {
	forms := []map[string]any{{"api_key": "CANARYkey"}, {"custom_headers": map[string]any{"X-Secret": "CANARYkey"}}}
	for i := range p.Fields {
		if f := &p.Fields[i]; f.Part()&provider.Opens != 0 {
			forms = append(forms, map[string]any{f.Name: "CANARYkey"})
		}
	}
	return forms
}

// addressesOf are the headers that move requests to a provider.
func addressesOf(p *provider.Provider, stranger string) map[string]string {
	all := map[string]string{"x-gateway-custom-host": stranger}
	for i := range p.Fields {
		f := &p.Fields[i]
		if f.Part()&provider.HostField == 0 || f.HeaderName() == "" {
			continue
		}
		all[f.HeaderName()] = "evil"
		if f.Form == provider.BaseURL {
			all[f.HeaderName()] = stranger
		}
	}
	return all
}

// Everything that can be saved against everything that can name an address.
//
//lane:exhaustive
func TestNothingSavedGoesToAnAddressOfTheCaller(t *testing.T) {
	t.Parallel()
	r := start(t)
	stranger, calls := listener(t)
	pairs := 0
	refused := func(what, field string, got reply) {
		t.Helper()
		pairs++
		if got.status != 400 || got.header.Get("X-Gateway-Error-Code") != "blocked_host" || !strings.Contains(got.body, field) {
			t.Errorf("%s with %s: %d %s", what, field, got.status, got.body)
		}
	}
	body := chatBody("gpt-4o-mini", "Hello", "")
	for _, p := range provider.All() {
		if len(addressesOf(p, "")) == 1 && p.ID != "openai" && p.ID != "modal" {
			continue // like openai
		}
		for i, fields := range credentialForms(p) {
			fields["provider"] = p.ID
			if p.ID == "vertex-ai" {
				fields["vertex_region"], fields["vertex_project_id"] = "us-central1", "mine"
			}
			config, _ := json.Marshal(fields)
			slug := r.saveConfig(string(config))
			for header, value := range addressesOf(p, stranger) {
				what := fmt.Sprintf("%s %s", p.ID, config)
				own := []string{"X-Gateway-Config", slug, strings.ToUpper(header), value}
				refused(what, header, r.call("POST", "/chat/completions", body, own...))
				if i == 0 {
					refused(what, header, r.call("POST", "/chat/completions", body, append(own, "Authorization", "Bearer mine")...))
					refused(what, header, r.call("POST", "/proxy/v1/chat/completions", body, own...))
					refused(what, header, r.call("POST", "/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}`, own...))
					refused(what, header, r.call("POST", "/audio/transcriptions", form("model", "whisper-1", "file", "a.mp3:abc"), append(own, formType...)...))
					dry := r.dryRun(fmt.Sprintf(`{"config":%q,"path":"/chat/completions","headers":{%q:%q},"body":%s}`, slug, header, value, body))
					if code := member(dry["targets"].([]any)[0], "error/code"); code != "blocked_host" {
						t.Errorf("dry run of %s with %s: %v", what, header, dry)
					}
				}
			}
			if p.ID == "azure-openai" {
				refused(fmt.Sprint(fields), "azure_resource_name", r.call("POST", "/proxy/evil.openai.azure.com/openai/deployments", body, "X-Gateway-Config", slug))
				refused(fmt.Sprint(fields), "azure_resource_name", r.call("POST", "/proxy/https://EVIL.openai.azure.com/openai/deployments", body, "X-Gateway-Config", slug))
			}
		}
	}
	if calls.Load() != 0 {
		t.Errorf("the stranger was called %d times", calls.Load())
	}
	if pairs < 150 {
		t.Errorf("%d pairs", pairs)
	}
}

// A config without a provider leaves it to the request who is given its key.
func TestTheRequestDoesNotChooseTheHostOfASavedKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	slug := r.saveConfig(fmt.Sprintf(`{"api_key":"CANARYkey","custom_host":%q}`, r.mockBase()))
	got := r.call("POST", "/chat/completions", chatBody("m", "x", ""), "X-Gateway-Config", slug, "X-Gateway-Provider", "openai")
	if got.status != 400 || !strings.Contains(got.body, "x-gateway-provider") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A saved provider against addresses in headers, in a config that comes along, and
// in the options of a batch; with a default config that may not be replaced too.
func TestASavedProviderStaysAtItsAddress(t *testing.T) {
	t.Parallel()
	r := start(t)
	stranger, calls := listener(t)
	r.admin("POST", "/integrations", `{"name":"az","slug":"az","ai_provider_id":"azure-openai","key":"CANARYkey","configurations":{"azure_auth_mode":"default","azure_resource_name":"mine","azure_deployment_config":[{"azure_deployment_name":"d","azure_api_version":"2024-10-21","alias":"d","is_default":true,"azure_model_slug":"gpt-4o"}]}}`)
	r.admin("POST", "/integrations", `{"name":"hf","slug":"hf","ai_provider_id":"huggingface","key":"CANARYkey"}`)
	r.admin("POST", "/integrations", `{"name":"br","slug":"br","ai_provider_id":"bedrock","configurations":{"aws_auth_type":"accessKey","aws_access_key_id":"AKIAABCDEFGHIJKLMNOP","aws_secret_access_key":"CANARYkey","aws_region":"us-east-1"}}`)
	for _, slug := range []string{"az", "hf", "br"} {
		r.admin("PUT", "/integrations/"+slug+"/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	}
	body := chatBody("d", "Hello", "")
	for _, c := range []struct{ slug, header, field, value string }{
		{"az", "x-gateway-azure-resource-name", "azure_resource_name", "evil"}, {"az", "x-gateway-azure-resource-name", "resource_name", "evil"},
		{"az", "x-gateway-azure-entra-tenant-id", "azure_entra_tenant_id", "evil"},
		{"hf", "x-gateway-huggingface-base-url", "huggingface_base_url", stranger},
		{"br", "x-gateway-aws-region", "aws_region", "evil"}, {"br", "x-gateway-aws-role-arn", "aws_role_arn", "arn:aws:iam::123456789012:role/x"},
	} {
		inline := fmt.Sprintf(`{"strategy":{"mode":"fallback"},"targets":[{"strategy":{"mode":"single"},"targets":[{"provider":"@%s",%q:%q}]}]}`, c.slug, c.field, c.value)
		nested := fmt.Sprintf(`{"custom_host":%q,"targets":[{"provider":"@%s"}],"strategy":{"mode":"single"}}`, stranger, c.slug)
		for field, headers := range map[string][]string{
			c.header:      {"X-Gateway-Provider", "@" + c.slug, c.header, c.value},
			c.field:       {"X-Gateway-Config", inline},
			"custom_host": {"X-Gateway-Config", nested},
		} {
			for _, path := range []string{"/chat/completions", "/proxy/chat/completions"} {
				if got := r.call("POST", path, body, headers...); got.status != 400 || got.header.Get("X-Gateway-Error-Code") != "blocked_host" || !strings.Contains(got.body, field) {
					t.Errorf("%s %v, %s: %d %v %s", path, headers, field, got.status, got.header, got.body)
				}
			}
		}
	}
	if got := r.call("POST", "/proxy/evil.openai.azure.com/openai/x", body, "X-Gateway-Provider", "@az"); got.status != 400 || !strings.Contains(got.body, "azure_resource_name") {
		t.Errorf("%d %s", got.status, got.body)
	}
	// What is saved may be said again.
	if dry := r.dryRun(`{"path":"/chat/completions","headers":{"x-gateway-provider":"@br","x-gateway-aws-region":"US-EAST-1"},"body":` + body + `}`); member(dry["targets"].([]any)[0], "error") != nil {
		t.Errorf("%v", dry)
	}
	if calls.Load() != 0 {
		t.Errorf("the stranger was called %d times", calls.Load())
	}
}

// The rows of a batch bring no address either.
func TestOptionsOfABatchMoveNothing(t *testing.T) {
	t.Parallel()
	r := start(t)
	stranger, calls := listener(t)
	file := r.storeRows(workspaceKey, chatRows(2, "gpt-4o-mini", greeting))
	for _, name := range []string{"x-gateway-custom-host", "x-gateway-azure-foundry-url", "x-gateway-huggingface-base-url", "X-Gateway-Custom-Host"} {
		got := r.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"immediate","gateway_options":{"x-gateway-virtual-key":"mock",%q:%q}}`, file, name, stranger), asGateway(workspaceKey)...)
		if got.status != 400 || !strings.Contains(got.body, strings.ToLower(name)) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	config := fmt.Sprintf(`{"provider":"@mock","custom_host":%q}`, stranger)
	id := r.runBatch(workspaceKey, file, fmt.Sprintf(`,"gateway_options":{"x-gateway-config":%s}`, config))
	ended := r.ended(workspaceKey, id)
	if n := member(ended, "request_counts/failed"); n != 2.0 {
		t.Errorf("%v", ended)
	}
	if calls.Load() != 0 {
		t.Errorf("the stranger was called %d times", calls.Load())
	}
}

// A credential of the caller's own goes where the caller says.
func TestACallersOwnCredentialMayBeMoved(t *testing.T) {
	t.Parallel()
	r := start(t)
	stranger, calls := listener(t)
	slug := r.saveConfig(`{"provider":"openai","retry":{"attempts":0},"override_params":{"temperature":0}}`)
	for _, headers := range [][]string{
		{"X-Gateway-Config", slug, "Authorization", "Bearer mine", "X-Gateway-Custom-Host", stranger},
		{"X-Gateway-Provider", "openai", "Authorization", "Bearer mine", "X-Gateway-Custom-Host", stranger},
		{"X-Gateway-Config", fmt.Sprintf(`{"provider":"huggingface","api_key":"mine","huggingface_base_url":%q}`, stranger)},
	} {
		before := calls.Load()
		if got := r.call("POST", "/chat/completions", chatBody("m", "x", ""), headers...); calls.Load() == before {
			t.Errorf("%v: %d %s", headers, got.status, got.body)
		}
	}
}

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/shared/egress"
)

// unset takes a variable away until the test ends.
func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "")
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

// TestExplicitListsAreWholeLists: when one list is given, the default of the other does not
// widen it, except for the built-in mock provider. In a row: it sets the environment.
func TestExplicitListsAreWholeLists(t *testing.T) {
	const mock = "127.0.0.1:4567"
	for _, c := range []struct {
		allow, trusted string // "-" is unset
		nets, hosts    []string
	}{
		{"-", "-", []string{"127.0.0.0/8", "::1/128"}, append(egress.DefaultTrusted(false), mock)},
		{"10.0.0.0/8", "-", []string{"10.0.0.0/8"}, []string{mock}},
		{"", "-", nil, []string{mock}},
		{"-", "gpu.lan", []string{"127.0.0.0/8", "::1/128"}, []string{"gpu.lan", mock}},
		{"10.0.0.0/8", "gpu.lan", []string{"10.0.0.0/8"}, []string{"gpu.lan", mock}},
		{"", "", nil, []string{mock}},
	} {
		for name, value := range map[string]string{"GATEWAY_EGRESS_ALLOW": c.allow, "TRUSTED_CUSTOM_HOSTS": c.trusted} {
			if value == "-" {
				unset(t, name)
			} else {
				t.Setenv(name, value)
			}
		}
		p, err := egressPolicy("127.0.0.1:8787", mock)
		if err != nil {
			t.Fatal(err)
		}
		var nets []string
		for _, n := range p.Allow {
			nets = append(nets, n.String())
		}
		if !slices.Equal(nets, c.nets) || !slices.Equal(p.TrustedHosts, c.hosts) {
			t.Errorf("allow %q, trusted %q: %v and %v", c.allow, c.trusted, nets, p.TrustedHosts)
		}
		// Functions get what this process has.
		if _, trusted := functionEgress(mock); trusted != strings.Join(c.hosts, ",") {
			t.Errorf("allow %q, trusted %q: functions get %s, not %v", c.allow, c.trusted, trusted, c.hosts)
		}
	}
}

// TestTrustedHostsAreForCustomHostsAlone: nothing else that dials reaches them, in any of
// the forms that name an address. In a row: it sets the environment.
func TestTrustedHostsAreForCustomHostsAlone(t *testing.T) {
	t.Setenv("GATEWAY_EGRESS_ALLOW", "")
	t.Setenv("TRUSTED_CUSTOM_HOSTS", "127.0.0.1,localhost")
	r := start(t)
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	r.bedrock("bedrock", bedrockKeys)
	r.save("google", `"ai_provider_id":"google","key":"mock-google","configurations":{"custom_host":"`+host+`"}`)

	// A custom host reaches its address, saved and brought along, and no further.
	var custom, inside atomic.Int64
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		custom.Add(1)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi"}}]}`)
	}))
	defer own.Close()
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		inside.Add(1)
		_, _ = w.Write(picture)
	}))
	defer secret.Close()
	if got := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Provider", "openai", "Authorization", "Bearer mine", "X-Gateway-Custom-Host", own.URL+"/v1"); got.status != 200 || custom.Load() != 1 {
		t.Fatalf("a trusted custom host: %d %s", got.status, got.body)
	}
	own.Config.Handler = http.RedirectHandler(secret.URL+"/a.png", http.StatusTemporaryRedirect)
	r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Provider", "openai", "Authorization", "Bearer mine", "X-Gateway-Custom-Host", own.URL+"/v1")

	// Media, at the trusted address and where its custom host has connections.
	localhost := strings.Replace(secret.URL, "127.0.0.1", "localhost", 1)
	for _, address := range []string{secret.URL + "/a.png", localhost + "/a.png", own.URL + "/a.png", host + "/v1/models"} {
		for _, model := range []string{"@bedrock/" + bedrockClaude, "@google/gemini-2.5-flash"} {
			for path, body := range map[string]string{
				"/chat/completions": withImages(model, "x", address),
				"/messages":         `{"model":"` + model + `","max_tokens":50,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"` + address + `"}}]}]}`,
				"/responses":        `{"model":"` + model + `","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + address + `"},{"type":"input_file","file_url":"` + address + `"}]}]}`,
			} {
				r.mock.Reset()
				if got := r.call("POST", path, body); got.status != 400 || !strings.Contains(got.body, "blocked_host") || len(r.mock.Requests(1)) != 0 {
					t.Errorf("%s %s: %d %s", path, address, got.status, got.body)
				}
			}
		}
	}

	// Token services: their addresses are set by who runs the gateway, and need the
	// list of what may be dialled.
	t.Setenv("AWS_ENDPOINT_URL_STS", secret.URL)
	t.Setenv("GATEWAY_GOOGLE_STS_URL", secret.URL)
	t.Setenv("GATEWAY_GOOGLE_IAM_URL", secret.URL)
	t.Setenv("AZURE_AUTHORITY_HOST", secret.URL)
	r.save("role", `"ai_provider_id":"bedrock","configurations":{"aws_auth_type":"assumedRole","aws_role_arn":"arn:aws:iam::123456789012:role/x","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret","aws_region":"us-east-1","custom_host":"`+host+`"}`)
	r.save("workload", `"ai_provider_id":"vertex-ai","configurations":{"vertex_auth_type":"workload","vertex_region":"us-central1","vertex_project_id":"proj","custom_host":"`+host+`","vertex_workload_audience":"//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/aws","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret"}`)
	r.save("entra", `"ai_provider_id":"azure-openai","configurations":{"azure_auth_mode":"entra","azure_entra_tenant_id":"5f0f5f0f-0000-0000-0000-000000000000","azure_entra_client_id":"5f0f5f0f-0000-0000-0000-000000000001","azure_entra_client_secret":"mock-secret","azure_resource_name":"res","custom_host":"`+host+`","azure_deployment_config":[{"azure_deployment_name":"d","azure_api_version":"2024-10-21","azure_model_slug":"gpt-4o-mini","is_default":true}]}`)
	for slug, model := range map[string]string{"role": bedrockClaude, "workload": "gemini-2.5-flash", "entra": "gpt-4o-mini"} {
		if got := r.call("POST", "/chat/completions", chatBody("@"+slug+"/"+model, "Hello", "")); !strings.Contains(got.body, "blocked_host") {
			t.Errorf("%s: %d %s", slug, got.status, got.body)
		}
	}
	if inside.Load() != 0 {
		t.Errorf("%d requests reached a host that is no custom host", inside.Load())
	}
}

// TestTrustedHostsMayBeMCPServers: when they are registered and when they are called; the
// address of their tokens may not.
// In a row: it sets the environment.
func TestTrustedHostsMayBeMCPServers(t *testing.T) {
	t.Setenv("GATEWAY_EGRESS_ALLOW", "")
	t.Setenv("TRUSTED_CUSTOM_HOSTS", "127.0.0.1")
	r := start(t)
	up, _ := mcpServer(t, sessions)
	_, integration := r.registerMCP("tools", up.URL, "")
	r.wantStatus("asked", r.call("POST", "/mcp-integrations/"+integration+"/test?workspace_id=default", "", "X-Gateway-Api-Key", adminKey), 200, `"success":true`)
	got, err := r.connectMCP("tools", sessions, nil).CallTool(t.Context(), &sdk.CallToolParams{Name: "tool1", Arguments: map[string]any{"text": "x"}})
	if err != nil || got.IsError {
		t.Errorf("%+v %v", got, err)
	}
	var inside atomic.Int64
	tokens := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }))
	defer tokens.Close()
	r.admin("POST", "/mcp-integrations", fmt.Sprintf(`{"name":"grants","slug":"grants","url":%q,"auth_type":"oauth_client_credentials","transport":"http","workspace_id":"default","configurations":{"oauth_metadata":{"token_endpoint":%q,"client_id":"c","client_secret":"s"}}}`, up.URL, tokens.URL))
	if inside.Load() != 0 {
		t.Error("the address of tokens was called")
	}
}

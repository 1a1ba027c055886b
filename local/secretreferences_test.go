package main

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/testkit/managertest"
)

// referTo makes a reference to a secret of a Vault server, and a saved provider of
// the mock whose key is that secret.
func (r *running) referTo(server *managertest.Vault, path, slug string, more string) {
	r.t.Helper()
	r.admin("POST", "/secret-references", fmt.Sprintf(`{"name":"Key","slug":%q,"manager_type":"hashicorp_vault","secret_path":%q,"auth_config":{"vault_auth_type":"token","vault_addr":%q,"vault_token":"hvs.of-the-gateway"}%s}`, slug, path, server.URL, more))
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Mapped","slug":%q,"workspace_id":%q,"ai_provider_id":"openai","default_provider_slug":%q,"configurations":{"custom_host":%q},
		"secret_mappings":[{"target_field":"key","secret_reference_id":%q,"secret_key":"api_key"}]}`, slug, r.workspace(), slug, r.mock.URL()+"/v1", slug))
}

// keysSent are the keys that the mock provider was called with, in order.
func (r *running) keysSent() (keys []string) {
	for _, got := range r.mock.Requests(100) {
		keys = append(keys, strings.TrimPrefix(got.Headers.Get("Authorization"), "Bearer "))
	}
	return keys
}

// A provider's key that is kept in a secret manager is fetched when a request needs
// it, and never stored, shown or logged.
func TestAKeyInASecretManagerOpensItsProvider(t *testing.T) {
	t.Parallel()
	server := managertest.NewVault(t, time.Now)
	server.Tokens["hvs.of-the-gateway"] = time.Time{}
	server.Secrets["secret/data/openai"] = `{"api_key":"sk-CANARY-in-the-vault","org":"o"}`
	r := start(t)
	r.referTo(server, "secret/data/openai", "mapped", "")
	if server.Calls("read") != 0 {
		t.Error("the secret was read before a request needed it")
	}
	chat := func(model string) reply { return r.call("POST", "/chat/completions", chatBody(model, "Hello", "")) }
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := chat("@mapped/gpt-4o-mini"); got.status != 200 {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	wg.Wait()
	if n := server.Calls("read"); n != 1 {
		t.Errorf("%d reads for 8 requests", n)
	}
	for _, k := range r.keysSent() {
		if k != "sk-CANARY-in-the-vault" {
			t.Errorf("the provider was sent %q", k)
		}
	}
	// The manager goes away: what is known still works; what is not is rejected, and
	// tells which reference.
	server.Down(503)
	if got := chat("@mapped/gpt-4o-mini"); got.status != 200 {
		t.Errorf("while the manager is down: %d %s", got.status, got.body)
	}
	r.referTo(server, "secret/data/other", "unknown", "")
	got := chat("@unknown/gpt-4o-mini")
	if got.status != 503 || !strings.Contains(got.body, "The secret reference unknown cannot be read") || strings.Contains(got.body, "hvs.") {
		t.Errorf("%d %s", got.status, got.body)
	}
	server.Down(0)
	eventually(t, func() error {
		if got = chat("@unknown/gpt-4o-mini"); got.status != 502 {
			return fmt.Errorf("%d %s", got.status, got.body)
		}
		return nil
	})
	if !strings.Contains(got.body, "cannot be read: Vault responded with 404") {
		t.Errorf("%d %s", got.status, got.body)
	}
	// A changed reference is seen at once: nothing of the former stands.
	server.Do(func() { server.Secrets["secret/data/next"] = `{"api_key":"sk-CANARY-of-the-next"}` })
	r.admin("PUT", "/secret-references/mapped", `{"secret_path":"secret/data/next"}`)
	if got := chat("@mapped/gpt-4o-mini"); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	keys := r.keysSent()
	if last := keys[len(keys)-1]; last != "sk-CANARY-of-the-next" {
		t.Errorf("the provider was sent %q", last)
	}
	// A rehearsal asks nobody.
	reads := server.Calls("read")
	if got := r.call("POST", "/configs/dry-run", `{"path":"/chat/completions","config":{"provider":"@mapped"},"body":`+chatBody("gpt-4o-mini", "Hello", "")+`}`); strings.Contains(got.body, "CANARY") || server.Calls("read") != reads {
		t.Errorf("%d %s, %d reads", got.status, got.body, server.Calls("read")-reads)
	}
	// A workspace that the reference is closed to uses it no more.
	other := r.admin("POST", "/workspaces", `{"name":"Elsewhere"}`)["id"]
	r.admin("PUT", "/secret-references/mapped", fmt.Sprintf(`{"allowed_workspaces":[%q]}`, other))
	if got := chat("@mapped/gpt-4o-mini"); got.status != 403 || !strings.Contains(got.body, "is not available in this workspace") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, at := range []string{"/secret-references/mapped", "/integrations/mapped?workspace_id=" + r.workspace(), "/audit-logs", "/logs?workspace_id=" + r.workspace()} {
		if got := r.without("GET", at, "", "x-gateway-api-key", adminKey); strings.Contains(got.body, "CANARY") || strings.Contains(got.body, "hvs.of") {
			t.Errorf("%s tells a secret: %s", at, got.body)
		}
	}
}

package mcpservers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/testkit/admintest"
)

// A header from a secret manager is sent. If the server rejects it, the manager is called
// again, although its last response is still valid.
func TestSecretsOfManagersAreResolved(t *testing.T) {
	t.Parallel()
	apart := &admintest.Clock{}
	h, up, vault := newInstallationAt(t, apart.Now), newUpstream(t, false), admintest.NewVault(t, "Bearer one")
	up.want("Bearer one")
	of := h.VaultReference("pass", vault.URL)
	at := "/mcp-integrations/" + register(h, up.URL, `"auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.Authorization","secret_reference_id":"pass"}]`).Text("slug")
	if m := h.Do("GET", at+"/metadata", key, nil).OK(); m.Text("sync_status") != "success" {
		t.Fatalf("%s", m.Body)
	}
	apart.Advance(time.Minute)
	up.want("Bearer two")
	vault.Do(func() { vault.Secrets["kv/a"] = `{"pass":"Bearer two"}` })
	if got := h.Do("POST", at+"/test", key, nil).OK(); got.At("success") != true || vault.Calls("read") != 2 {
		t.Errorf("%s, %d reads", got.Body, vault.Calls("read"))
	}
	up.want("Bearer three")
	if got := h.Do("POST", at+"/test", key, nil).OK(); got.At("success") != false || got.At("status_code") != 401.0 {
		t.Errorf("%s", got.Body)
	}
	vault.Do(func() { delete(vault.Secrets, "kv/a") })
	if got := h.Do("POST", at+"/test", key, nil).OK(); got.At("success") != false {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", at+"?workspace_id="+h.One, chief, `{"secret_mappings":[{"target_field":"configurations.headers.Authorization","secret_reference_id":"nothing"}]}`).RequireFault(400, "AB01", "secret_mappings[0].secret_reference_id")
	if got := h.Users(of); !slices.Equal(got, []string{"MCP_INTEGRATION Up"}) {
		t.Errorf("the reference is used by %v", got)
	}
	h.Do("DELETE", at, key, nil).OK()
	if got := h.Users(of); len(got) > 0 {
		t.Errorf("the reference is still used by %v", got)
	}
}

// A token that the server rejects is dropped and fetched again once.
func TestRejectedTokenIsFetchedAgainOnce(t *testing.T) {
	t.Parallel()
	h, up := newInstallation(t), newUpstream(t, false)
	up.want("Bearer 1")
	var tokenRequests atomic.Int64
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"%d","token_type":"Bearer","expires_in":3600}`, tokenRequests.Add(1))
	}))
	defer issuer.Close()
	body := fmt.Sprintf(`"auth_type":"oauth_client_credentials","configurations":{"oauth_metadata":{"token_endpoint":%q,"client_id":"me","client_secret":"shh-not-told"}}`, issuer.URL)
	at := "/mcp-integrations/" + register(h, up.URL, body).Text("slug")
	tried := func() bool { return h.Do("POST", at+"/test", key, nil).OK().At("success") == true }
	before := tokenRequests.Load()
	up.want(fmt.Sprint("Bearer ", before+2))
	if !tried() || tokenRequests.Load() != before+2 {
		t.Errorf("%d tokens were fetched, not %d", tokenRequests.Load(), before+2)
	}
	before = tokenRequests.Load()
	up.want("Bearer never")
	if tried() || tokenRequests.Load() > before+2 {
		t.Errorf("%d tokens were fetched, and at most %d should be", tokenRequests.Load(), before+2)
	}
}

package agentservers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"gateway/shared/testkit/admintest"
)

// Headers from a secret manager are sent, one or all of them; if the agent rejects them, the
// manager is called again once.
func TestSecretsOfManagersAreResolved(t *testing.T) {
	t.Parallel()
	apart := &admintest.Clock{}
	h, vault := newInstallationAt(t, apart.Now), admintest.NewVault(t, "one")
	var mu sync.Mutex
	wanted := "one"
	want := func(pass string) { mu.Lock(); wanted = pass; mu.Unlock() }
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("X-Agent-Pass") != wanted {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"name":"Agent","url":"https://agent.example.com"}`))
	}))
	defer agent.Close()
	of := h.VaultReference("pass", vault.URL)
	h.Do("POST", "/agent-integrations?workspace_id="+h.One, chief, fmt.Sprintf(`{"name":"Agent","slug":"agent","url":%q,"auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.X-Agent-Pass","secret_reference_id":"pass"}]}`, agent.URL)).OK()
	const at = "/agent-integrations/agent"
	if got := h.Do("GET", at, key, nil).OK(); got.At("sync_status") != "success" {
		t.Fatalf("%s", got.Body)
	}
	apart.Advance(time.Minute)
	want("two")
	vault.Do(func() { vault.Secrets["kv/a"] = `{"pass":"two"}` })
	if got := h.Do("POST", at+"/test", key, nil).OK(); got.At("success") != true || vault.Calls("read") != 2 {
		t.Errorf("%s, %d reads", got.Body, vault.Calls("read"))
	}
	apart.Advance(time.Minute)
	want("never")
	before := vault.Calls("read")
	if got := h.Do("POST", at+"/test", key, nil).OK(); got.At("success") != false || got.At("status_code") != 401.0 || vault.Calls("read") != before+1 {
		t.Errorf("%s, %d reads", got.Body, vault.Calls("read"))
	}
	if got := h.Users(of); !slices.Equal(got, []string{"AGENT_INTEGRATION Agent"}) {
		t.Errorf("the reference is used by %v", got)
	}
	h.Do("DELETE", at, key, nil).OK()
	if got := h.Users(of); len(got) > 0 {
		t.Errorf("the reference is still used by %v", got)
	}
}

package agentservers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/admin/admintest"
	"gateway/shared/resource"
	"gateway/shared/seal/managertest"
	external "gateway/shared/seal/reference"
	"gateway/shared/store"
)

// reference stores a secret reference of the organisation to a member of a secret in a
// server of Vault.
func reference(t testing.TB, h *admintest.House, slug, address string) (of resource.Ref) {
	t.Helper()
	org := store.Scope{Org: admintest.Org}
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		rec := resource.Record{Scope: org, Kind: external.Kind, ID: resource.NewID(), Slug: slug, Name: slug}
		form := external.Reference{ManagerType: external.Vault, Auth: map[string]string{"vault_auth_type": "token", "vault_addr": address}, SecretPath: "kv/a", SecretKey: "pass", AllowAll: true}
		var err error
		if rec.Body, err = json.Marshal(&form); err != nil {
			return err
		}
		if err := rec.SetSecret(context.Background(), admintest.Sealer{}, "vault_token", []byte("hvs.good-token")); err != nil {
			return err
		}
		of = rec.Ref()
		return tx.Create(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// newVault is a server of Vault that has a secret.
func newVault(t testing.TB, secret string) *managertest.Vault {
	v := managertest.NewVault(t, time.Now)
	v.Do(func() {
		v.Tokens["hvs.good-token"] = time.Now().Add(time.Hour)
		v.Secrets["kv/a"] = fmt.Sprintf(`{"pass":%q}`, secret)
	})
	return v
}

// clock is a time that a test moves.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time        { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) later(d time.Duration) { c.ahead.Add(int64(d)) }

// users are the names of what uses a record.
func users(t testing.TB, h *admintest.House, of resource.Ref) (names []string) {
	t.Helper()
	all, err := h.Resources.Users(context.Background(), of)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range all {
		names = append(names, string(by.Kind)+" "+by.Name)
	}
	return names
}

// Headers that a secret manager keeps are sent, one or all of them; when the agent
// refuses them, the manager is asked again, once.
func TestSecretsOfManagersAreResolved(t *testing.T) {
	t.Parallel()
	apart := &clock{}
	h, vault := newHouseAt(t, apart.now), newVault(t, "one")
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
	of := reference(t, h, "pass", vault.URL)
	h.Do("POST", "/agent-integrations", key, fmt.Sprintf(`{"name":"Agent","slug":"agent","url":%q,"auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.X-Agent-Pass","secret_reference_id":"pass"}]}`, agent.URL)).OK()
	const at = "/agent-integrations/agent"
	if got := h.Do("GET", at, key, nil).OK(); got.At("sync_status") != "success" {
		t.Fatalf("%s", got.Body)
	}
	apart.later(time.Minute)
	want("two")
	vault.Do(func() { vault.Secrets["kv/a"] = `{"pass":"two"}` })
	if got := h.Do("POST", at+"/test", key, nil).OK(); got.At("success") != true || vault.Calls("read") != 2 {
		t.Errorf("%s, %d reads", got.Body, vault.Calls("read"))
	}
	apart.later(time.Minute)
	want("never")
	before := vault.Calls("read")
	if got := h.Do("POST", at+"/test", key, nil).OK(); got.At("success") != false || got.At("status_code") != 401.0 || vault.Calls("read") != before+1 {
		t.Errorf("%s, %d reads", got.Body, vault.Calls("read"))
	}
	if got := users(t, h, of); !slices.Equal(got, []string{"AGENT_INTEGRATION Agent"}) {
		t.Errorf("the reference is used by %v", got)
	}
	h.Do("DELETE", at, key, nil).OK()
	if got := users(t, h, of); len(got) > 0 {
		t.Errorf("the reference is still used by %v", got)
	}
}

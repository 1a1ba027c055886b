package mcpservers

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
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

// A header that a secret manager keeps is sent; when the server refuses it, the
// manager is asked again, though what it said would still hold.
func TestSecretsOfManagersAreResolved(t *testing.T) {
	t.Parallel()
	apart := &clock{}
	h, up, vault := newHouseAt(t, apart.now), newUpstream(t, false), newVault(t, "Bearer one")
	up.want("Bearer one")
	of := reference(t, h, "pass", vault.URL)
	at := "/mcp-integrations/" + register(h, up.URL, `"auth_type":"headers","secret_mappings":[{"target_field":"configurations.headers.Authorization","secret_reference_id":"pass"}]`).Text("slug")
	if m := h.Do("GET", at+"/metadata", key, nil).OK(); m.Text("sync_status") != "success" {
		t.Fatalf("%s", m.Body)
	}
	apart.later(time.Minute)
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
	h.Do("PUT", at, key, `{"secret_mappings":[{"target_field":"configurations.headers.Authorization","secret_reference_id":"nothing"}]}`).Refused(400, "AB01", "secret_mappings[0].secret_reference_id")
	if got := users(t, h, of); !slices.Equal(got, []string{"MCP_INTEGRATION Up"}) {
		t.Errorf("the reference is used by %v", got)
	}
	h.Do("DELETE", at, key, nil).OK()
	if got := users(t, h, of); len(got) > 0 {
		t.Errorf("the reference is still used by %v", got)
	}
}

// A token that the server refuses is forgotten and fetched again, once.
func TestATokenThatIsRefusedIsFetchedAgainOnce(t *testing.T) {
	t.Parallel()
	h, up := newHouse(t), newUpstream(t, false)
	up.want("Bearer 1")
	var asked atomic.Int64
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"%d","token_type":"Bearer","expires_in":3600}`, asked.Add(1))
	}))
	defer issuer.Close()
	body := fmt.Sprintf(`"auth_type":"oauth_client_credentials","configurations":{"oauth_metadata":{"token_endpoint":%q,"client_id":"me","client_secret":"shh-not-told"}}`, issuer.URL)
	at := "/mcp-integrations/" + register(h, up.URL, body).Text("slug")
	tried := func() bool { return h.Do("POST", at+"/test", key, nil).OK().At("success") == true }
	before := asked.Load()
	up.want(fmt.Sprint("Bearer ", before+2))
	if !tried() || asked.Load() != before+2 {
		t.Errorf("%d tokens were fetched, not %d", asked.Load(), before+2)
	}
	before = asked.Load()
	up.want("Bearer never")
	if tried() || asked.Load() > before+2 {
		t.Errorf("%d tokens were fetched, and at most %d should be", asked.Load(), before+2)
	}
}

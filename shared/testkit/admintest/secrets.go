package admintest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/resource"
	"gateway/shared/seal/reference"
	"gateway/shared/store"
	"gateway/shared/testkit/managertest"
)

// SecretReference makes a secret reference of Org that is open to all workspaces.
func (h *House) SecretReference(slug string) {
	h.t.Helper()
	rec := resource.Record{Scope: store.Scope{Org: Org}, Kind: reference.Kind, Slug: slug, Name: slug, Status: "active",
		Body: []byte(`{"manager_type":"hashicorp_vault","auth_config":{"vault_auth_type":"token","vault_addr":"https://vault.example.com"},"secret_path":"kv/` + slug + `","allow_all_workspaces":true}`)}
	if err := h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error { rec.ID = ""; return tx.Create(&rec) }); err != nil {
		h.t.Fatal(err)
	}
}

// VaultReference stores a secret reference of Org to a member of the secret that
// NewVault has.
func (h *House) VaultReference(slug, address string) (of resource.Ref) {
	h.t.Helper()
	org := store.Scope{Org: Org}
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		rec := resource.Record{Scope: org, Kind: reference.Kind, ID: resource.NewID(), Slug: slug, Name: slug}
		form := reference.Reference{ManagerType: reference.Vault, Auth: map[string]string{"vault_auth_type": "token", "vault_addr": address}, SecretPath: "kv/a", SecretKey: "pass", AllowAll: true}
		var err error
		if rec.Body, err = json.Marshal(&form); err != nil {
			return err
		}
		if err := rec.SetSecret(context.Background(), Sealer{}, "vault_token", []byte(vaultToken)); err != nil {
			return err
		}
		of = rec.Ref()
		return tx.Create(&rec)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return of
}

const vaultToken = "hvs.good-token"

// NewVault is a server of Vault that has a secret.
func NewVault(t testing.TB, secret string) *managertest.Vault {
	v := managertest.NewVault(t, time.Now)
	v.Do(func() {
		v.Tokens[vaultToken] = time.Now().Add(time.Hour)
		v.Secrets["kv/a"] = fmt.Sprintf(`{"pass":%q}`, secret)
	})
	return v
}

// Clock is a time that a test moves.
type Clock struct{ ahead atomic.Int64 }

// Now is the time of the clock.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Later moves it.
func (c *Clock) Later(d time.Duration) { c.ahead.Add(int64(d)) }

// Users are the kinds and names of what uses a record.
func (h *House) Users(of resource.Ref) (names []string) {
	h.t.Helper()
	all, err := h.Resources.Users(context.Background(), of)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, by := range all {
		names = append(names, string(by.Kind)+" "+by.Name)
	}
	return names
}

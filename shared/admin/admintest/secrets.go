package admintest

import (
	"context"

	"gateway/shared/resource"
	"gateway/shared/seal/reference"
	"gateway/shared/store"
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

package providers

import (
	"fmt"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/testkit/admintest"
)

// manager is a caller with the role manager, with every scope of the role.
func manager(h *admintest.Installation) string {
	c := h.Caller(admintest.ManagerKey)
	c.Scopes = identity.NewScopeSet(membership.ScopesOf(membership.Manager)...)
	h.SetCaller(admintest.ManagerKey, c)
	return admintest.ManagerKey
}

func TestKeysOfVirtualKeysStayAtTheirAddress(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const own, other = "https://own.example.com/v1", "https://attacker.example.com/v1"
	h.Do("POST", "/virtual-keys", key, fmt.Sprintf(`{"name":"x","slug":"x","provider":"openai","key":"sk-saved","custom_host":%q}`, own)).OK()
	for _, name := range []string{"custom_host", "customHost"} {
		h.Do("PUT", "/virtual-keys/x", key, fmt.Sprintf(`{%q:%q}`, name, other)).RequireFault(400, "AB01", name)
		h.Do("PUT", "/virtual-keys/x", key, fmt.Sprintf(`{%q:null}`, name)).RequireFault(400, "AB01", name)
	}
	if of, i := integrationOf(t, h, "x"); i.Configurations["custom_host"] != own || credentialOf(t, &of, i).Key != "sk-saved" {
		t.Errorf("%+v", i.Configurations)
	}
	h.Do("PUT", "/virtual-keys/x", key, fmt.Sprintf(`{"name":"y","custom_host":%q}`, own+"/")).OK()
	h.Do("PUT", "/virtual-keys/x", key, fmt.Sprintf(`{"key":"sk-other","custom_host":%q}`, other)).OK()
	if of, i := integrationOf(t, h, "x"); i.Configurations["custom_host"] != other || credentialOf(t, &of, i).Key != "sk-other" {
		t.Errorf("%+v", i.Configurations)
	}
}

// Mapping a secret reference requires a separate scope. Without read access to references, it
// returns the field that the reference names, and only to the vendor of the provider.
func TestSecretReferencesAreMappedByRight(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.VaultReference("ref", "https://vault.example.com") // names the member pass
	by := manager(h)
	body := func(slug, more string) string {
		return fmt.Sprintf(`{"name":"x","slug":%q,"provider":"openai",%s}`, slug, more)
	}
	mapped := func(more string) string {
		return `"secret_mappings":[{"target_field":"key","secret_reference_id":"ref"` + more + `}]`
	}
	const host = `,"custom_host":"https://attacker.example.com/v1"`
	h.Do("POST", "/virtual-keys", by, body("x", mapped(""))).RequireFault(403, "AB03", "secret_mappings")
	h.Do("POST", "/virtual-keys", by, body("x", mapped(`,"secret_key":"db_password"`)+host)).RequireFault(403, "AB03", "secret_mappings")

	user := "key-user-of-references"
	h.SetCaller(user, admin.Caller{KeyID: "k", Type: string(identity.WorkspaceService), Scope: h.Caller(key).Scope, Scopes: admintest.ScopeList{"virtual_keys.create", "virtual_keys.update", "virtual_keys.read", "secret_references.use"}}.As(identity.RankManager))
	h.Do("POST", "/virtual-keys", user, body("x", mapped(`,"secret_key":"db_password"`))).RequireFault(400, "AB01", "secret_mappings[0].secret_key")
	h.Do("POST", "/virtual-keys", user, body("x", mapped("")+host)).RequireFault(400, "AB01", "custom_host")
	h.Do("POST", "/virtual-keys", user, body("x", mapped(`,"restricted":false`))).OK()
	if _, i := integrationOf(t, h, "x"); !i.SecretMappings[0].Restricted {
		t.Errorf("%+v", i.SecretMappings)
	}
	// A manager can update an existing mapping, but not its address.
	h.Do("PUT", "/virtual-keys/x", by, `{"name":"renamed",`+mapped("")+`}`).OK()
	h.Do("PUT", "/virtual-keys/x", by, `{"name":"renamed"`+host+`}`).RequireFault(400, "AB01", "custom_host")
	h.Do("PUT", "/virtual-keys/x", by, `{`+mapped(`,"secret_key":"db_password"`)+`}`).RequireFault(403, "AB03", "secret_mappings")

	at := "?workspace_id=" + h.One
	h.Do("POST", "/virtual-keys"+at, chief, body("admins", mapped(`,"secret_key":"db_password"`)+host)).OK()
	if _, i := integrationOf(t, h, "admins"); i.SecretMappings[0].Restricted {
		t.Errorf("%+v", i.SecretMappings)
	}
	h.Do("PUT", "/virtual-keys/admins", by, `{"name":"renamed",`+mapped(`,"secret_key":"db_password"`)+host+`}`).OK()
	if _, i := integrationOf(t, h, "admins"); i.SecretMappings[0].Restricted {
		t.Error("an unchanged mapping of an admin was restricted by the update of a manager")
	}
	h.Do("PUT", "/virtual-keys/admins", by, `{"custom_host":"https://other.example.com/v1"}`).RequireFault(400, "AB01", "custom_host")
	// Keys of admins that were made before the scope use was there.
	old := h.Caller(chief)
	old.Scopes = admintest.ScopeList{"virtual_keys.create", "secret_references.read"}
	h.SetCaller("key-old-admin", old)
	h.Do("POST", "/virtual-keys"+at, "key-old-admin", body("old", mapped(`,"secret_key":"db_password"`)+host)).OK()
}

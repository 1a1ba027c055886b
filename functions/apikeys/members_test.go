package apikeys

import (
	"testing"

	"gateway/shared/identity/membership"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// The organization decides what members may do with keys; by default they may see and
// rotate their own.
func TestWhatMembersMayDoWithKeys(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	ann, bob := addUser(t, h, "ann@example.com", membership.Member, h.One), addUser(t, h, "bob@example.com", membership.Member, h.One)
	member := h.Caller(admintest.MemberKey)
	member.UserID = ann
	h.SetCaller("ann", member)
	mine := h.Do("POST", userPath, admintest.AdminKey, userKey(h, ann, "")).OK().Text("id")
	theirs := h.Do("POST", userPath, admintest.AdminKey, userKey(h, bob, "")).OK().Text("id")

	h.SetSettings(tenant.Settings{})
	if got := h.Do("GET", "/api-keys", "ann", nil).OK(); got.At("total") != 1.0 || got.At("data", "0", "id") != mine {
		t.Errorf("a member lists %s", got.Body)
	}
	h.Do("POST", userPath, "ann", userKey(h, ann, "")).RequireFault(403, "AB03", "")
	h.Do("PUT", "/api-keys/"+mine, "ann", `{"name":"x"}`).RequireFault(403, "AB03", "")
	h.Do("DELETE", "/api-keys/"+mine, "ann", nil).RequireFault(403, "AB03", "")
	h.Do("POST", "/api-keys/"+mine+"/rotate", "ann", nil).OK()
	h.Do("POST", "/api-keys/"+theirs+"/rotate", "ann", nil).RequireFault(404, "AB08", "id")

	yes, no := true, false
	h.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{MembersManageAPIKeys: &yes}})
	h.Do("POST", userPath, "ann", userKey(h, ann, "")).OK()
	h.Do("PUT", "/api-keys/"+mine, "ann", `{"name":"x"}`).OK()
	for _, call := range [][3]string{
		{"POST", userPath, userKey(h, bob, "")}, {"POST", "/api-keys/workspace/service", body(h, "")},
		{"PUT", "/api-keys/" + theirs, `{"name":"x"}`}, {"DELETE", "/api-keys/" + theirs, ""},
	} {
		var sent any
		if call[2] != "" {
			sent = call[2]
		}
		if got := h.Do(call[0], call[1], "ann", sent); call[1] == "/api-keys/"+theirs {
			got.RequireFault(404, "AB08", "id")
		} else {
			got.RequireFault(403, "AB03", "")
		}
	}
	h.Do("DELETE", "/api-keys/"+mine, "ann", nil).OK()

	h.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{MembersViewAPIKeys: &no, ManagersManageAPIKeys: &no}})
	h.Do("GET", "/api-keys", "ann", nil).RequireFault(403, "AB03", "")
	h.Do("PUT", "/api-keys/"+theirs, admintest.ManagerKey, `{"name":"x"}`).RequireFault(403, "AB03", "")
	h.Do("PUT", "/api-keys/"+theirs, admintest.WsAdminKey, `{"name":"x"}`).OK()
}

func TestAlertAddressesOfAKey(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	const path = "/api-keys/workspace/service"
	for more, field := range map[string]string{
		`"alert_emails":["nobody"]`: "alert_emails[0]", `"alert_emails":["a@example.com","Ann <b@example.com>"]`: "alert_emails[1]",
		`"alert_emails":"a@example.com"`: "alert_emails", `"alert_emails":[7]`: "alert_emails[0]", `"alert_emails":[null]`: "alert_emails[0]",
	} {
		h.Do("POST", path, admintest.AdminKey, body(h, more)).RequireFault(400, "AB01", field)
	}
	id := h.Do("POST", path, admintest.AdminKey, body(h, `"alert_emails":["a@example.com","b@example.com"]`)).OK().Text("id")
	at := "/api-keys/" + id
	if got := h.Do("GET", at, admintest.AdminKey, nil).OK(); got.At("alert_emails", "1") != "b@example.com" {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", at, admintest.AdminKey, `{"name":"n"}`).OK()
	if got := h.Do("GET", at, admintest.AdminKey, nil).OK(); got.At("alert_emails", "0") != "a@example.com" {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", at, admintest.AdminKey, `{"alert_emails":null}`).OK()
	if got := h.Do("GET", at, admintest.AdminKey, nil).OK(); got.At("alert_emails", "0") != nil {
		t.Errorf("%s", got.Body)
	}
}

// A later schema does not apply to unchanged metadata.
func TestMetadataIsJudgedWhenItChanges(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	at := "/api-keys/" + h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK().Text("id")
	h.SetSettings(tenant.Settings{KeyMetadata: &tenant.MetadataSchema{Type: "object", Required: []string{"team"}}})
	h.Do("PUT", at, admintest.AdminKey, `{"defaults":{"allow_config_override":false}}`).OK()
	h.Do("PUT", at, admintest.AdminKey, `{"defaults":{"metadata":{"a":"b"}}}`).RequireFault(400, "AB01", "defaults.metadata.team")
	h.Do("PUT", at, admintest.AdminKey, `{"defaults":null}`).RequireFault(400, "AB01", "defaults.metadata.team")
	h.Do("PUT", at, admintest.AdminKey, `{"defaults":{"metadata":{"team":"b"}}}`).OK()
}

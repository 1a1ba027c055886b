package organisation

import (
	"slices"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// The keys of tokens can authenticate any user, so only owners set them; and no caller grants a
// role permissions beyond its own credential.
func TestSettingsGiveNothingThatTheCallerLacks(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, New())
	all := store.Scope{Org: admintest.Org}
	set := func(name string, rank identity.Rank, c admin.Caller) { c.Scope = all; h.SetCaller(name, c.As(rank)) }
	set("owner", identity.RankOwner, admin.Caller{UserID: "o", Type: "session", Scopes: membership.AllPermissions})
	set("org-admin", identity.RankOrganisationAdmin, admin.Caller{UserID: "a", Type: "session", Scopes: membership.AllPermissions})
	set("narrow", identity.RankOwner, admin.Caller{KeyID: "k", Type: "organisation-service", Scopes: admintest.ScopeList{"organisation_settings.update", "organisation_settings.read"}})
	for _, c := range []struct {
		body, field string
		may         string // callers, separated by spaces
	}{
		{`{"auth_settings":{"jwks_url":"https://issuer.example.com/jwks"}}`, "auth_settings", "owner"},
		{`{"auth_settings":{"jwks_url":null}}`, "auth_settings", "owner org-admin narrow"},
		{`{"scim_settings":{"group_prefix":"g-"}}`, "scim_settings", "owner org-admin"},
		{`{"security_settings":{"managersManageWorkspace":true}}`, "security_settings", "owner org-admin"},
		{`{"security_settings":{"membersWriteConfigs":true}}`, "security_settings", "owner org-admin"},
		{`{"security_settings":{"organisationAdminsViewLogs":false,"organisationAdminsViewLogMetadata":false}}`, "", "owner org-admin narrow"},
		{`{"security_settings":{"organisationAdminsViewLogs":true}}`, "security_settings", "owner"},
		{`{"security_settings":{"organisationAdminsViewLogs":false,"membersViewLogs":false}}`, "", "owner org-admin narrow"},
		{`{"request_logging":{"mode":"metrics"}}`, "", "owner org-admin narrow"},
	} {
		for _, caller := range []string{"narrow", "org-admin", "owner"} {
			a := h.Do("PUT", path, caller, c.body)
			if slices.Contains(strings.Fields(c.may), caller) {
				a.OK()
				continue
			}
			a.RequireFault(403, "AB03", c.field)
		}
	}
}

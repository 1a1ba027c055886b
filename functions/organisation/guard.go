package organisation

import (
	"encoding/json"
	"fmt"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/identity/membership"
	"gateway/shared/tenant"
)

// guarded are the members of settings that give permissions, apart from the rights of
// roles, with what the caller must hold to change them.
var guarded = []struct {
	field   string
	members []string
	off     bool // whether removing the value needs no more than the route does
	rights  func() authority.Rights
}{
	// Who chooses the keys signs tokens for every user, with every scope of tokens.
	{"auth_settings", []string{"jwks_url", "jwks"}, true, func() authority.Rights {
		keys := slices.DeleteFunc(identity.ScopesFor(identity.SignedToken), func(s string) bool { return !identity.WorkspaceService.Grantable(s) })
		return authority.Rights{Rank: identity.RankOwner, Scopes: keys}
	}},
	// They choose which groups of an identity provider give which role.
	{"scim_settings", []string{"scim_group_prefix", "scim_role_separator", "group_based_user_provisioning", "scim_user_groups", "scim_only_users"}, false, func() authority.Rights {
		return membership.Rights(identity.RankOrganisationAdmin)
	}},
}

// guard checks that a change of settings grants no permission that the caller lacks.
func guard(c *admin.Call, was, now map[string]json.RawMessage) error {
	by := c.Caller.Grantor()
	for _, g := range guarded {
		changes := slices.ContainsFunc(g.members, func(m string) bool {
			removed := now[m] == nil || string(now[m]) == "null"
			return string(now[m]) != string(was[m]) && !(removed && g.off)
		})
		if !changes {
			continue
		}
		if err := by.Grant(g.field, g.rights()); err != nil {
			return err
		}
	}
	before, err := rightsOf(was)
	if err != nil {
		return err
	}
	after, err := rightsOf(now)
	if err != nil {
		return err
	}
	for _, scope := range tenant.Opened(before, after) {
		allowed, decided := before.Rule(string(c.Caller.Rank), scope)
		if decided && !allowed {
			return fault.New(fault.NotAllowed, "security_settings", "goes beyond the rights of the caller, whose role the settings refuse "+scope)
		}
		if tenant.IsView(scope) { // no scope, but what logs.view shows
			scope = "logs.view"
		}
		if !identity.WorkspaceService.Grantable(scope) {
			continue // no credential can use it
		}
		if err := by.Grant("security_settings", authority.Rights{Scopes: []string{scope}}); err != nil {
			return err
		}
	}
	return nil
}

func rightsOf(members map[string]json.RawMessage) (*tenant.Rights, error) {
	raw, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("organisation: settings: %w", err)
	}
	r := new(tenant.Rights)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("organisation: settings: %w", err)
	}
	return r, nil
}

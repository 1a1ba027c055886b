package authority

import (
	"slices"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/identity"
)

func TestGrantIsLimitedByRankAndScopes(t *testing.T) {
	some := identity.NewScopeSet("configs.list")
	for name, c := range map[string]struct {
		by      Grantor
		rights  Permissions
		refused bool
	}{
		"within":                        {Grantor{identity.RankManager, identity.WorkspaceService, some}, Permissions{identity.RankManager, []string{"configs.list"}}, false},
		"another spelling":              {Grantor{identity.RankManager, identity.WorkspaceService, some}, Permissions{identity.RankMember, []string{"gateway.configs:list"}}, false},
		"a rank above":                  {Grantor{identity.RankManager, identity.WorkspaceService, some}, Permissions{identity.RankWorkspaceAdmin, nil}, true},
		"an admin of the organization":  {Grantor{identity.RankWorkspaceAdmin, identity.WorkspaceService, some}, Permissions{identity.RankOrganisationAdmin, nil}, true},
		"no rank":                       {Grantor{"", identity.WorkspaceService, some}, Permissions{identity.RankMember, nil}, true},
		"a scope above":                 {Grantor{identity.RankOwner, identity.WorkspaceService, some}, Permissions{"", []string{"configs.update"}}, true},
		"a data plane scope":            {Grantor{identity.RankOwner, identity.OrganisationService, some}, Permissions{"", []string{"completions.write"}}, false},
		"a scope of organization keys":  {Grantor{identity.RankOwner, identity.OrganisationService, some}, Permissions{"", []string{"configs.update"}}, true},
		"a session lacks what it lacks": {Grantor{identity.RankManager, "session", some}, Permissions{"", []string{"completions.write"}}, true},
		"nothing held":                  {Grantor{Rank: identity.RankOwner}, Permissions{"", []string{"configs.list"}}, true},
	} {
		err := c.by.Grant("role", c.rights)
		if (err != nil) != c.refused || err != nil && (fault.From(err).Code != fault.NotAllowed || fault.From(err).Field != "role") {
			t.Errorf("%s: %v", name, err)
		}
	}
	by := Grantor{identity.RankManager, identity.WorkspaceService, some}
	if err := by.GrantScopes("scopes", []string{"configs.list", "logs.view"}, []string{"logs.view"}); err != nil {
		t.Errorf("a scope from before: %v", err)
	}
	err := fault.From(by.GrantScopes("scopes", []string{"configs.list", "logs.view"}, nil))
	if err == nil || !slices.ContainsFunc(err.Details, func(d fault.Detail) bool { return d.Field == "scopes[1]" }) && err.Field != "scopes[1]" {
		t.Errorf("a scope above: %v", err)
	}
}

// TestOlderKeysGrantScopesThatWereSplitFromTheirs checks that admin keys of existing
// installations, which lack a scope that was added later, keep all that they could grant.
func TestOlderKeysGrantScopesThatWereSplitFromTheirs(t *testing.T) {
	all := identity.ScopesFor(identity.OrganisationService)
	before := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return identity.IncludedIn(s) != s })
	if len(before) == len(all) {
		t.Fatal("no scope is included in another")
	}
	for _, s := range all {
		if in := identity.IncludedIn(s); in != identity.IncludedIn(in) || !identity.OrganisationService.Grantable(in) {
			t.Errorf("%s is included in %s, which no key has or another includes", s, in)
		}
	}
	by := Grantor{identity.RankOwner, identity.OrganisationService, identity.NewScopeSet(before...)}
	if err := by.Grant("role", Permissions{identity.RankOwner, all}); err != nil {
		t.Error(err)
	}
	none := Grantor{identity.RankOwner, identity.OrganisationService, identity.NewScopeSet("secret_references.list")}
	if none.Grant("scopes", Permissions{"", []string{"secret_references.use"}}) == nil {
		t.Error("a key without the including scope grants the other")
	}
}

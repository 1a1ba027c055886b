package identity

import "testing"

// Keys from before ranks were stored get a rank that their creator may have had.
func TestGrantedRanksOfStoredKeys(t *testing.T) {
	for name, c := range map[string]struct {
		key       Key
		createdBy string
		rank      Rank
		personal  bool
	}{
		"a stored rank":                 {Key{Type: WorkspaceService, Rank: RankMember, Scopes: []string{"workspaces.update"}}, "", RankMember, true},
		"a bootstrap organization key":  {Key{Type: OrganisationService}, "", RankOwner, false},
		"a bootstrap workspace key":     {Key{Type: WorkspaceService, Scopes: []string{"logs.list"}}, "", RankWorkspaceAdmin, false},
		"an organization key":           {Key{Type: OrganisationService, Scopes: []string{"organisation_users.update"}}, "u", RankOrganisationAdmin, false},
		"a workspace key":               {Key{Type: WorkspaceService, Scopes: []string{"workspace_users.update"}}, "u", RankManager, false},
		"a workspace key of an admin":   {Key{Type: WorkspaceService, Scopes: []string{"workspaces.update"}}, "u", RankWorkspaceAdmin, false},
		"a user's own key":              {Key{Type: WorkspaceUser, UserID: "u"}, "u", RankOwner, true},
		"a key that came with joining":  {Key{Type: WorkspaceUser, UserID: "u", CreationMode: "auto"}, "x", RankOwner, true},
		"a key in another user's name":  {Key{Type: WorkspaceUser, UserID: "u"}, "x", RankManager, false},
		"the same, with an admin scope": {Key{Type: WorkspaceUser, UserID: "u", Scopes: []string{"gateway.workspaces:update"}}, "x", RankWorkspaceAdmin, false},
	} {
		if rank, personal := c.key.Granted(c.createdBy); rank != c.rank || personal != c.personal {
			t.Errorf("%s: %s %v, want %s %v", name, rank, personal, c.rank, c.personal)
		}
	}
	if got := RankOrganisationAdmin.Min(RankManager); got != RankManager || RankOwner.Min("") != "" {
		t.Errorf("the lower rank is %q", got)
	}
	if RankOrganisationAdmin.Role() != "admin" || RankOwner.Role() != "owner" {
		t.Error("roles of ranks")
	}
}

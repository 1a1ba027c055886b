package tenant

import "testing"

func TestRuleOfEachRight(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		rights      Rights
		role, scope string
		want        string // allowed, denied, or nothing
	}{
		{Rights{}, "member", "configs.read", "allowed"},
		{Rights{}, "member", "configs.update", "denied"},
		{Rights{MembersWriteConfigs: &yes}, "member", "configs.delete", "allowed"},
		{Rights{MembersViewConfigs: &no}, "member", "configs.list", "denied"},
		{Rights{}, "manager", "configs.update", "allowed"},
		{Rights{}, "manager", "workspaces.update", "denied"},
		{Rights{ManagersManageWorkspace: &yes}, "manager", "workspaces.update", "allowed"},
		{Rights{}, "member", "workspaces.update", ""},
		{Rights{MembersWritePrompts: &yes}, "member", "prompts.publish", "allowed"},
		{Rights{}, "member", "prompts.render", ""},
		{Rights{}, "member", "guardrails.update", ""}, // members never write them: the route's role
		{Rights{ManagersWriteGuardrails: &no}, "manager", "guardrails.update", "denied"},
		{Rights{ManagersWriteMCPServers: &no}, "manager", "mcp_servers.create", "denied"},
		{Rights{}, "manager", "mcp_servers.read", ""},
		{Rights{ManagersViewProviders: &no}, "manager", "virtual_keys.list", "denied"},
		{Rights{}, "member", "workspace_user_api_keys.rotate", "allowed"},
		{Rights{}, "member", "workspace_user_api_keys.update", "denied"},
		{Rights{ManagersManageAPIKeys: &no}, "manager", "workspace_user_api_keys.rotate", "denied"},
		{Rights{MembersViewLogs: &no}, "member", "logs.list", "allowed"},
		{Rights{MembersViewLogs: &no}, "member", "logs.export", "denied"},
		{Rights{MembersViewLogs: &no, MembersViewLogMetadata: &no}, "member", "logs.list", "denied"},
		{Rights{MembersViewLogs: &no}, "member", SeeBodies, "denied"},
		{Rights{}, "member", SeeOthers, "allowed"},
		{Rights{ManagersViewAllData: &no}, "manager", SeeOthers, "denied"},
		{Rights{ManagersViewAnalytics: &no}, "manager", "analytics.view", "denied"},
		{Rights{AdminsViewLogs: &no}, OrganisationAdmin, SeeBodies, "denied"},
		{Rights{AdminsViewLogs: &no, MembersViewAllData: &no}, OrganisationAdmin, SeeOthers, ""},
		{Rights{AdminsViewLogs: &no}, OrganisationAdmin, "logs.list", "allowed"},
		{Rights{AdminsViewLogs: &no}, OrganisationAdmin, "configs.update", ""},
		{Rights{AdminsViewLogs: &no, MembersViewLogs: &no}, "admin", SeeBodies, ""},
		{Rights{AdminsViewLogs: &no}, "owner", SeeBodies, ""},
		{Rights{}, "", "configs.update", ""},
	} {
		allowed, decided := c.rights.Rule(c.role, c.scope)
		got := ""
		if decided {
			got = map[bool]string{true: "allowed", false: "denied"}[allowed]
		}
		if got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.role, c.scope, got, c.want)
		}
	}
}

func TestEveryRightHasARule(t *testing.T) {
	for _, r := range AllRights() {
		if r.Category == "" {
			continue // the organization's alone
		}
		o := Open{}
		found := false
		for _, c := range Categories() {
			found = found || c == r.Category
		}
		if !found || CategoryOf(r.Name) != r.Category || o.To(r.Category) {
			t.Errorf("%s: category %q", r.Name, r.Category)
		}
	}
}

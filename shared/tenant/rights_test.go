package tenant

import "testing"

func TestRuleOfEachRight(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		rights      RolePermissions
		role, scope string
		want        string // allowed, denied, or nothing
	}{
		{RolePermissions{}, "member", "configs.read", "allowed"},
		{RolePermissions{}, "member", "configs.update", "denied"},
		{RolePermissions{MembersWriteConfigs: &yes}, "member", "configs.delete", "allowed"},
		{RolePermissions{MembersViewConfigs: &no}, "member", "configs.list", "denied"},
		{RolePermissions{}, "manager", "configs.update", "allowed"},
		{RolePermissions{}, "manager", "workspaces.update", "denied"},
		{RolePermissions{ManagersManageWorkspace: &yes}, "manager", "workspaces.update", "allowed"},
		{RolePermissions{}, "member", "workspaces.update", ""},
		{RolePermissions{MembersWritePrompts: &yes}, "member", "prompts.publish", "allowed"},
		{RolePermissions{}, "member", "prompts.render", ""},
		{RolePermissions{}, "member", "guardrails.update", ""}, // members never write them: the route's role
		{RolePermissions{ManagersWriteGuardrails: &no}, "manager", "guardrails.update", "denied"},
		{RolePermissions{ManagersWriteMCPServers: &no}, "manager", "mcp_servers.create", "denied"},
		{RolePermissions{}, "manager", "mcp_servers.read", ""},
		{RolePermissions{ManagersViewProviders: &no}, "manager", "virtual_keys.list", "denied"},
		{RolePermissions{}, "member", "workspace_user_api_keys.rotate", "allowed"},
		{RolePermissions{}, "member", "workspace_user_api_keys.update", "denied"},
		{RolePermissions{ManagersManageAPIKeys: &no}, "manager", "workspace_user_api_keys.rotate", "denied"},
		{RolePermissions{MembersViewLogs: &no}, "member", "logs.list", "allowed"},
		{RolePermissions{MembersViewLogs: &no}, "member", "logs.export", "denied"},
		{RolePermissions{MembersViewLogs: &no, MembersViewLogMetadata: &no}, "member", "logs.list", "denied"},
		{RolePermissions{MembersViewLogs: &no}, "member", SeeBodies, "denied"},
		{RolePermissions{}, "member", SeeOthers, "allowed"},
		{RolePermissions{ManagersViewAllData: &no}, "manager", SeeOthers, "denied"},
		{RolePermissions{ManagersViewAnalytics: &no}, "manager", "analytics.view", "denied"},
		{RolePermissions{AdminsViewLogs: &no}, OrganisationAdmin, SeeBodies, "denied"},
		{RolePermissions{AdminsViewLogs: &no, MembersViewAllData: &no}, OrganisationAdmin, SeeOthers, ""},
		{RolePermissions{AdminsViewLogs: &no}, OrganisationAdmin, "logs.list", "allowed"},
		{RolePermissions{AdminsViewLogs: &no}, OrganisationAdmin, "configs.update", ""},
		{RolePermissions{AdminsViewLogs: &no, MembersViewLogs: &no}, "admin", SeeBodies, ""},
		{RolePermissions{AdminsViewLogs: &no}, "owner", SeeBodies, ""},
		{RolePermissions{}, "", "configs.update", ""},
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
		o := OverridableCategories{}
		found := false
		for _, c := range Categories() {
			found = found || c == r.Category
		}
		if !found || CategoryOf(r.Name) != r.Category || o.Contains(r.Category) {
			t.Errorf("%s: category %q", r.Name, r.Category)
		}
	}
}

// Package organisation is the family of what an organisation sets for all of its
// workspaces, and what a workspace sets for itself.
package organisation

import (
	"slices"

	"gateway/shared/admin"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

const (
	path          = "/admin/organisation/settings"
	workspacePath = "/admin/workspaces/{id}/settings"
)

// New makes the family.
func New() admin.Family {
	settings := &admin.Singleton[tenant.Settings]{
		Object: "organisation-settings", Path: path, Kind: tenant.KindOrganisation, In: "settings",
		Scope: "organisation_settings", Role: admin.Admin, Title: "settings of the organisation",
		Standard: tenant.Settings{BlockInlineConfig: true},
		Sections: sections(), Changed: tenant.CountOpenings, Guard: guard,
		Recent: []string{"auth_settings", "session_settings", "scim_settings"},
		Overrides: &admin.Overrides[tenant.Settings]{
			Path: workspacePath, Aliases: []string{"/workspaces/{id}/settings"}, Parent: workspaces().AsWorkspace(), Kind: tenant.KindOverrides,
			Scope: "workspaces", Role: admin.Admin, Title: "settings of a workspace",
			Ever:    func(member string) bool { return tenant.CategoryOf(member) != "" },
			Allowed: (*tenant.Settings).Overridable, Effective: (*tenant.Settings).Effective, Mark: (*tenant.Settings).Mark,
		},
	}
	return admin.Family{
		Name: "organisation", Doc: "Settings for requests and callers, of the organization and, if it allows them, of workspaces.",
		Routes: slices.Concat(settings.Routes(), defaultRoutes(), exclusionRoutes()),
	}
}

// workspaces are the workspaces with settings that can be read and changed. Their family serves
// the rest of them.
func workspaces() *admin.Collection[tenant.Workspace] {
	return &admin.Collection[tenant.Workspace]{
		Kind: tenant.KindWorkspace, Object: "workspace", Path: "/admin/workspaces", Scope: "workspaces", Where: admin.Shared,
		Fields: []admin.Field{admin.NameField(tenant.MaxName)},
		May: func(c *admin.Call, _ string, row *resource.Row) bool {
			return c.Caller.OfOrganisation() || c.Caller.Scope.Workspace == row.ID
		},
	}
}

package tenant

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// RolePermissions are the permissions of workspace roles; nil means the defaults. Only the last two
// apply to owners and admins of the organization, and none applies to workspace admins.
type RolePermissions struct {
	MembersViewAllData  *bool `json:"membersViewAllData,omitempty" category:"data_visibility" standard:"true" doc:"false: only logs and analytics of own keys."`
	ManagersViewAllData *bool `json:"managersViewAllData,omitempty" category:"data_visibility" standard:"true" doc:"false: only logs and analytics of own keys."`

	MembersViewAnalytics  *bool `json:"membersViewAnalytics,omitempty" category:"analytics" standard:"true"`
	ManagersViewAnalytics *bool `json:"managersViewAnalytics,omitempty" category:"analytics" standard:"true"`

	MembersViewLogs         *bool `json:"membersViewLogs,omitempty" category:"logs" standard:"true" doc:"Logs with their bodies."`
	MembersViewLogMetadata  *bool `json:"membersViewLogMetadata,omitempty" category:"logs" standard:"true" doc:"Logs without bodies."`
	ManagersViewLogs        *bool `json:"managersViewLogs,omitempty" category:"logs" standard:"true" doc:"Logs with their bodies."`
	ManagersViewLogMetadata *bool `json:"managersViewLogMetadata,omitempty" category:"logs" standard:"true" doc:"Logs without bodies."`

	MembersViewPrompts   *bool `json:"membersViewPrompts,omitempty" category:"prompts" standard:"true"`
	MembersWritePrompts  *bool `json:"membersWritePrompts,omitempty" category:"prompts" standard:"false"`
	ManagersViewPrompts  *bool `json:"managersViewPrompts,omitempty" category:"prompts" standard:"true"`
	ManagersWritePrompts *bool `json:"managersWritePrompts,omitempty" category:"prompts" standard:"true"`

	MembersViewGuardrails   *bool `json:"membersViewGuardrails,omitempty" category:"guardrails" standard:"true"`
	ManagersViewGuardrails  *bool `json:"managersViewGuardrails,omitempty" category:"guardrails" standard:"true"`
	ManagersWriteGuardrails *bool `json:"managersWriteGuardrails,omitempty" category:"guardrails" standard:"true"`

	MembersViewConfigs   *bool `json:"membersViewConfigs,omitempty" category:"configs" standard:"true"`
	MembersWriteConfigs  *bool `json:"membersWriteConfigs,omitempty" category:"configs" standard:"false"`
	ManagersViewConfigs  *bool `json:"managersViewConfigs,omitempty" category:"configs" standard:"true"`
	ManagersWriteConfigs *bool `json:"managersWriteConfigs,omitempty" category:"configs" standard:"true"`

	MembersViewAPIKeys    *bool `json:"membersViewApiKeys,omitempty" category:"api_keys" standard:"true" doc:"Own keys."`
	MembersManageAPIKeys  *bool `json:"membersManageApiKeys,omitempty" category:"api_keys" standard:"false" doc:"Own keys; rotation is always allowed."`
	ManagersViewAPIKeys   *bool `json:"managersViewApiKeys,omitempty" category:"api_keys" standard:"true"`
	ManagersManageAPIKeys *bool `json:"managersManageApiKeys,omitempty" category:"api_keys" standard:"true"`

	MembersViewProviders    *bool `json:"membersViewProviders,omitempty" category:"providers" standard:"true"`
	ManagersViewProviders   *bool `json:"managersViewProviders,omitempty" category:"providers" standard:"true"`
	ManagersManageProviders *bool `json:"managersManageProviders,omitempty" category:"providers" standard:"true"`

	ManagersWriteWsIntegrations    *bool `json:"managersWriteWsIntegrations,omitempty" category:"integrations" standard:"true"`
	ManagersWriteWsMCPIntegrations *bool `json:"managersWriteWsMcpIntegrations,omitempty" category:"integrations" standard:"true"`
	ManagersWriteMCPServers        *bool `json:"managersWriteMcpServers,omitempty" category:"integrations" standard:"true"`

	ManagersManageWorkspace *bool `json:"managersManageWorkspace,omitempty" category:"workspace_management" standard:"false" doc:"Settings and budgets of the workspace."`

	AdminsViewLogs        *bool `json:"organisationAdminsViewLogs,omitempty" standard:"true" doc:"Logs with their bodies."`
	AdminsViewLogMetadata *bool `json:"organisationAdminsViewLogMetadata,omitempty" standard:"true" doc:"Logs without bodies."`
}

// PermissionField describes a field of RolePermissions.
type PermissionField struct {
	Name     string // JSON name
	Category string // the category that allows workspaces to set it; empty if they never may
	Standard bool
	index    int
}

// AllRights lists the permissions in order.
var AllRights = sync.OnceValue(func() []PermissionField {
	t := reflect.TypeFor[RolePermissions]()
	out := make([]PermissionField, t.NumField())
	for i := range out {
		tag := t.Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("json"), ",")
		out[i] = PermissionField{name, tag.Get("category"), tag.Get("standard") == "true", i}
	}
	return out
})

// Has reports whether a permission is granted. known is false for an unknown name.
func (r *RolePermissions) Has(name string) (holds, known bool) {
	for _, right := range AllRights() {
		if right.Name != name {
			continue
		}
		if v := reflect.ValueOf(r).Elem().Field(right.index); !v.IsNil() {
			return v.Elem().Bool(), true
		}
		return right.Standard, true
	}
	return false, false
}

// OrganisationAdmin is the role of an organization admin where it must differ from a workspace
// admin.
const OrganisationAdmin = "organisation-admin"

// prefixes maps roles to the prefixes of permission names.
var prefixes = map[string]string{"member": "members", "manager": "managers", OrganisationAdmin: "organisationAdmins"}

// Parts of logs and analytics that a role may see; they are used like scopes.
const (
	SeeBodies = "see.bodies" // bodies of logs
	SeeOthers = "see.others" // data of other users' keys
)

// subjects maps families of scopes to parts of permission names.
var subjects = map[string]string{
	"prompts": "Prompts", "configs": "Configs", "guardrails": "Guardrails", "analytics": "Analytics",
	"providers": "Providers", "virtual_keys": "Providers", "workspace_service_api_keys": "ApiKeys", "workspace_user_api_keys": "ApiKeys",
	"workspace_integrations": "WsIntegrations", "workspace_mcp_integrations": "WsMcpIntegrations", "mcp_servers": "McpServers",
}

// verbs maps actions to parts of permission names.
var verbs = map[string][]string{
	"list": {"View"}, "read": {"View"}, "view": {"View"},
	"create": {"Write", "Manage"}, "update": {"Write", "Manage"}, "delete": {"Write", "Manage"}, "publish": {"Write", "Manage"}, "duplicate": {"Write", "Manage"}, "copy": {"Write", "Manage"},
}

// Rule returns the settings' decision about a role that uses a scope, such as configs.update.
// decided is false if they leave it to the role.
func (r *RolePermissions) Rule(role, scope string) (allowed, decided bool) {
	who := prefixes[role]
	if who == "" {
		return false, false
	}
	family, action, _ := strings.Cut(scope, ".")
	switch {
	case scope == SeeBodies:
		return r.Has(who + "ViewLogs")
	case scope == SeeOthers:
		return r.Has(who + "ViewAllData")
	case scope == "workspaces.update":
		return r.Has(who + "ManageWorkspace")
	case family == "logs" && (action == "list" || action == "view" || action == "read"):
		all, _ := r.Has(who + "ViewLogs")
		some, _ := r.Has(who + "ViewLogMetadata")
		return all || some, true
	case subjects[family] == "ApiKeys" && action == "rotate":
		if role == "member" {
			return true, true // members rotate only their own keys
		}
		return r.Has(who + "ManageApiKeys")
	case family == "logs" && action == "export":
		return r.Has(who + "ViewLogs")
	}
	for _, verb := range verbs[action] {
		if holds, known := r.Has(who + verb + subjects[family]); known && subjects[family] != "" {
			return holds, true
		}
	}
	return false, false
}

// Opened returns, sorted, the scopes and parts of logs that a role may use under now and might
// not under was.
func Opened(was, now *RolePermissions) (out []string) {
	for family, subject := range subjects {
		for action := range verbs {
			if subject != "" {
				out = append(out, family+"."+action)
			}
		}
	}
	out = append(out, SeeBodies, SeeOthers, "workspaces.update", "logs.list", "logs.view", "logs.read", "logs.export")
	slices.Sort(out)
	return slices.DeleteFunc(out, func(scope string) bool {
		for role := range prefixes {
			before, decided := was.Rule(role, scope)
			after, _ := now.Rule(role, scope)
			if decided && !before && after {
				return false
			}
		}
		return true
	})
}

// IsView reports whether the scope of a rule is a part of logs and analytics, and not a scope
// of keys.
func IsView(scope string) bool { return scope == SeeBodies || scope == SeeOthers }

// OverridableCategories lists the categories of settings that workspaces may override.
type OverridableCategories struct {
	DataVisibility      bool `json:"open_data_visibility,omitempty"`
	Analytics           bool `json:"open_analytics,omitempty"`
	Logs                bool `json:"open_logs,omitempty"`
	Prompts             bool `json:"open_prompts,omitempty"`
	Guardrails          bool `json:"open_guardrails,omitempty"`
	Configs             bool `json:"open_configs,omitempty"`
	APIKeys             bool `json:"open_api_keys,omitempty"`
	Providers           bool `json:"open_providers,omitempty"`
	Integrations        bool `json:"open_integrations,omitempty"`
	WorkspaceManagement bool `json:"open_workspace_management,omitempty"`
	DataPlaneSecurity   bool `json:"open_data_plane_security_settings,omitempty"`
	LoggingMode         bool `json:"open_request_logging,omitempty"`
	Models              bool `json:"open_model_settings,omitempty"`
	UserKeySettings     bool `json:"open_user_api_key_settings,omitempty"`
	Exports             bool `json:"open_export_settings,omitempty"`
}

// Categories lists the names of OverridableCategories in order.
var Categories = sync.OnceValue(func() []string {
	t := reflect.TypeFor[OverridableCategories]()
	out := make([]string, t.NumField())
	for i := range out {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out[i] = strings.TrimPrefix(name, OpenPrefix)
	}
	return out
})

// OpenPrefix is the prefix of categories in the stored form.
const OpenPrefix = "open_"

// Contains reports whether workspaces may override a category.
func (o *OverridableCategories) Contains(category string) bool {
	for i, name := range Categories() {
		if name == category {
			return reflect.ValueOf(o).Elem().Field(i).Bool()
		}
	}
	return false
}

// categories maps settings other than permissions to their category. Settings without one
// belong to the organization only.
var categories = map[string]string{
	"block_inline_config": "data_plane_security_settings",
	"request_logging":     "request_logging", "enforce_debug": "request_logging", "log_retention_days": "request_logging",
	"allowed_models": "model_settings", "denied_export_fields": "export_settings",
	"user_api_key_auto_create": "user_api_key_settings", "user_api_key_ttl": "user_api_key_settings", "user_api_key_max_ttl": "user_api_key_settings",
	"max_user_api_keys": "user_api_key_settings", "user_api_key_rotation_period": "user_api_key_settings",
}

var categoryOf = sync.OnceValue(func() map[string]string {
	out := make(map[string]string)
	for member, c := range categories {
		out[member] = c
	}
	for _, r := range AllRights() {
		if r.Category != "" {
			out[r.Name] = r.Category
		}
	}
	return out
})

// CategoryOf returns the category of a setting by its stored name, or "" if workspaces may
// never override it.
func CategoryOf(member string) string { return categoryOf()[member] }

// Overridable reports whether workspaces may override a setting.
func (s *Settings) Overridable(member string) bool {
	return s.OverridableCategories.Contains(CategoryOf(member))
}

// Package organisation is the family of what an organization sets for all of its
// workspaces, and what a workspace sets for itself.
package organisation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/authority"
	"gateway/shared/identity/jwt"
	"gateway/shared/identity/membership"
	"gateway/shared/pricing"
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
		Scope: "organisation_settings", Role: admin.Admin, Title: "settings of the organization",
		Standard: tenant.Settings{BlockInlineConfig: true},
		Sections: sections(), Guard: guard,
		Changed: func(c *admin.Call, tx *resource.Tx, was, now map[string]json.RawMessage) error {
			if err := vouch(c, tx, was, now); err != nil {
				return err
			}
			return tenant.CountOpenings(was, now)
		},
		Recent: []string{"auth_settings", "session_settings", "scim_settings"},
		Overrides: &admin.Overrides[tenant.Settings]{
			Path: workspacePath, Aliases: []string{"/workspaces/{id}/settings"}, Parent: workspaces().AsWorkspace(), Kind: tenant.KindOverrides,
			Scope: "workspaces", Role: admin.Admin, Title: "settings of a workspace",
			Overridable: func(member string) bool { return tenant.CategoryOf(member) != "" },
			Allowed:     (*tenant.Settings).Overridable, Effective: (*tenant.Settings).Effective, Annotate: (*tenant.Settings).RecordSetTimes,
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
		Kind: tenant.KindWorkspace, Object: "workspace", Path: "/admin/workspaces", Scope: "workspaces", Level: admin.Shared,
		Fields: []admin.Field{admin.NameField(tenant.MaxName)},
		Authorize: func(c *admin.Call, _ string, row *resource.Row) bool {
			return c.Caller.OfOrganisation() || c.Caller.Scope.Workspace == row.ID
		},
	}
}

// guarded are the members of settings that give permissions, apart from the rights of
// roles, with what the caller must hold to change them.
var guarded = []struct {
	field   string
	members []string
	off     bool // whether removing the value needs no more than the route does
	rights  func() authority.Permissions
}{
	// Who chooses the keys signs tokens for every user, with every scope of tokens.
	{"auth_settings", []string{"jwks_url", "jwks"}, true, func() authority.Permissions {
		keys := slices.DeleteFunc(identity.ScopesFor(identity.SignedToken), func(s string) bool { return !identity.WorkspaceService.Grantable(s) })
		return authority.Permissions{Rank: identity.RankOwner, Scopes: keys}
	}},
	// They choose which groups of an identity provider give which role.
	{"scim_settings", []string{"scim_group_prefix", "scim_role_separator", "group_based_user_provisioning", "scim_user_groups", "scim_only_users"}, false, func() authority.Permissions {
		return membership.PermissionsOf(identity.RankOrganisationAdmin)
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
			return fault.New(fault.NotAllowed, "security_settings", "exceeds the permissions of the caller: the settings do not grant its role "+scope)
		}
		if tenant.IsView(scope) { // no scope, but what logs.view shows
			scope = "logs.view"
		}
		if !identity.WorkspaceService.Grantable(scope) {
			continue // no credential can use it
		}
		if err := by.Grant("security_settings", authority.Permissions{Scopes: []string{scope}}); err != nil {
			return err
		}
	}
	return nil
}

// vouch makes an owner who saved the keys of signed tokens responsible for them.
func vouch(c *admin.Call, tx *resource.Tx, was, now map[string]json.RawMessage) error {
	const member = "jwks_sponsor"
	by := ""
	if raw, ok := was[member]; ok {
		if err := json.Unmarshal(raw, &by); err != nil {
			return fmt.Errorf("organization: settings: %w", err)
		}
	}
	sponsor := by
	given, _ := c.Body.Object("auth_settings")
	switch {
	case now["jwks_url"] == nil && now["jwks"] == nil:
		sponsor = ""
	case (given.HasValue("jwks_url") || given.HasValue("jwks")) && c.Caller.AtLeast(admin.Owner):
		sponsor = c.Caller.ResponsibleUser()
	}
	if delete(now, member); sponsor != "" {
		raw, err := json.Marshal(sponsor)
		if err != nil {
			return fmt.Errorf("organization: settings: %w", err)
		}
		now[member] = raw
	}
	org := c.Organisation()
	return membership.SetResponsible(tx, resource.Ref{Scope: org, Kind: tenant.KindOrganisation, ID: org.Org}, by, sponsor)
}

func rightsOf(members map[string]json.RawMessage) (*tenant.RolePermissions, error) {
	raw, err := json.Marshal(members)
	if err != nil {
		return nil, fmt.Errorf("organization: settings: %w", err)
	}
	r := new(tenant.RolePermissions)
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("organization: settings: %w", err)
	}
	return r, nil
}

// sections are the settings as bodies and responses have them.
func sections() []admin.Field {
	return []admin.Field{
		{Name: "security_settings", Doc: "Permissions of workspace roles. Only the last two apply to admins.", Fields: rights()},
		{Name: "data_plane_security_settings", Doc: "What requests may contain.", Fields: []admin.Field{
			{Name: "block_inline_config", Absent: false, Default: true, Doc: "Reject inline configs, bare provider names, custom hosts, provider URLs and forwarded headers in requests."},
		}},
		{Name: "model_settings", Doc: "Models that requests may call.", Fields: []admin.Field{
			{Name: "allowed_models", Absent: []any{}, Of: &admin.Field{Check: pattern}, Doc: "Models that may be called, for all providers: model or provider/model, where a trailing * matches anything; empty or null: all models."},
		}},
		{Name: "request_logging", Doc: "Stored data of requests.", Fields: []admin.Field{
			{Name: "mode", In: "request_logging", Absent: tenant.LogFull, Doc: "full stores bodies; metrics does not."},
			{Name: "enforce_debug", Doc: "Whether the bodies of all requests are stored. It overrides mode and the header x-gateway-debug; null: these decide."},
			{Name: "retention_days", In: "log_retention_days", Doc: "Retention of logs, their bodies and their analytics in days (UTC). Older data is hidden immediately and deleted within hours. null: the installation's retention, which is the maximum."},
		}},
		{Name: "export_settings", Doc: "Fields allowed in log exports.", Fields: []admin.Field{
			{Name: "deniedFields", In: "denied_export_fields", Absent: []any{}, Of: &admin.Field{Enum: tenant.ExportFields}, Doc: "Fields that exports must not contain."},
		}},
		{Name: "user_api_key_settings", Doc: "Rules for user keys.", Fields: []admin.Field{
			{Name: "user_api_key_auto_create", Absent: false}, {Name: "default_workspace_user_api_key_auto_create", Absent: false},
			{Name: "user_api_key_ttl"}, {Name: "user_api_key_max_ttl"}, {Name: "max_user_api_keys"},
			{Name: "user_api_key_rotation_period", Form: admin.Schema{"type": []string{"integer", "string", "null"}, "minimum": 1, "maximum": 365, "pattern": "^(weekly|monthly)$"}},
		}},
		{Name: "cache_settings", Doc: "Caching of responses.", Fields: []admin.Field{
			{Name: "max_age", In: "cache_max_age", Doc: "Lifetime of cached responses in seconds: the default for configs without max_age, and the maximum for others; null: default 604800, without a maximum beyond that of configs."},
		}},
		{Name: "session_settings", Doc: "Lifetime of user sessions.", Fields: []admin.Field{
			{Name: "max_session_ttl", Doc: "Maximum lifetime of a session in seconds. For JSON Web Tokens it is counted from iat, which is then required. null: the session's own lifetime."},
			{Name: "max_idle_time", Doc: "Idle timeout of a session in seconds; null: 7200."},
		}},
		{Name: "auth_settings", Doc: "Callers with JSON Web Tokens signed by an issuer of the organization.", Fields: []admin.Field{
			{Name: "jwks_url", Doc: "Address of the issuer's key set; null: none.", Check: keysAddress},
			{Name: "jwks", Type: admin.Object, Open: true, Doc: "The issuer's key set instead of an address: public RSA keys for RS256; null: none.", Check: keySet},
		}},
		{Name: "scim_settings", Doc: "How users and groups of an identity provider are imported.", Fields: []admin.Field{
			{Name: "group_prefix", In: "scim_group_prefix", Absent: tenant.GroupPrefix, Doc: "Prefix of the names of automatically mapped groups: prefix, workspace, separator, role."},
			{Name: "role_separator", In: "scim_role_separator", Absent: tenant.RoleSeparator, Doc: "Separator of workspace and role in such a name."},
			{Name: "group_based_user_provisioning", Absent: false, Doc: "Whether users that the identity provider has deactivated are reactivated when they are added to a group."},
			{Name: "user_based_groups", In: "scim_user_groups", Absent: false, Doc: "Whether groups are written with users; the members of groups are then read-only."},
			{Name: "scim_only", In: "scim_only_users", Absent: false, Doc: "Whether only the identity provider manages users and their roles in the organization."},
		}},
		{Name: "metadata_schemas", Doc: "Required metadata of new keys and workspaces: JSON schemas (draft 07) of objects with string values.", Fields: []admin.Field{
			{Name: "api_key", In: "key_metadata", Doc: "For API keys, also when their metadata is changed.", Check: tenant.CheckMetadataSchema},
			{Name: "workspace", In: "workspace_metadata", Doc: "For workspaces, also when their metadata is changed.", Check: tenant.CheckMetadataSchema},
		}},
		{Name: "budget_settings", Example: map[string]any{"unpriced": "refuse"}, Doc: "Rules for every budget.", Fields: []admin.Field{
			{Name: "unpriced", Absent: tenant.UnpricedRefuse, Doc: "Whether models without a price may be called while a cost budget applies."},
			{Name: "unbounded", Absent: tenant.UnboundedRefuse, Doc: "Whether requests with an unlimited cost are allowed while a budget applies: their input is stored at or fetched by a provider and the model's context window is unknown, or they are batches with unreadable rows."},
		}},
		{Name: "pricing_settings", Doc: "Prices of models for the organization that differ from the price list. An integration's prices and multipliers take precedence.", Fields: []admin.Field{
			{Name: "models", In: "model_prices", Type: admin.Object, Open: true, Doc: "Prices that override the price list, by provider/model, each in the format of pricing_config of an integration's model: US cents per unit; null: none. from and until (a day or a time), days, hours (UTC) and above_tokens limit a price; a list contains several. If none applies, the price list does.", Check: ownPrices},
			{Name: "multiplier", In: "price_multiplier", Type: admin.Object, Open: true, Doc: "Price multipliers in the format of pricing_adjustments.multiplier of integrations, for integrations without them; null: none.", Check: multipliers},
		}},
		{Name: "api_settings", Doc: "How the administration API reads requests.", Fields: []admin.Field{
			{Name: "lenient", Absent: false, Default: false, Doc: "Whether unknown fields and query parameters are ignored instead of rejected with status 400, as the header x-gateway-lenient does for one request."},
		}},
		{Name: "workspace_overrides", Doc: "Settings that workspaces may override. Disabling one restores the organization's value in every workspace.", Fields: categories()},
	}
}

func rights() []admin.Field {
	var out []admin.Field
	for _, r := range tenant.AllRights() {
		out = append(out, admin.Field{Name: r.Name, Absent: r.Standard, Default: r.Standard})
	}
	return out
}

func categories() []admin.Field {
	var out []admin.Field
	for _, c := range tenant.Categories() {
		out = append(out, admin.Field{Name: c, In: tenant.OpenPrefix + c, Absent: false, Default: false})
	}
	return out
}

// pattern checks an entry of the allowed models.
func pattern(raw json.RawMessage) []fault.Detail {
	var entry string
	if json.Unmarshal(raw, &entry) != nil {
		return nil // its type is checked elsewhere
	}
	of, model, two := strings.Cut(entry, "/")
	if strings.Contains(strings.TrimSuffix(entry, "*"), "*") || two && (of == "" || model == "") || strings.HasPrefix(entry, "@") || strings.TrimSpace(entry) != entry {
		return []fault.Detail{{Message: "must be a model or provider/model; it may end with *"}}
	}
	return nil
}

// ownPrices checks prices of models.
func ownPrices(raw json.RawMessage) []fault.Detail {
	_, bad := pricing.ParseModelPrices(raw)
	return bad
}

// multipliers checks multipliers on prices.
func multipliers(raw json.RawMessage) []fault.Detail {
	_, bad := pricing.ParseMultiplier(raw)
	return bad
}

// keySet checks a key set that is given in place.
func keySet(raw json.RawMessage) []fault.Detail { return problem(jwt.CheckSet(raw)) }

// keysAddress checks the address of a key set. Where it leads is for the dialer to
// reject, each time.
func keysAddress(raw json.RawMessage) []fault.Detail {
	var address string
	if json.Unmarshal(raw, &address) != nil {
		return nil // its type is checked elsewhere
	}
	return problem(jwt.CheckURL(address))
}

func problem(err error) []fault.Detail {
	if err == nil {
		return nil
	}
	return []fault.Detail{{Message: err.Error()}}
}

package identity

import (
	"cmp"
	"slices"
	"strings"
)

// KeyType is the type of an API key. It determines which scopes the key may hold and whether it
// can access the entire organization or one workspace.
type KeyType string

const (
	OrganisationService KeyType = "organisation-service" // admin key: every workspace, no data plane
	WorkspaceService    KeyType = "workspace-service"
	WorkspaceUser       KeyType = "workspace-user"
	// SignedToken is not a key of the gateway but a JSON Web Token of an issuer that the
	// organization trusts. It is for one workspace.
	SignedToken KeyType = "jwt"
)

// KeyTypes are all types of keys.
var KeyTypes = []KeyType{OrganisationService, WorkspaceService, WorkspaceUser, SignedToken}

// holders is a set of key types.
type holders uint8

const (
	org holders = 1 << iota // organization-service
	svc                     // workspace-service
	usr                     // workspace-user
	jwt                     // signed tokens, in addition to what user keys may hold
	ws  = svc | usr
	all = org | ws
)

// scopeFamily is a resource with its grantable actions.
type scopeFamily struct {
	resource string
	actions  string
	who      holders
}

// scopeTable lists every grantable scope. A resource has several rows if different key types
// may hold its actions.
var scopeTable = []scopeFamily{
	{"organisation_users", "create read update delete list", org},
	{"organisation_service_api_keys", "create read update delete list rotate", org},
	{"organisation_settings", "read update", org},
	{"organisation_guardrails", "create read update delete list", org},
	{"organisation_exclusions", "update list", org},
	{"audit_logs", "list", org},
	{"plugins", "create update list", org},
	{"deployments", "create read update delete list", org},
	{"secret_references", "create read update delete list", org},
	{"secret_references", "use", org | svc}, // for mapping them; read includes it
	{"organisation_webhooks", "create read update delete list", org},
	{"organisation_telemetry", "create read update delete list", org},
	{"workspaces", "create delete", org},
	{"workspaces", "read update list", all},
	{"workspace_service_api_keys", "create read update delete list rotate", org | svc},
	{"workspace_user_api_keys", "create read update delete list rotate", org | svc},
	{"workspace_users", "create read update delete list", all},
	{"prompts", "create read update delete list publish", all},
	{"prompts", "render", ws},
	{"configs", "create read update delete list", all},
	{"guardrails", "create read update delete list", all},
	{"guardrails", "invoke", ws},
	{"virtual_keys", "create read update delete list duplicate copy", all},
	{"providers", "create read update delete list", all},
	{"policies", "create read update delete list", all},
	{"organisation_integrations", "create read update delete", org},
	{"organisation_integrations", "list", all},
	{"organisation_mcp_integrations", "create read update delete", org},
	{"organisation_mcp_integrations", "list", all},
	{"organisation_agent_integrations", "create read update delete", org},
	{"organisation_agent_integrations", "list", all},
	{"workspace_integrations", "create read update delete list", all},
	{"workspace_mcp_integrations", "create read update delete list", all},
	{"workspace_agent_integrations", "create read update delete list", all},
	{"workspace_webhooks", "create read update delete list", all},
	{"workspace_telemetry", "create read update delete list", all},
	{"mcp_servers", "create read update delete list", all},
	{"mcp", "invoke", ws},
	{"agent_servers", "create read update delete list", all},
	{"agent_integration_skills", "read update list", all},
	{"agent_server_skills", "read update list", all},
	{"agent_server_user_access", "read update list", all},
	{"agents", "invoke", ws},
	{"completions", "write", ws},
	{"completions", "read", jwt},
	{"models", "list", ws},
	{"feedbacks", "read write", ws},
	{"analytics", "view", all},
	{"logs", "list view export", all},
	{"logs", "read write", ws},
}

var grantable = func() map[string]holders {
	m := make(map[string]holders)
	for _, f := range scopeTable {
		for _, a := range strings.Fields(f.actions) {
			who := f.who
			if who&usr != 0 || who&svc != 0 && (a == "read" || a == "list") {
				who |= jwt // a token may read what a key of its workspace may read
			}
			m[f.resource+"."+a] = who
		}
	}
	return m
}()

func (t KeyType) holder() holders {
	switch t {
	case OrganisationService:
		return org
	case WorkspaceService:
		return svc
	case WorkspaceUser:
		return usr
	case SignedToken:
		return jwt
	}
	return 0
}

// ScopesFor lists all scopes that a key of type t may hold, sorted.
func ScopesFor(t KeyType) []string {
	var out []string
	for s, who := range grantable {
		if who&t.holder() != 0 {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

// ScopeFamily returns the family of the scopes that manage keys of type t. The audit log uses
// the same name for such keys: workspace_service_api_keys.
func (t KeyType) ScopeFamily() string {
	return strings.ReplaceAll(string(t), "-", "_") + "_api_keys"
}

// Grantable reports whether a key of type t may hold the scope.
func (t KeyType) Grantable(scope string) bool { return grantable[scope]&t.holder() != 0 }

// includedIn names, for a scope that was split from another, the scope that includes it. Keys
// from before the split have only the other one.
var includedIn = map[string]string{"secret_references.use": "secret_references.read"}

// IncludedIn returns the scope that includes scope, or scope itself.
func IncludedIn(scope string) string { return cmp.Or(includedIn[scope], scope) }

// NormalScope returns the stored spelling of a scope: "policies:create" and
// "gateway.policies.create" both mean "policies.create".
func NormalScope(s string) string {
	return strings.Replace(strings.TrimPrefix(s, "gateway."), ":", ".", 1)
}

// ScopeSet is a set of scopes.
type ScopeSet map[string]struct{}

// NewScopeSet returns a set of normalized scopes.
func NewScopeSet(scopes ...string) ScopeSet {
	set := make(ScopeSet, len(scopes))
	for _, s := range scopes {
		set[NormalScope(s)] = struct{}{}
	}
	return set
}

// Has reports whether the set holds the scope.
func (s ScopeSet) Has(scope string) bool { _, ok := s[scope]; return ok }

// Sorted lists the set.
func (s ScopeSet) Sorted() []string {
	out := make([]string, 0, len(s))
	for k := range s {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

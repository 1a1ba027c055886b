package authz

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/a2a"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
)

// TestDecide compares decisions with the individual conditions: if one condition does not hold,
// the call is denied.
func TestDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		mostly := func(name string) bool { return rapid.IntRange(0, 9).Draw(t, name) > 0 }
		scoped, activeServer, here := mostly("scope"), mostly("server"), mostly("workspace")
		there, activeIntegration, shared := mostly("integration"), mostly("active"), mostly("shared")
		denies, entry, enabled := yes("deny"), yes("entry"), yes("enabled")
		hasOf, of, hasAt, at := yes("said of"), yes("of"), yes("said at"), yes("at")

		const ws, skill = "w", "a skill"
		f := &Facts{Workspace: ws, Scopes: identity.NewScopeSet("mcp.invoke"), IntegrationSwitches: map[string]bool{}, ServerSwitches: map[string]bool{}}
		if scoped {
			f.Scopes = identity.NewScopeSet(Invoke)
		}
		f.Server = &Server{&a2a.Server{UserAccess: access.Allow}, resource.Record{Status: "archived", Scope: store.Scope{Org: "o", Workspace: "x"}}}
		if activeServer {
			f.Server.Record.Status = active
		}
		if here {
			f.Server.Record.Scope.Workspace = ws
		}
		if denies {
			f.Server.UserAccess = access.Deny
		}
		if entry {
			f.User = &access.User{Enabled: enabled}
		}
		if there {
			f.Integration = &Integration{Integration: &a2a.Integration{Access: access.Workspaces{Global: shared}, Card: json.RawMessage(`{"skills":[{"id":"a skill"}]}`)}, Record: &resource.Record{Scope: store.Scope{Org: "o"}}}
			if activeIntegration {
				f.Integration.Record.Status = active
			}
		}
		if hasOf {
			f.IntegrationSwitches[a2a.SwitchID(skill)] = of
		}
		if hasAt {
			f.ServerSwitches[a2a.SwitchID(skill)] = at
		}
		f.IntegrationSwitches[a2a.SwitchID("other")], f.ServerSwitches[a2a.SwitchID("other")] = yes("another of"), yes("another at")

		user := entry && enabled || !entry && !denies
		server := scoped && activeServer && here && there && activeIntegration && shared && user
		if got := f.Decide(""); (got == Allowed) != server {
			t.Errorf("the agent: %s", got)
		}
		if got := f.Decide(skill); (got == Allowed) != (server && (!hasOf || of) && (!hasAt || at)) {
			t.Errorf("the skill: %s", got)
		}
		// an integration of a workspace is available only there
		if there {
			f.Integration.Record.Scope.Workspace = "x"
			if got := f.Decide(""); got == Allowed {
				t.Error("another workspace's integration is allowed")
			}
		}
	})
}

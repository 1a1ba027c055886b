package authz

import (
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
)

// TestDecisions compares decisions with what each condition says automatically: one that
// does not hold rejects, and nothing makes up for it.
func TestDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		yes := func(name string) bool { return rapid.Bool().Draw(t, name) }
		mostly := func(name string) bool { return rapid.IntRange(0, 9).Draw(t, name) > 0 }
		scoped, activeServer, here := mostly("scope"), mostly("server"), mostly("workspace")
		there, activeIntegration, shared := mostly("integration"), mostly("active"), mostly("shared")
		denies, entry, enabled := yes("deny"), yes("entry"), yes("enabled")
		off, override, on := yes("off"), yes("override"), yes("on")

		const ws = "w"
		f := &Facts{Workspace: ws, Scopes: identity.NewScopeSet("logs.view"), DisabledIDs: map[string]bool{}, Overrides: map[string]bool{}}
		if scoped {
			f.Scopes = identity.NewScopeSet(Invoke)
		}
		f.Server = &Server{&mcp.Server{UserAccess: access.Allow}, resource.Record{Status: "archived", Scope: store.Scope{Org: "o", Workspace: "x"}}}
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
			f.Integration = &Integration{Integration: &mcp.Integration{Access: access.Workspaces{Global: shared}}, Record: &resource.Record{Scope: store.Scope{Org: "o"}}}
			if activeIntegration {
				f.Integration.Record.Status = active
			}
		}
		c := Capability{rapid.SampledFrom([]string{mcp.Tool, mcp.Prompt, mcp.Resource, mcp.ResourceTemplate}).Draw(t, "type"), "k"}
		id := mcp.CapabilityID(c.Type, c.Key)
		f.Listed = map[string]string{id: c.Type}
		f.DisabledIDs[id] = off
		if override {
			f.Overrides[id] = on
		}
		for _, other := range []string{mcp.CapabilityID(c.Type, "other"), mcp.CapabilityID("another", c.Key)} {
			f.DisabledIDs[other], f.Overrides[other] = yes("another off"), yes("another on")
		}

		user := entry && enabled || !entry && !denies
		server := scoped && activeServer && here && there && activeIntegration && shared && user
		if got := f.Decide(Capability{}); (got == Allowed) != server {
			t.Errorf("the server: %s", got)
		}
		if got := f.Decide(c); (got == Allowed) != (server && !off && (!override || on)) {
			t.Errorf("%v: %s", c, got)
		}
		// An integration of a workspace is nobody else's.
		if there {
			f.Integration.Record.Scope.Workspace = "x"
			if got := f.Decide(Capability{}); got == Allowed {
				t.Error("another workspace's integration is allowed")
			}
		}
	})
}

// TestAddressesOfTemplates: an address that is not listed automatically is one of the
// templates that it fits, and one of them that is on is enough.
func TestAddressesOfTemplates(t *testing.T) {
	files, notes := Template{"files", pattern("file:///files/{path}")}, Template{"notes", pattern("file:///{kind}/{name}.md")}
	for _, c := range []struct {
		uri      string
		off      []string
		known    bool
		decision string
	}{
		{"file:///files/a", nil, false, Allowed},
		{"file:///files/a", []string{"files"}, false, NoCapability},
		{"file:///files/a", []string{"files"}, true, Allowed},
		{"file:///files/a.md", []string{"files"}, false, Allowed},
		{"file:///files/a.md", []string{"files", "notes"}, false, NoCapability},
		{"file:///other", []string{"files", "notes"}, false, Allowed},
		{"file:///fil", []string{"files"}, false, Allowed},
	} {
		f := &Facts{
			Workspace: "w", Scopes: identity.NewScopeSet(Invoke), Templates: []Template{files, notes}, DisabledIDs: map[string]bool{}, Listed: map[string]string{},
			Server:      &Server{&mcp.Server{}, resource.Record{Status: active, Scope: store.Scope{Org: "o", Workspace: "w"}}},
			Integration: &Integration{Integration: &mcp.Integration{}, Record: &resource.Record{Status: active, Scope: store.Scope{Org: "o", Workspace: "w"}}},
		}
		for _, id := range c.off {
			f.DisabledIDs[id] = true
		}
		if c.known {
			f.Listed[mcp.CapabilityID(mcp.Resource, c.uri)] = mcp.Resource
		}
		if got := f.Decide(Capability{mcp.Resource, c.uri}); got != c.decision {
			t.Errorf("%s without %v: %s", c.uri, c.off, got)
		}
	}
}

// TestDecideDeniesUnlistedNamesOfRestrictedTypes: servers may accept other spellings of a
// disabled name, also while they do not list it.
func TestDecideDeniesUnlistedNamesOfRestrictedTypes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off       string // disabled
		byServer  bool   // at the server, not at the integration
		listed    bool   // the server lists it
		requested Capability
		permitted bool
	}{
		"another spelling":                 {mcp.CapabilityID(mcp.Tool, "secret"), false, true, Capability{mcp.Tool, "Secret"}, false},
		"another spelling, delisted":       {mcp.CapabilityID(mcp.Tool, "secret"), false, false, Capability{mcp.Tool, "Secret"}, false},
		"another spelling, at the server":  {mcp.CapabilityID(mcp.Tool, "secret"), true, false, Capability{mcp.Tool, "secret "}, false},
		"of another kind":                  {mcp.CapabilityID(mcp.Tool, "secret"), false, false, Capability{mcp.Prompt, "Secret"}, true},
		"a listed tool":                    {mcp.CapabilityID(mcp.Tool, "secret"), false, false, Capability{mcp.Tool, "known"}, true},
		"a template is not the resource's": {mcp.CapabilityID(mcp.ResourceTemplate, "x"), false, false, Capability{mcp.Tool, "other"}, true},
	} {
		f := &Facts{
			Workspace: "w", Scopes: identity.NewScopeSet(Invoke), DisabledIDs: map[string]bool{}, Overrides: map[string]bool{}, Listed: map[string]string{mcp.CapabilityID(mcp.Tool, "known"): mcp.Tool},
			Server:      &Server{&mcp.Server{}, resource.Record{Status: active, Scope: store.Scope{Org: "o", Workspace: "w"}}},
			Integration: &Integration{Integration: &mcp.Integration{}, Record: &resource.Record{Status: active, Scope: store.Scope{Org: "o", Workspace: "w"}}},
		}
		if c.byServer {
			f.Overrides[c.off] = false
		} else {
			f.DisabledIDs[c.off] = true
		}
		if c.listed {
			f.Listed[c.off] = mcp.Tool
		}
		if got := f.Decide(c.requested); (got == Allowed) != c.permitted {
			t.Errorf("%s: %s", name, got)
		}
	}
}

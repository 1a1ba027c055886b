package authz

import (
	"fmt"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/mcp"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
)

// TestDecideRequiresExactCapabilityNames covers spellings that a server may take for the
// name of a disabled capability, for every type.
func TestDecideRequiresExactCapabilityNames(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{mcp.Tool, mcp.Prompt, mcp.Resource, mcp.ResourceTemplate} {
		var recs []resource.Record
		for name, on := range map[string]bool{"secret_tool": false, "open_tool": true} {
			body := fmt.Sprintf(`{"type":%q,"enabled":%t}`, kind, on)
			recs = append(recs, resource.Record{ID: mcp.CapabilityID(kind, name), Name: name, Body: []byte(body)})
		}
		known, err := foldCapabilities(recs)
		if err != nil {
			t.Fatal(err)
		}
		facts := func(off map[string]bool, own overrides) *Facts {
			return &Facts{
				Server: &Server{&mcp.Server{UserAccess: access.Allow}, resource.Record{Status: active, Scope: store.Scope{Org: "o", Workspace: "w"}}}, Workspace: "w", Scopes: identity.NewScopeSet(Invoke),
				Integration: &Integration{Integration: &mcp.Integration{Access: access.Workspaces{Global: true}}, Record: &resource.Record{Status: active, Scope: store.Scope{Org: "o"}}},
				DisabledIDs: off, Listed: known.listed, Overrides: own,
			}
		}
		for what, f := range map[string]*Facts{
			"integration": facts(known.off, nil), "server": facts(nil, overrides{mcp.CapabilityID(kind, "secret_tool"): false}),
		} {
			for _, name := range []string{"secret_tool", "Secret_tool", "SECRET_TOOL", "secret_tool ", " secret_tool", "secret_tool\x00", "secret_tool\u200b", "secret\u00adtool", "ｓecret_tool", "secret-tool", "new_tool"} {
				if got := f.Decide(Capability{kind, name}); got != NoCapability {
					t.Errorf("%s of the %s, %q: %s", kind, what, name, got)
				}
			}
			if got := f.Decide(Capability{kind, "open_tool"}); got != Allowed {
				t.Errorf("%s of the %s: the listed one: %s", kind, what, got)
			}
			other := mcp.Tool
			if kind == mcp.Tool {
				other = mcp.Prompt
			}
			if got := f.Decide(Capability{other, "anything"}); got != Allowed {
				t.Errorf("%s of the %s restricts %s: %s", kind, what, other, got)
			}
		}
		if got := facts(nil, nil).Decide(Capability{kind, "new_tool"}); got != Allowed {
			t.Errorf("nothing is disabled, and %s is %s", kind, got)
		}
	}
}

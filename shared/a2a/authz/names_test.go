package authz

import (
	"encoding/json"
	"testing"

	"gateway/shared/a2a"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant/access"
)

// TestEnabledRequiresExactID covers spellings that an agent may accept for the id of a disabled
// skill.
func TestEnabledRequiresExactID(t *testing.T) {
	t.Parallel()
	off := switches{a2a.SwitchID("secret"): false}
	for what, of := range map[string][2]switches{"integration": {off, nil}, "server": {nil, off}} {
		f := &Facts{
			Server: &Server{&a2a.Server{UserAccess: access.Allow}, resource.Record{Status: active, Scope: store.Scope{Org: "o", Workspace: "w"}}}, Workspace: "w", Scopes: identity.NewScopeSet(Invoke),
			Integration:         &Integration{Integration: &a2a.Integration{Access: access.Workspaces{Global: true}, Card: json.RawMessage(`{"skills":[{"id":"secret"},{"id":"open"}]}`)}, Record: &resource.Record{Status: active, Scope: store.Scope{Org: "o"}}},
			IntegrationSwitches: of[0], ServerSwitches: of[1],
		}
		for _, skill := range []string{"secret", "Secret", "secret ", "secret\x00", "secret\u200b", "ｓecret", "new"} {
			if got := f.Decide(skill); got != NoSkill {
				t.Errorf("%s, %q: %s", what, skill, got)
			}
		}
		if got := f.Decide("open"); got != Allowed {
			t.Errorf("%s, the listed one: %s", what, got)
		}
		if f.IntegrationSwitches, f.ServerSwitches = nil, nil; f.Decide("new") != Allowed {
			t.Errorf("nothing is disabled, and a new skill is unknown")
		}
	}
}

package apikeys

import (
	"testing"

	"gateway/shared/identity"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// TestALostRotationIsRepeatedOrEnded: a new secret with a lost response is replaced, and a
// leaked previous secret ends early.
func TestALostRotationIsRepeatedOrEnded(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	made := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK()
	id, first := made.Text("id"), made.Text("key")
	rotate := func(do string) admintest.Response {
		return h.Do("POST", "/api-keys/"+id+"/rotate", admintest.AdminKey, map[string]any{"during_transition": do})
	}
	live := func(where string, want map[string]bool) {
		t.Helper()
		for raw, live := range want {
			_, ok, err := h.Store.Table(store.Keys).Get(t.Context(), identity.CredentialKey(identity.SecretOf(raw)), true)
			if err != nil || ok != live {
				t.Errorf("%s: %s is live: %t, want %t", where, identity.Mask(raw), ok, live)
			}
		}
	}
	rotate("end").RequireFault(409, "AB07", "during_transition")
	rotate("other").RequireFault(400, "AB01", "during_transition")
	lost := rotate("replace").OK() // a usual rotation
	live("rotated", map[string]bool{first: true, lost.Text("key"): true})
	again := rotate("replace").OK()
	live("replaced", map[string]bool{first: true, lost.Text("key"): false, again.Text("key"): true})
	until := lost.Text("key_transition_expires_at")
	if again.Text("key_transition_expires_at") != until || h.Do("GET", "/api-keys/"+id, admintest.AdminKey, nil).OK().Text("key_transition_expires_at") != until {
		t.Errorf("the transition ends at %s, not %s", again.Text("key_transition_expires_at"), until)
	}
	if ended := rotate("end").OK(); ended.At("key") != nil {
		t.Errorf("the end shows a key")
	}
	live("ended", map[string]bool{first: false, lost.Text("key"): false, again.Text("key"): true})
	h.Do("POST", "/api-keys/"+id+"/rotate", admintest.AdminKey, nil).OK()
}

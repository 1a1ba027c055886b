package apikeys

import (
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/lastused"
)

// A paused key is rejected with the reason, everything about it stays, and active resumes it.
func TestPausedKeysAreRejectedUntilTheyAreResumed(t *testing.T) {
	h := newInstallation(t)
	made := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"rotation_policy":{"rotation_period":"weekly"}`)).OK()
	id, raw := made.Text("id"), made.Text("key")
	auth := identity.NewAuthenticator(resource.NewLoader(h.Resources), time.Now)
	rejected := func(what string, want fault.Code) {
		t.Helper()
		_, err := auth.Authenticate(t.Context(), raw, identity.AuthenticationAttempt{})
		if want == "" && err != nil || want != "" && !fault.Is(err, want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	put := func(status string) { h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"status":"`+status+`"}`).OK() }
	shown := func() string {
		return h.Do("GET", "/api-keys/"+id, admintest.AdminKey, nil).OK().Text("status")
	}
	rejected("new", "")
	for _, no := range []string{"expired", "exhausted", "active"} { // as a read may show
		put(no)
		if got := shown(); got != "active" {
			t.Errorf("after %s it is %s", no, got)
		}
	}
	put("paused")
	if rejected("paused", fault.KeyPaused); shown() != "paused" {
		t.Errorf("it is %s", shown())
	}
	h.Do("POST", "/api-keys/"+id+"/rotate", admintest.AdminKey, nil).RequireFault(409, "AB07", "id")
	h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"description":"d"}`).OK()
	rejected("changed", fault.KeyPaused)
	put("active")
	if rejected("resumed", ""); shown() != "active" {
		t.Errorf("it is %s", shown())
	}
	h.Do("PUT", "/api-keys/"+id, admintest.AdminKey, `{"status":"archived"}`).RequireFault(400, "AB01", "status")
	h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK()
}

func TestReadsShowWhenAKeyWasLastUsed(t *testing.T) {
	h := newInstallation(t)
	id := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK().Text("id")
	if got := h.Do("GET", "/api-keys/"+id, admintest.AdminKey, nil).OK().At("last_used_at"); got != nil {
		t.Errorf("before any use: %v", got)
	}
	at := time.Now().UTC()
	lastused.NewRecorder(h.Store).Record(t.Context(), []usage.Record{{ID: "1", Org: admintest.Org, KeyID: id, KeyType: "workspace-service", Start: at}})
	want := at.Truncate(time.Minute).Format("2006-01-02T15:04:05.000Z")
	if got := h.Do("GET", "/api-keys/"+id, admintest.AdminKey, nil).OK().Text("last_used_at"); got != want {
		t.Errorf("last used at %s, want %s", got, want)
	}
	list := h.Do("GET", "/api-keys?ids="+id, admintest.AdminKey, nil).OK()
	if got := list.At("data").([]any)[0].(map[string]any)["last_used_at"]; got != want {
		t.Errorf("in the list %v, want %s", got, want)
	}
}

// A rotation whose response was lost is recovered by the same call: the secret that it made is
// shown again, to the same caller only, and no further one is made.
func TestARepeatedRotationReturnsTheSameSecret(t *testing.T) {
	h := newInstallation(t)
	h.Repeats.Store(true)
	id := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK().Text("id")
	rotate := func(key, sent string) admintest.Response {
		return h.Do("POST", "/api-keys/"+id+"/rotate", key, sent)
	}
	first := rotate(admintest.AdminKey, `{"key_transition_period_ms":1800000}`).OK()
	again := rotate(admintest.AdminKey, `{"key_transition_period_ms":1800000}`).OK()
	if first.Text("key") == "" || string(first.Body) != string(again.Body) {
		t.Errorf("%s, then %s", first.Body, again.Body)
	}
	rotate(admintest.WorkspaceA, `{"key_transition_period_ms":1800000}`).RequireFault(409, "AB07", "")
	other := rotate(admintest.AdminKey, `{"during_transition":"replace"}`).OK()
	if other.Text("key") == first.Text("key") {
		t.Error("replace returns the last secret")
	}
	if end := rotate(admintest.AdminKey, `{"during_transition":"end"}`).OK(); end.At("key") != nil {
		t.Errorf("%s", end.Body)
	}
}

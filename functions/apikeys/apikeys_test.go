package apikeys

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

func newInstallation(t testing.TB) *admintest.Installation {
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{New(ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{}))}
	})
}

// body is a create body for the first workspace with further members.
func body(h *admintest.Installation, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["configs.list"]%s}`, h.One, more)
}

func TestFamilyChecks(t *testing.T) {
	h := newInstallation(t)
	admintest.CheckFamily(t, h)
	admintest.BadBodies(t, h, "POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, ""))
	id := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK().Text("id")
	admintest.BadBodies(t, h, "PUT", "/api-keys/"+id, admintest.AdminKey, `{"description":"d"}`)
	for _, bad := range []string{`{"key_transition_period_ms":1799999}`, `{"key_transition_period_ms":"1800000"}`, `[]`, `{"key_transition_period_ms":1800000`} {
		h.Do("POST", "/api-keys/"+id+"/rotate", admintest.AdminKey, bad).RequireFault(400, "AB01", "")
	}
}

func TestForeignKeyIsAMissingOne(t *testing.T) {
	h := newInstallation(t)
	id := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK().Text("id")
	for _, caller := range []string{admintest.WorkspaceB, admintest.OtherAdmin} {
		for _, call := range [][3]string{{"GET", "", ""}, {"PUT", "", `{"name":"x"}`}, {"DELETE", "", ""}, {"POST", "/rotate", "{}"}} {
			var sent any
			if call[2] != "" {
				sent = call[2]
			}
			foreign := h.Do(call[0], "/api-keys/"+id+call[1], caller, sent)
			missing := h.Do(call[0], "/api-keys/"+resource.NewID()+call[1], caller, sent)
			if foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
				t.Errorf("%s%s as %s: %s | %s", call[0], call[1], caller, foreign.Body, missing.Body)
			}
		}
		if list := h.Do("GET", "/api-keys", caller, nil); list.Status == 200 && strings.Contains(string(list.Body), id) {
			t.Errorf("%s lists a foreign key", caller)
		}
	}
}

func TestTheRawKeyIsShownOnceAndNeverStored(t *testing.T) {
	h := newInstallation(t)
	made := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, "")).OK()
	raw, id := made.Text("key"), made.Text("id")
	if len(raw) < 30 || made.Text("object") != "api-key" {
		t.Fatalf("made %s", made.Body)
	}
	for _, path := range []string{"/api-keys/" + id, "/api-keys", "/api-keys?workspace_id=" + h.One} {
		if got := h.Do("GET", path, admintest.AdminKey, nil).OK(); strings.Contains(string(got.Body), raw) || !strings.Contains(string(got.Body), identity.Mask(raw)) {
			t.Errorf("%s shows %s", path, got.Body)
		}
	}
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	rec, ok, err := h.Resources.Get(context.Background(), sc, identity.KindKey, id)
	if err != nil || !ok || strings.Contains(string(rec.Body), raw) {
		t.Fatalf("stored: %v %v %s", ok, err, rec.Body)
	}
	for _, e := range h.Audit() {
		if text, _ := json.Marshal(e); strings.Contains(string(text), raw) {
			t.Errorf("the audit log holds the raw key: %s", text)
		}
	}
}

func TestWhatAKeyMayHold(t *testing.T) {
	h := newInstallation(t)
	for _, c := range []struct{ name, path, caller, body, field string }{
		{"a scope of another key type", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"scopes":["audit_logs.list"]`), "scopes[0]"},
		{"no such type", "/api-keys/organisation/user", admintest.AdminKey, body(h, ""), "type"},
		{"an organization key for one workspace", "/api-keys/organisation/service", admintest.AdminKey, body(h, ""), "workspace_id"},
		{"the same by the query", "/api-keys/organisation/service?workspace_id=" + h.One, admintest.AdminKey, `{"name":"k","scopes":["configs.list"]}`, "workspace_id"},
		{"a user key without a user", "/api-keys/workspace/user", admintest.AdminKey, body(h, ""), "user_id"},
		{"a service key with a user", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"user_id":"u"`), "user_id"},
		{"no workspace", "/api-keys/workspace/service", admintest.AdminKey, `{"name":"k","scopes":["configs.list"]}`, "workspace_id"},
		{"a past expiry", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"expires_at":"2020-01-01"`), "expires_at"},
		{"an unknown limit", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"usage_limits":{"type":"cost","credit_limit":1,"color":"red"}`), "usage_limits.color"},
		{"both resets", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"usage_limits":{"type":"cost","credit_limit":1,"periodic_reset":"weekly","periodic_reset_days":3}`), "usage_limits.periodic_reset_days"},
		{"a transition of a minute", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"rotation_policy":{"rotation_period":"weekly","key_transition_period_ms":60000}`), "rotation_policy.key_transition_period_ms"},
		{"a config that is not there", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"defaults":{"config_id":"pc-none"}`), "defaults.config_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.body
			if strings.Count(text, `"scopes"`) > 1 { // the case brings its own
				text = strings.Replace(text, `"scopes":["configs.list"],`, "", 1)
			}
			h.For(t).Do("POST", c.path, c.caller, text).RequireFault(400, "AB01", c.field)
		})
	}
	// No caller grants permissions that it lacks.
	own := h.Do("POST", "/api-keys/workspace/service", admintest.WorkspaceA, `{"name":"k","scopes":["configs.list"]}`)
	if own.Status == 200 {
		h.SetCaller("narrow", admin.Caller{KeyID: "n", Type: string(identity.WorkspaceService), Scope: store.Scope{Org: admintest.Org, Workspace: h.One}, Scopes: admintest.ScopeList{"workspace_service_api_keys.create"}}.As(identity.RankManager))
		h.Do("POST", "/api-keys/workspace/service", "narrow", `{"name":"k","scopes":["configs.list"]}`).RequireFault(403, "AB03", "scopes[0]")
	}
	h.Do("POST", "/api-keys/organisation/service", admintest.WorkspaceA, `{"name":"k","scopes":["audit_logs.list"]}`).RequireFault(403, "AB03", "")
}

func TestUpdatesAreThreeStated(t *testing.T) {
	h := newInstallation(t)
	made := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"description":"d","rate_limits":[{"type":"requests","unit":"rpm","value":5}],"usage_limits":{"type":"cost","credit_limit":10.5,"alert_threshold":5},"defaults":{"metadata":{"team":"blue"}},"alert_emails":["a@example.com"]`)).OK()
	path := "/api-keys/" + made.Text("id")
	h.Do("PUT", path, admintest.AdminKey, `{"name":"renamed"}`).OK()
	got := h.Do("GET", path, admintest.AdminKey, nil).OK()
	if got.Text("name") != "renamed" || got.Text("description") != "d" || got.At("usage_limits", "credit_limit") != 10.5 || got.At("usage_limits", "current_usage") != 0.0 || got.At("defaults", "metadata", "team") != "blue" {
		t.Errorf("absent fields changed: %s", got.Body)
	}
	h.Do("PUT", path, admintest.AdminKey, `{"description":null,"usage_limits":null,"rate_limits":null,"alert_emails":[]}`).OK()
	got = h.Do("GET", path, admintest.AdminKey, nil).OK()
	if got.Text("description") != "" || got.At("usage_limits") != nil || got.At("rate_limits", "0") != nil {
		t.Errorf("null did not clear: %s", got.Body)
	}
	h.Do("PUT", path, admintest.AdminKey, `{}`).RequireFault(400, "AB01", "")
	h.Do("PUT", path, admintest.AdminKey, `{"user_id":"u"}`).RequireFault(400, "AB01", "")
	h.Do("DELETE", path, admintest.AdminKey, nil).OK()
	h.Do("GET", path, admintest.AdminKey, nil).RequireFault(404, "AB08", "")
}

func TestRotationPolicyGetsItsDate(t *testing.T) {
	h := newInstallation(t)
	made := h.Do("POST", "/api-keys/workspace/service", admintest.AdminKey, body(h, `"rotation_policy":{"rotation_period":"monthly"}`)).OK()
	got := h.Do("GET", "/api-keys/"+made.Text("id"), admintest.AdminKey, nil).OK()
	at, err := time.Parse(time.RFC3339, got.Text("rotation_policy", "next_rotation_at"))
	if err != nil || at.Day() != 1 || !at.After(time.Now()) || got.At("rotation_policy", "key_transition_period_ms") != nil {
		t.Errorf("%v: %s", err, got.Body)
	}
}

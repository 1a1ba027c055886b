package apikeys

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/testkit/admintest"
)

func TestEveryScopeIsListedWithDescriptionAndHolders(t *testing.T) {
	h := newInstallation(t)
	var list struct {
		Total int
		Data  []scope
	}
	if err := json.Unmarshal(h.Do("GET", "/scopes", admintest.NoScopesWs, nil).OK().Body, &list); err != nil {
		t.Fatal(err)
	}
	byName := map[string]scope{}
	seen := map[string]string{}
	for _, s := range list.Data {
		if s.Description == "" || seen[s.Description] != "" {
			t.Errorf("%s has the description %q, as has %q", s.Name, s.Description, seen[s.Description])
		}
		byName[s.Name], seen[s.Description] = s, s.Name
	}
	for _, kind := range identity.KeyTypes {
		held := identity.ScopesFor(kind)
		for _, name := range held {
			if !slices.Contains(byName[name].KeyTypes, string(kind)) {
				t.Errorf("%s: %v without %s", name, byName[name].KeyTypes, kind)
			}
		}
		if got := h.Do("GET", "/scopes?key_type="+string(kind), admintest.AdminKey, nil).OK().At("total"); got != float64(len(held)) {
			t.Errorf("%s: %v scopes, want %d", kind, got, len(held))
		}
	}
	if list.Total != len(list.Data) || list.Total < 100 {
		t.Errorf("total %d of %d", list.Total, len(list.Data))
	}
	h.Do("GET", "/scopes?key_type=no", admintest.AdminKey, nil).RequireFault(400, "AB01", "key_type")
}

// Every credential may read itself, whatever its scopes, and never sees its secret.
func TestSelfDescribesEveryTypeOfCaller(t *testing.T) {
	h := newInstallation(t)
	user := addUser(t, h, "ann@example.com", "member", h.One)
	for _, key := range []string{admintest.AdminKey, admintest.WorkspaceA, admintest.NoScopesKey, admintest.NoScopesWs} {
		c := h.Caller(key)
		a := h.Do("GET", "/api-keys/self", key, nil).OK()
		if a.Text("type") != c.Type || a.Text("id") != c.KeyID || a.Text("organisation_id") != c.Scope.Org {
			t.Errorf("%s: %s", key, a.Body)
		}
		if got, _ := a.At("workspace", "id").(string); got != c.Scope.Workspace {
			t.Errorf("%s: workspace %q, want %q", key, got, c.Scope.Workspace)
		}
	}
	for path, sent := range map[string]string{
		"workspace/service":    body(h, `"expires_at":"2999-01-01T00:00:00Z","usage_limits":{"credit_limit":2},"rate_limits":[{"type":"requests","unit":"rpm","value":5}]`),
		"workspace/user":       body(h, `"user_id":"`+user+`"`),
		"organisation/service": `{"name":"k","scopes":["configs.list"]}`,
	} {
		made := h.Do("POST", "/api-keys/"+path, admintest.AdminKey, sent).OK()
		sc, _, err := identity.ScopeOf(t.Context(), h.Resources.Store(), admintest.Org, made.Text("id"))
		if err != nil {
			t.Fatal(err)
		}
		rec, _, err := h.Resources.Get(t.Context(), sc, identity.KindKey, made.Text("id"))
		if err != nil {
			t.Fatal(err)
		}
		caller := h.Caller(admintest.AdminKey)
		caller.KeyID, caller.Scope, caller.Scopes = rec.ID, rec.Scope, identity.NewScopeSet("configs.list")
		var k identity.Key
		if err := json.Unmarshal(rec.Body, &k); err != nil {
			t.Fatal(err)
		}
		caller.Limits = identity.SubjectOf(rec.Scope, rec.ID, rec.Name, rec.Rev, k.RateLimits, k.UsageLimits)
		h.SetCaller("self", caller)
		a := h.Do("GET", "/api-keys/self", "self", nil).OK()
		if a.Text("name") != "k" || strings.Contains(string(a.Body), "gw-") || strings.Contains(string(a.Body), k.Secret.Masked) || strings.Contains(string(a.Body), k.Secret.Hash) {
			t.Errorf("%s: %s", path, a.Body)
		}
		if scopes, _ := a.At("scopes").([]any); len(scopes) != 1 || scopes[0] != "configs.list" {
			t.Errorf("%s: scopes %v", path, scopes)
		}
		if path == "workspace/service" {
			if a.Text("expires_at") != "2999-01-01T00:00:00.000Z" || !strings.Contains(string(a.Body), `"available":2`) || !strings.Contains(string(a.Body), `"used":0,"available":5`) {
				t.Errorf("%s: %s", path, a.Body)
			}
		}
	}
}

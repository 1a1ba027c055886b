package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

func TestFamilyChecks(t *testing.T) {
	h := newInstallation(t)
	admintest.CheckFamily(t, h)
	integrate(t, h, admintest.Org, h.One, "own")
	for path, slug := range map[string]string{
		"/providers":    create(t, h, ""),
		"/virtual-keys": h.Do("POST", "/virtual-keys", key, `{"name":"k","provider":"openai","key":"sk-abcdefgh"}`).OK().Text("data", "slug"),
	} {
		admintest.ForeignIsMissing(t, h, "GET", path, slug, nil)
		admintest.ForeignIsMissing(t, h, "PUT", path, slug, `{"name":"b"}`)
		admintest.ForeignIsMissing(t, h, "DELETE", path, slug, nil)
		admintest.BadBodies(t, h, "PUT", path+"/"+slug, key, `{"name":"b"}`)
		for _, method := range []string{"PUT", "DELETE"} {
			h.Do(method, path+"/"+slug, admintest.MemberKey, `{"name":"b"}`).RequireFault(403, "AB03", "")
		}
		h.Do("GET", path+"/"+slug, admintest.MemberKey, nil).OK()
		h.Do("GET", path+"/"+slug, chief, nil).OK() // the slug determines the workspace
		h.Do("GET", path+"/"+slug+"?workspace_id="+admintest.OneSlug, chief, nil).OK()
		h.Do("PUT", path+"/"+slug, admintest.ManagerKey, `{"name":"b"}`).OK()
	}
	admintest.BadBodies(t, h, "POST", "/providers", key, `{"name":"a","integration_id":"own"}`)
	admintest.BadBodies(t, h, "POST", "/virtual-keys", key, `{"name":"a","provider":"openai","key":"sk-abcdefgh"}`)
}

func TestScopesOfBothForms(t *testing.T) {
	h := newInstallation(t)
	c := h.Caller(key)
	for _, row := range []struct {
		scope, path string
		status      int
	}{
		{"providers.list", "/providers", 200}, {"virtual_keys.list", "/providers", 200},
		{"virtual_keys.list", "/virtual-keys", 200}, {"providers.list", "/virtual-keys", 403}, {"providers.read", "/providers", 403},
	} {
		c.Scopes = admintest.ScopeList{row.scope}
		h.SetCaller("scoped", c)
		if got := h.Do("GET", row.path, "scoped", nil); got.Status != row.status {
			t.Errorf("%s with %s: %d", row.path, row.scope, got.Status)
		}
	}
}

func TestProviderIsReadBack(t *testing.T) {
	h := newInstallation(t)
	integrate(t, h, admintest.Org, h.One, "own")
	slug := create(t, h, `,"note":"n","tags":{"team":"a"},"expires_at":"2999-01-01T00:00:00Z","rate_limits":{"type":"requests","unit":"rpm","value":5},
		"usage_limits":{"type":"cost","credit_limit":10.5,"alert_threshold":5,"periodic_reset":"weekly"}`)
	if !regexp.MustCompile(`^my-provider-[0-9a-f]{6}$`).MatchString(slug) {
		t.Errorf("slug %s", slug)
	}
	a := h.Do("GET", "/providers/"+slug, key, nil).OK()
	for name, want := range map[string]any{
		"name": "My Provider", "slug": slug, "integration_id": "own", "note": "n", "status": "active", "object": "provider",
		"ai_provider_name": "openai", "workspace_id": h.One, "organisation_id": admintest.Org, "reset_usage": nil, "last_reset_at": nil,
		"expires_at": "2999-01-01T00:00:00.000Z", "configurations": nil,
	} {
		if got := a.At(name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if a.At("usage_limits", "credit_limit") != 10.5 || a.At("usage_limits", "current_usage") != 0.0 || a.At("usage_limits", "next_reset_at") == nil ||
		a.At("rate_limits", "0", "value") != 5.0 || a.At("tags", "team") != "a" || a.Text("model_config", "openaiOrganization") != "org-1" {
		t.Errorf("read: %s", a.Body)
	}
	if got := h.Do("GET", "/providers?tags={\"team\":\"a\"}", key, nil).OK(); got.At("total") != 1.0 || got.Text("data", "0", "slug") != slug || got.Text("object") != "list" {
		t.Errorf("list: %s", got.Body)
	}
	if got := h.Do("GET", "/providers?tags={\"team\":\"b\"}", key, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("list by another tag: %s", got.Body)
	}
	withConfig := h.Do("GET", "/providers/"+slug+"?include_configurations=true", key, nil).OK()
	if withConfig.Text("configurations", "openai_organization") != "org-1" {
		t.Errorf("with configurations: %s", withConfig.Body)
	}
	h.Do("GET", "/providers/"+slug+"?include_configurations=true", admintest.WsAdminKey, nil).RequireFault(403, "AB03", "")
}

func TestUpdateChangesWhatItNames(t *testing.T) {
	h := newInstallation(t)
	integrate(t, h, admintest.Org, h.One, "own")
	slug := create(t, h, `,"slug":"mine","note":"n","usage_limits":{"credit_limit":10},"rate_limits":[{"type":"tokens","unit":"rpd","value":5}]`)
	if got := h.Do("PUT", "/providers/mine", key, `{"name":"New","integration_id":"own"}`).OK(); got.Text("slug") != slug || got.Text("id") == "" {
		t.Errorf("update answered %s", got.Body)
	}
	a := h.Do("GET", "/providers/mine", key, nil).OK()
	if a.Text("name") != "New" || a.Text("note") != "n" || a.At("usage_limits", "credit_limit") != 10.0 {
		t.Errorf("after the update: %s", a.Body)
	}
	h.Do("PUT", "/providers/mine", key, `{"reset_usage":true}`).OK()
	if a = h.Do("GET", "/providers/mine", key, nil).OK(); a.At("reset_usage") != 1.0 || a.At("last_reset_at") == nil {
		t.Errorf("after the reset: %s", a.Body)
	}
	h.Do("PUT", "/providers/mine", key, `{"note":null,"usage_limits":null,"rate_limits":[],"expires_at":null,"tags":{"a":"b"}}`).OK()
	if a = h.Do("GET", "/providers/mine", key, nil).OK(); a.At("note") != nil || a.At("usage_limits") != nil || a.Text("tags", "a") != "b" {
		t.Errorf("after null: %s", a.Body)
	}
	if got := h.Do("DELETE", "/providers/mine", key, nil).OK(); string(got.Body) != "{}" {
		t.Errorf("delete answered %s", got.Body)
	}
	h.Do("GET", "/providers/mine", key, nil).RequireFault(404, "AB08", "")
	if got := h.Do("GET", "/providers", key, nil).OK().At("total"); got != 0.0 {
		t.Errorf("%v providers are listed", got)
	}
	create(t, h, `,"slug":"mine"`) // the slug is free again
}

func TestBadInputIsRefusedWithItsField(t *testing.T) {
	h := newInstallation(t)
	integrate(t, h, admintest.Org, h.One, "own")
	create(t, h, `,"slug":"mine"`)
	provide := func(members string) string { return `{"name":"a","integration_id":"own"` + members + `}` }
	hold := func(members string) string {
		return `{"name":"a","provider":"openai","key":"sk-abcdefgh"` + members + `}`
	}
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "/providers", `{}`, "name"},
		{"POST", "/providers", `{}`, "integration_id"},
		{"POST", "/providers", `{"name":"` + strings.Repeat("n", 256) + `","integration_id":"own"}`, "name"},
		{"POST", "/providers", provide(`,"slug":"a b"`), "slug"},
		{"POST", "/providers", provide(`,"slug":"` + strings.Repeat("s", 256) + `"`), "slug"},
		{"POST", "/providers", provide(`,"usage_limits":[{"credit_limit":1}]`), "usage_limits"},
		{"POST", "/providers", provide(`,"usage_limits":{}`), "usage_limits.credit_limit"},
		{"POST", "/providers", provide(`,"usage_limits":{"credit_limit":0}`), "usage_limits.credit_limit"},
		{"POST", "/providers", provide(`,"usage_limits":{"type":"tokens","credit_limit":99}`), "usage_limits.credit_limit"},
		{"POST", "/providers", provide(`,"usage_limits":{"credit_limit":1,"alert_threshold":1}`), "usage_limits.alert_threshold"},
		{"POST", "/providers", provide(`,"usage_limits":{"credit_limit":1,"periodic_reset":"weekly","periodic_reset_days":3}`), "usage_limits.periodic_reset_days"},
		{"POST", "/providers", provide(`,"usage_limits":{"credit_limit":1,"nonsense":1}`), "usage_limits.nonsense"},
		{"POST", "/providers", provide(`,"rate_limits":{"type":"requests","unit":"tpm","value":1}`), "rate_limits.unit"},
		{"POST", "/providers", provide(`,"rate_limits":[{"type":"requests","unit":"rps","value":1}]`), "rate_limits[0].unit"},
		{"POST", "/providers", provide(`,"rate_limits":[{"type":"requests","unit":"rpm","value":-1}]`), "rate_limits[0].value"},
		{"POST", "/providers", provide(`,"expires_at":"yesterday"`), "expires_at"},
		{"POST", "/providers", provide(`,"expires_at":"2001-01-01"`), "expires_at"},
		{"POST", "/providers", provide(`,"tags":["a"]`), "tags"},
		{"PUT", "/providers/mine", `{}`, ""},
		{"PUT", "/providers/mine", `{"name":null}`, "name"},
		{"PUT", "/providers/mine", `{"integration_id":"other"}`, "integration_id"},
		{"PUT", "/providers/mine", `{"reset_usage":"yes"}`, "reset_usage"},
		{"POST", "/virtual-keys", `{}`, "name"},
		{"POST", "/virtual-keys", `{}`, "provider"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"none","key":"k"}`, "provider"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"openai"}`, "key"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"openai","key":"sk****yz"}`, "key"},
		{"POST", "/virtual-keys", hold(`,"resourceName":"r"`), "resourceName"},
		{"POST", "/virtual-keys", hold(`,"customHost":"https://192.168.1.1/v1"`), "customHost"},
		{"POST", "/virtual-keys", hold(`,"custom_host":"https://[::1]/v1"`), "custom_host"},
		{"POST", "/virtual-keys", hold(`,"custom_host":"https://a.example.com","customHost":"https://a.example.com"`), ""},
		{"POST", "/virtual-keys", hold(`,"deploymentConfig":[]`), "deploymentConfig"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"azure-openai","key":"k","resourceName":"a.b","deploymentName":"d","apiVersion":"v"}`, "resourceName"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"azure-openai","key":"k","resourceName":"r"}`, "deploymentConfig"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"azure-openai","key":"k","resourceName":"r","deploymentConfig":[{"apiVersion":"v"}]}`, "deploymentConfig[0].deploymentName"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"azure-openai","key":"k","resourceName":"r","deploymentConfig":[{"deploymentName":"d"}]}`, "deploymentConfig[0].apiVersion"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"bedrock","awsRegion":"us-east-1","awsAccessKeyId":"AKID"}`, "awsSecretAccessKey"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"bedrock","awsRegion":"us-east-1/x","awsAccessKeyId":"AKID","awsSecretAccessKey":"s"}`, "awsRegion"},
		{"POST", "/virtual-keys", `{"name":"a","provider":"workers-ai","key":"k"}`, "workersAiAccountId"},
		{"POST", "/virtual-keys", hold(`,"secret_mappings":[{"target_field":"configurations.x","secret_reference_id":"r"}]`), "secret_mappings[0].target_field"},
		{"POST", "/virtual-keys", hold(`,"secret_mappings":[{"target_field":"model_config.nonsense","secret_reference_id":"r"}]`), "secret_mappings[0].target_field"},
		{"PUT", "/virtual-keys/mine", `{"key":"sk-abcdefgh"}`, "key"},
		{"PUT", "/virtual-keys/mine", `{"awsRegion":"us-east-1"}`, "awsRegion"},
		{"PUT", "/virtual-keys/mine", `{"provider":"anthropic"}`, "provider"},
	} {
		got := h.Do(c.method, c.path, key, c.body)
		if got.Status != 400 {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, got.Status, got.Body)
			continue
		}
		got.RequireFault(400, "AB01", c.field)
	}
	h.Do("POST", "/providers", key, provide(`,"slug":"mine"`)).RequireFault(409, "AB07", "slug")
	h.Do("POST", "/virtual-keys", key, hold(`,"slug":"mine"`)).RequireFault(409, "AB07", "slug")
}

func TestOnlyOpenIntegrationsAreUsed(t *testing.T) {
	h := newInstallation(t)
	integrate(t, h, admintest.Org, "", "shared", open(h.One))
	integrate(t, h, admintest.Org, "", "closed", open(h.Two))
	integrate(t, h, admintest.Org, h.Two, "others")
	integrate(t, h, admintest.OtherOrg, "", "foreign")
	missing := h.Do("POST", "/providers", key, `{"name":"a","integration_id":"none"}`).RequireFault(400, "AB01", "integration_id")
	for _, slug := range []string{"closed", "others", "foreign"} {
		if got := h.Do("POST", "/providers", key, `{"name":"a","integration_id":"`+slug+`"}`); got.Comparable() != missing.Comparable() {
			t.Errorf("%s is told from a missing one: %s", slug, got.Body)
		}
	}
	h.Do("POST", "/providers", key, `{"name":"a","slug":"a","integration_id":"shared"}`).OK()
	a := h.Do("GET", "/providers/a", key, nil).OK()
	if a.Text("integration_id") != "shared" || len(a.At("model_config").(map[string]any)) != 0 || bytes.Contains(a.Body, []byte("sk****yz")) {
		t.Errorf("of the organization's integration: %s", a.Body)
	}
	// The workspace's own integration is found before the organization's.
	own := integrate(t, h, admintest.Org, h.One, "shared")
	h.Do("POST", "/providers", key, `{"name":"b","slug":"b","integration_id":"shared"}`).OK()
	users, err := h.Resources.Users(context.Background(), own.Ref())
	if err != nil || len(users) != 1 || users[0].Name != "b" {
		t.Errorf("users %v, %v", users, err)
	}
}

func TestStatusFollowsIntegrationAndTime(t *testing.T) {
	h := newInstallation(t)
	of := integrate(t, h, admintest.Org, "", "own", open(h.One))
	slug := create(t, h, "")
	status := func(want string) {
		t.Helper()
		for _, path := range []string{"/providers", "/virtual-keys"} {
			if got := h.Do("GET", path+"/"+slug, key, nil).OK().Text("status"); got != want {
				t.Errorf("%s: status %s, want %s", path, got, want)
			}
		}
	}
	status("active")
	change := func(kind resource.Kind, sc store.Scope, id string, f func(map[string]any)) {
		t.Helper()
		err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
			rec, _, err := tx.Get(sc, kind, id)
			if err != nil {
				return err
			}
			var body map[string]any
			if err := json.Unmarshal(rec.Body, &body); err != nil {
				return err
			}
			f(body)
			rec.Body, _ = json.Marshal(body)
			return tx.Update(&rec)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	change(provider.KindIntegration, of.Scope, of.ID, func(b map[string]any) { delete(b, "workspaces") })
	status("disabled")
	change(provider.KindProvider, store.Scope{Org: admintest.Org, Workspace: h.One}, slug, func(b map[string]any) { b["expires_at"] = "2001-01-01T00:00:00Z" })
	status("expired")
}

func TestUsedProviderIsNotDeleted(t *testing.T) {
	h := newInstallation(t)
	integrate(t, h, admintest.Org, h.One, "own")
	slug := create(t, h, "")
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	rec, _, err := h.Resources.Get(context.Background(), sc, provider.KindProvider, slug)
	if err != nil {
		t.Fatal(err)
	}
	by := resource.Ref{Scope: sc, Kind: "PROMPT", ID: resource.NewID(), Name: "greeting"}
	if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Use(rec.Ref(), by) }); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/providers/", "/virtual-keys/"} {
		if f := h.Do("DELETE", path+slug, key, nil).RequireFault(409, "AB07", "").Failure(); !strings.Contains(f.Message, "greeting") {
			t.Errorf("the user is not named: %s", f.Message)
		}
	}
}

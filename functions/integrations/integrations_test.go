package integrations

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/admintest"
	"gateway/shared/egress"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
)

const (
	key   = admintest.WorkspaceA
	chief = admintest.AdminKey
)

func newHouse(t testing.TB) *admintest.House {
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{New(Deps{Ledger: ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{}), CheckURL: egress.Policy{}.CheckURL})}
	})
}

// create makes an integration and gives its slug.
func create(t testing.TB, h *admintest.House, as, members string) string {
	t.Helper()
	a := h.Do("POST", "/integrations", as, `{"name":"Own","ai_provider_id":"openai","key":"sk-first-secret-of-mine"`+members+`}`).OK()
	if a.Text("id") == "" || len(a.Object()) != 2 {
		t.Fatalf("create answered %s", a.Body)
	}
	return a.Text("slug")
}

func providersIn(t testing.TB, h *admintest.House, workspace string) []resource.Row {
	t.Helper()
	rows, err := h.Resources.List(context.Background(), store.Scope{Org: admintest.Org, Workspace: workspace}, provider.KindProvider)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func stored(t testing.TB, h *admintest.House, workspace, slug string) (resource.Record, *provider.Integration) {
	t.Helper()
	rec, ok, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org, Workspace: workspace}, provider.KindIntegration, slug)
	if err != nil || !ok {
		t.Fatalf("%s: %v %v", slug, ok, err)
	}
	i, err := provider.DecodeIntegration(rec)
	if err != nil {
		t.Fatal(err)
	}
	return rec, i
}

func TestFamilyChecks(t *testing.T) {
	h := newHouse(t)
	admintest.CheckFamily(t, h)
	slug := create(t, h, key, "")
	for _, c := range []struct {
		method, tail string
		body         any
	}{
		{"GET", "", nil}, {"PUT", "", `{"name":"b"}`}, {"DELETE", "", nil},
	} {
		admintest.ForeignIsMissing(t, h, c.method, "/integrations", slug+c.tail, c.body)
	}
	for _, c := range []struct {
		method, tail string
		body         any
	}{
		{"GET", "/models", nil}, {"PUT", "/models", `{"allow_all_models":false}`}, {"DELETE", "/models?slugs=x", nil},
		{"GET", "/workspaces", nil}, {"PUT", "/workspaces", `{"workspaces":[{"id":"` + h.One + `","enabled":true}]}`},
	} {
		for _, as := range []string{admintest.WorkspaceB, admintest.OtherAdmin} {
			foreign, missing := h.Do(c.method, "/integrations/"+slug+c.tail, as, c.body), h.Do(c.method, "/integrations/none"+c.tail, as, c.body)
			if foreign.Same() != missing.Same() || foreign.Status != 403 {
				t.Errorf("%s %s as %s: %s, missing %s", c.method, c.tail, as, foreign.Same(), missing.Same())
			}
		}
	}
	admintest.BadBodies(t, h, "POST", "/integrations", chief, `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh"}`)
	admintest.BadBodies(t, h, "PUT", "/integrations/"+slug, key, `{"name":"a"}`)
	admintest.BadBodies(t, h, "PUT", "/integrations/"+slug+"/models", key, `{"allow_all_models":true}`)
	org := create(t, h, chief, "")
	admintest.BadBodies(t, h, "PUT", "/integrations/"+org+"/workspaces", chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true}]}`)
}

func TestReadShowsEverythingButSecrets(t *testing.T) {
	const canary = "CANARY-0123456789"
	h := newHouse(t)
	slug := h.Do("POST", "/integrations", chief, `{"name":"Our Bedrock","ai_provider_id":"bedrock","description":"d","tags":{"team":"a"},
		"pricing_adjustments":{"multiplier":{"default":0.8}},
		"configurations":{"aws_auth_type":"accessKey","aws_region":"eu-west-1","aws_access_key_id":"AKID","aws_secret_access_key":"`+canary+`","custom_headers":{"X-Team":"`+canary+`"}}}`).OK().Text("slug")
	if slug != "our-bedrock" {
		t.Errorf("slug %s", slug)
	}
	a := h.Do("GET", "/integrations/"+slug, chief, nil).OK()
	for name, want := range map[string]any{
		"name": "Our Bedrock", "ai_provider_id": "bedrock", "type": "organisation", "workspace_id": nil, "status": "active", "object": "integration",
		"description": "d", "allow_all_models": true, "workspace_count": 0.0, "organisation_id": admintest.Org,
	} {
		if got := a.At(name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if a.At("configurations", "aws_access_key_id") != "AKID" || a.At("configurations", "masked_aws_secret_access_key") != "CA****89" ||
		a.At("configurations", "masked_custom_headers", "X-Team") != "CA****89" || a.At("tags", "team") != "a" ||
		a.At("pricing_adjustments", "multiplier", "default") != 0.8 || a.At("global_workspace_access_settings", "enabled") != false {
		t.Errorf("read: %s", a.Body)
	}
	rec, _ := stored(t, h, "", slug)
	log, err := json.Marshal(h.Audit())
	if err != nil {
		t.Fatal(err)
	}
	for where, b := range map[string][]byte{"answer": a.Body, "body": rec.Body, "sealed": rec.Sealed, "audit": log} {
		if bytes.Contains(b, []byte(canary)) {
			t.Errorf("the %s shows a secret: %s", where, b)
		}
	}
	secrets, err := rec.OpenSecrets(context.Background(), admintest.Sealer{})
	if err != nil || string(secrets["aws_secret_access_key"]) != canary || string(secrets["custom_headers"]) != `{"X-Team":"`+canary+`"}` {
		t.Errorf("secrets %q %v", secrets, err)
	}
	cred := provider.CredentialFromConfig(mustProvider(t, "bedrock"), "", map[string]any{"custom_headers": string(secrets["custom_headers"])})
	if cred.CustomHeaders["X-Team"] != canary {
		t.Errorf("sealed headers are not read: %v", cred.CustomHeaders)
	}
}

func mustProvider(t testing.TB, id string) *provider.Provider {
	t.Helper()
	p, ok := provider.ByID(id)
	if !ok {
		t.Fatal(id)
	}
	return p
}

func TestUpdateChangesWhatItNames(t *testing.T) {
	h := newHouse(t)
	slug := create(t, h, key, `,"configurations":{"openai_organization":"org-1","openai_project":"p"}`)
	first := h.Do("GET", "/integrations/"+slug, key, nil).OK()
	if first.Text("masked_key") != "sk****ne" || first.Text("type") != "workspace" || first.Text("workspace_id") != h.One {
		t.Errorf("read: %s", first.Body)
	}
	if got := h.Do("PUT", "/integrations/"+slug, key, `{"name":"New","description":null,"ai_provider_id":"openai","configurations":{"openai_project":null,"openai_organization":"org-2","masked_x":"y"}}`).OK(); string(got.Body) != "{}" {
		t.Errorf("update answered %s", got.Body)
	}
	a := h.Do("GET", "/integrations/"+slug, key, nil).OK()
	config, err := json.Marshal(a.At("configurations"))
	if err != nil || string(config) != `{"openai_organization":"org-2"}` || a.Text("name") != "New" || a.Text("masked_key") != first.Text("masked_key") {
		t.Errorf("after the update: %s", a.Body)
	}
	h.Do("PUT", "/integrations/"+slug, key, `{"key":"sk-second-secret-of-ours"}`).OK()
	if got := h.Do("GET", "/integrations/"+slug, key, nil).OK().Text("masked_key"); got != "sk****rs" {
		t.Errorf("masked key %s", got)
	}
	rec, _ := stored(t, h, h.One, slug)
	if s, err := rec.OpenSecrets(context.Background(), admintest.Sealer{}); err != nil || string(s[provider.SecretKey]) != "sk-second-secret-of-ours" {
		t.Errorf("secrets %q %v", s, err)
	}
	h.Do("PUT", "/integrations/"+slug, key, `{"configurations":null}`).OK()
	if got := h.Do("GET", "/integrations/"+slug, key, nil).OK().At("configurations"); len(got.(map[string]any)) != 0 {
		t.Errorf("null left %v", got)
	}
}

func TestBadInputIsRefusedWithItsField(t *testing.T) {
	h := newHouse(t)
	slug := create(t, h, chief, "")
	post := func(members string) string {
		return `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh"` + members + `}`
	}
	for _, c := range []struct{ method, path, body, field string }{
		{"POST", "", `{}`, "name"},
		{"POST", "", `{}`, "ai_provider_id"},
		{"POST", "", `{"name":"","ai_provider_id":"openai"}`, "name"},
		{"POST", "", `{"name":"a","ai_provider_id":"openai"}`, "key"},
		{"POST", "", `{"name":"a","ai_provider_id":"openai","key":""}`, "key"},
		{"POST", "", `{"name":"a","ai_provider_id":"openai","key":null}`, "key"},
		{"POST", "", `{"name":"a","ai_provider_id":"no-such","key":"k"}`, "ai_provider_id"},
		{"POST", "", `{"name":"` + strings.Repeat("n", 256) + `","ai_provider_id":"openai","key":"k"}`, "name"},
		{"POST", "", post(`,"slug":"a b"`), "slug"},
		{"POST", "", post(`,"slug":"` + strings.Repeat("s", 256) + `"`), "slug"},
		{"POST", "", post(`,"tags":{"a":1}`), "tags.a"},
		{"POST", "", post(`,"configurations":[]`), "configurations"},
		{"POST", "", post(`,"configurations":{"nonsense":"x"}`), "configurations.nonsense"},
		{"POST", "", post(`,"configurations":{"custom_host":"http://169.254.169.254/latest"}`), "configurations.custom_host"},
		{"POST", "", post(`,"configurations":{"custom_host":"https://localhost/v1"}`), "configurations.custom_host"},
		{"POST", "", post(`,"configurations":{"custom_host":"https://10.0.0.7/v1"}`), "configurations.custom_host"},
		{"POST", "", post(`,"configurations":{"custom_host":"file:///etc/passwd"}`), "configurations.custom_host"},
		{"POST", "", post(`,"configurations":{"custom_host":"https://user:pw@example.com"}`), "configurations.custom_host"},
		{"POST", "", post(`,"configurations":{"custom_host":7}`), "configurations.custom_host"},
		{"POST", "", post(`,"configurations":{"custom_headers":{"Host":"x"}}`), "configurations.custom_headers.Host"},
		{"POST", "", post(`,"configurations":{"custom_headers":{"X":7}}`), "configurations.custom_headers.X"},
		{"POST", "", `{"name":"a","ai_provider_id":"azure-ai","key":"k","configurations":{"azure_auth_mode":"default","azure_foundry_url":"https://127.0.0.1/x"}}`, "configurations.azure_foundry_url"},
		{"POST", "", `{"name":"a","ai_provider_id":"azure-openai","key":"k","configurations":{"azure_auth_mode":"default","azure_resource_name":"a.evil.com/","azure_deployment_config":[{"azure_deployment_name":"d"}]}}`, "configurations.azure_resource_name"},
		{"POST", "", `{"name":"a","ai_provider_id":"azure-openai","key":"k","configurations":{"azure_auth_mode":"default","azure_resource_name":"a"}}`, "configurations.azure_deployment_config"},
		{"POST", "", `{"name":"a","ai_provider_id":"azure-openai","configurations":{"azure_auth_mode":"entra","azure_resource_name":"a","azure_deployment_config":[{"azure_deployment_name":"d"}]}}`, "configurations.azure_entra_client_secret"},
		{"POST", "", `{"name":"a","ai_provider_id":"bedrock","configurations":{"aws_auth_type":"accessKey","aws_region":"us-east-1"}}`, "configurations.aws_secret_access_key"},
		{"POST", "", `{"name":"a","ai_provider_id":"ollama"}`, "configurations.custom_host"},
		{"POST", "", post(`,"pricing_adjustments":{"multiplier":{"default":-1}}`), "pricing_adjustments.multiplier.default"},
		{"POST", "", post(`,"pricing_adjustments":{"multiplier":{"nonsense":1}}`), "pricing_adjustments.multiplier.nonsense"},
		{"POST", "", post(`,"pricing_adjustments":5`), "pricing_adjustments"},
		{"POST", "", post(`,"secret_mappings":[{"target_field":"key","secret_reference_id":"r"}]`), "key"},
		{"POST", "", post(`,"secret_mappings":[{"target_field":"slug","secret_reference_id":"r"}]`), "secret_mappings[0].target_field"},
		{"POST", "", post(`,"secret_mappings":[{"target_field":"configurations.custom_host","secret_reference_id":"r"}]`), "secret_mappings[0].target_field"},
		{"POST", "", post(`,"secret_mappings":[{"target_field":"configurations.openai_project"}]`), "secret_mappings[0].secret_reference_id"},
		{"POST", "", post(`,"secret_mappings":[{"target_field":"configurations.openai_project","secret_reference_id":"r","value_format":"xml"}]`), "secret_mappings[0].value_format"},
		{"POST", "", `{"name":"a","ai_provider_id":"openai","secret_mappings":[{"target_field":"key","secret_reference_id":"r"},{"target_field":"key","secret_reference_id":"s"}]}`, "secret_mappings[1].target_field"},
		{"PUT", "/" + slug, `{}`, ""},
		{"PUT", "/" + slug, `{"nonsense":1}`, ""},
		{"PUT", "/" + slug, `{"name":null}`, "name"},
		{"PUT", "/" + slug, `{"ai_provider_id":"anthropic"}`, "ai_provider_id"},
		{"PUT", "/" + slug, `{"key":"sk****ne"}`, "key"},
		{"PUT", "/" + slug, `{"key":null}`, "key"},
		{"PUT", "/" + slug, `{"configurations":{"openai_beta":1}}`, "configurations.openai_beta"},
		{"PUT", "/" + slug + "/models", `{"models":[]}`, "models"},
		{"PUT", "/" + slug + "/models", `{"models":[{"slug":"m"}]}`, "models[0].enabled"},
		{"PUT", "/" + slug + "/models", `{"models":[{"enabled":true}]}`, "models[0].slug"},
		{"PUT", "/" + slug + "/models", `{"models":[{"slug":"m","enabled":true},{"slug":"m","enabled":false}]}`, "models[1].slug"},
		{"PUT", "/" + slug + "/models", `{"models":[{"slug":"m","enabled":true,"configurations":{}}]}`, "models[0].configurations.custom_host"},
		{"PUT", "/" + slug + "/models", `{"models":[{"slug":"m","enabled":true,"configurations":{"custom_host":"https://10.1.2.3"}}]}`, "models[0].configurations.custom_host"},
		{"PUT", "/" + slug + "/models", `{"models":[{"slug":"m","enabled":true,"configurations":{"custom_host":"https://example.com","custom_headers":{"Host":"x"}}}]}`, "models[0].configurations.custom_headers.Host"},
		{"PUT", "/" + slug + "/models", `{"models":[{"slug":"m","enabled":true,"pricing_config":{"type":"static"}}]}`, "models[0].pricing_config.pay_as_you_go"},
		{"PUT", "/" + slug + "/models", `{"models":[{"slug":"m","enabled":true,"nonsense":1}]}`, "models[0].nonsense"},
		{"DELETE", "/" + slug + "/models", ``, "slugs"},
		{"DELETE", "/" + slug + "/models?slugs=gpt-4o-mini", ``, "slugs"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[]}`, "workspaces"},
		{"PUT", "/" + slug + "/workspaces", `{"create_default_provider":true}`, "workspaces"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"none","enabled":true}]}`, "workspaces[0].id"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"` + h.Three + `","enabled":true}]}`, "workspaces[0].id"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"` + h.One + `","enabled":true},{"id":"` + admintest.OneSlug + `","enabled":true}]}`, "workspaces[1].id"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"` + h.One + `"}]}`, "workspaces[0].enabled"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"` + h.One + `","enabled":true,"usage_limits":{"credit_limit":1}}]}`, "workspaces[0].usage_limits"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"` + h.One + `","enabled":true,"usage_limits":[{"credit_limit":0.5}]}]}`, "workspaces[0].usage_limits[0].credit_limit"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"` + h.One + `","enabled":true,"usage_limits":[{"credit_limit":1},{"credit_limit":2}]}]}`, "workspaces[0].usage_limits"},
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"` + h.One + `","enabled":true,"rate_limits":[{"type":"requests","unit":"rps","value":1}]}]}`, "workspaces[0].rate_limits[0].unit"},
		{"PUT", "/" + slug + "/workspaces", `{"global_workspace_access":{"usage_limits":[{"credit_limit":5}]}}`, "global_workspace_access.enabled"},
	} {
		var body any = c.body
		if c.body == "" {
			body = nil
		}
		got := h.Do(c.method, "/integrations"+c.path, chief, body)
		if got.Status != 400 {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, got.Status, got.Body)
			continue
		}
		got.Refused(400, "AB01", c.field)
	}
}

func TestSlugIsTakenOnce(t *testing.T) {
	h := newHouse(t)
	if got := create(t, h, chief, `,"slug":"mine"`); got != "mine" {
		t.Errorf("slug %s", got)
	}
	h.Do("POST", "/integrations", chief, `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh","slug":"mine"}`).Refused(409, "AB07", "slug")
	if a, b := create(t, h, chief, ""), create(t, h, chief, ""); a != "own" || !strings.HasPrefix(b, "own-") {
		t.Errorf("slugs %s, %s", a, b)
	}
	h.Do("DELETE", "/integrations/mine", chief, nil).OK()
	h.Do("GET", "/integrations/mine", chief, nil).Refused(403, "AB03", "")
	create(t, h, chief, `,"slug":"mine"`)
}

func TestWorkspaceIntegrationBringsAProvider(t *testing.T) {
	h := newHouse(t)
	create(t, h, key, `,"slug":"a"`)
	create(t, h, key, `,"slug":"b","default_provider_slug":"bee"`)
	create(t, h, key, `,"slug":"c","create_default_provider":false`)
	create(t, h, chief, `,"slug":"d","workspace_id":"`+admintest.OneSlug+`"`)
	var slugs []string
	for _, r := range providersIn(t, h, h.One) {
		slugs = append(slugs, r.Slug)
	}
	if got := strings.Join(slugs, " "); got != "d bee a" {
		t.Errorf("providers %s", got)
	}
	h.Do("POST", "/integrations", key, `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh","slug":"e","default_provider_slug":"bee"}`).Refused(400, "AB01", "default_provider_slug")
	h.Do("GET", "/integrations/e", key, nil).Refused(403, "AB03", "")
	// An organisation key finds it without naming the workspace, and by it.
	for _, query := range []string{"", "?workspace_id=" + admintest.OneSlug} {
		if got := h.Do("GET", "/integrations/a"+query, chief, nil).OK().Text("workspace_id"); got != h.One {
			t.Errorf("workspace %s", got)
		}
	}
	create(t, h, admintest.WorkspaceB, `,"slug":"a"`)
	h.Do("GET", "/integrations/a", chief, nil).Refused(400, "AB01", "workspace_id")
	if got := h.Do("GET", "/integrations/a/workspaces", key, nil).OK(); got.At("total") != 1.0 || got.Text("workspaces", "0", "id") != admintest.OneSlug {
		t.Errorf("workspaces of a workspace's own: %s", got.Body)
	}
	h.Do("PUT", "/integrations/b/workspaces", key, `{"workspaces":[{"id":"`+h.One+`","enabled":false}]}`).Refused(400, "AB01", "workspaces")
}

func TestScopesAndRolesFollowThePlace(t *testing.T) {
	h := newHouse(t)
	org, own := create(t, h, chief, `,"slug":"org"`), create(t, h, key, `,"slug":"own"`)
	c := h.Caller(chief)
	for _, action := range []string{"read", "update", "delete"} {
		method := map[string]string{"read": "GET", "update": "PUT", "delete": "DELETE"}[action]
		c.Scopes = admintest.ScopeList{ofWorkspace + "." + action}
		h.SetCaller("only-workspace", c)
		h.Do(method, "/integrations/"+org, "only-workspace", `{"name":"x"}`).Refused(403, "AB03", "")
		c.Scopes = admintest.ScopeList{ofOrganisation + "." + action}
		h.SetCaller("only-organisation", c)
		h.Do(method, "/integrations/"+own, "only-organisation", `{"name":"x"}`).Refused(403, "AB03", "")
	}
	c.Scopes = admintest.ScopeList{ofWorkspace + ".create"}
	h.SetCaller("only-workspace", c)
	h.Do("POST", "/integrations", "only-workspace", `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh"}`).Refused(403, "AB03", "")
	// Workspace keys reach nothing of the organisation but its list.
	h.Do("GET", "/integrations/"+org, key, nil).Refused(403, "AB03", "")
	// What another tenant has and what nobody has are the same.
	for _, as := range []string{key, admintest.WorkspaceB, admintest.OtherAdmin} {
		for _, r := range h.Families[0].Routes {
			if !strings.Contains(r.Path, "{slug}") {
				continue
			}
			var body any
			if r.Method == "PUT" {
				body = `{"name":"x","allow_all_models":true,"workspaces":[{"id":"` + h.One + `","enabled":true}]}`
			}
			at := func(slug string) string { return strings.Replace(r.Path, "{slug}", slug, 1) + "?slugs=m" }
			if foreign, missing := h.Do(r.Method, at(org), as, body), h.Do(r.Method, at("none"), as, body); foreign.Same() != missing.Same() || foreign.Status != 403 {
				t.Errorf("%s %s as %s: %s, missing %s", r.Method, r.Path, as, foreign.Same(), missing.Same())
			}
		}
	}
	// Members read, managers change.
	h.Do("GET", "/integrations/"+own, admintest.MemberKey, nil).OK()
	h.Do("PUT", "/integrations/"+own, admintest.MemberKey, `{"name":"x"}`).Refused(403, "AB03", "")
	h.Do("PUT", "/integrations/"+own+"/models", admintest.MemberKey, `{"allow_all_models":false}`).Refused(403, "AB03", "")
	h.Do("DELETE", "/integrations/"+own, admintest.MemberKey, nil).Refused(403, "AB03", "")
	h.Do("PUT", "/integrations/"+own, admintest.ManagerKey, `{"name":"x"}`).OK()
	user := h.Caller(chief)
	user.UserID, user.Role = resource.NewID(), admin.Manager
	h.SetCaller("org-manager", user)
	h.Do("PUT", "/integrations/"+org, "org-manager", `{"name":"x"}`).Refused(403, "AB03", "")
	user.Role = admin.Admin
	h.SetCaller("org-admin", user)
	h.Do("PUT", "/integrations/"+org, "org-admin", `{"name":"x"}`).OK()
}

func TestListShowsWhatTheCallerReaches(t *testing.T) {
	h := newHouse(t)
	create(t, h, chief, `,"slug":"org-1","tags":{"team":"a","env":"p"}`)
	create(t, h, chief, `,"slug":"org-2"`)
	create(t, h, key, `,"slug":"own-1","tags":{"team":"a"}`)
	create(t, h, admintest.WorkspaceB, `,"slug":"own-2"`)
	create(t, h, admintest.OtherAdmin, `,"slug":"foreign"`)
	h.Do("PUT", "/integrations/org-1/workspaces", chief, `{"workspaces":[{"id":"`+admintest.OneSlug+`","enabled":true}]}`).OK()
	for _, c := range []struct{ as, query, want string }{
		{chief, "", "org-1 org-2 own-1 own-2"},
		{chief, "?type=organisation", "org-1 org-2"},
		{chief, "?type=organisation&page_size=1&current_page=1", "org-1"},
		{chief, "?type=workspace", "own-1 own-2"},
		{chief, "?workspace_id=" + admintest.TwoSlug, "own-2"},
		{chief, "?workspace_id=" + h.One, "org-1 own-1"},
		{chief, `?tags={"team":"a"}`, "org-1 own-1"},
		{chief, `?tags={"team":"a","env":"p"}`, "org-1"},
		{key, "", "org-1 own-1"},
		{key, "?type=organisation", "org-1"},
		{admintest.MemberKey, "?type=workspace", "own-1"},
		{admintest.WorkspaceB, "", "own-2"},
		{admintest.OtherAdmin, "", "foreign"},
	} {
		a := h.Do("GET", "/integrations"+c.query, c.as, nil).OK()
		var slugs []string
		for _, e := range a.At("data").([]any) {
			o := e.(map[string]any)
			slugs = append(slugs, o["slug"].(string))
			if _, shown := o["configurations"]; shown {
				t.Errorf("a list shows configurations: %s", a.Body)
			}
		}
		slices.Sort(slugs) // what was made in one millisecond has no order
		if got := strings.Join(slugs, " "); got != c.want || a.Text("object") != "list" {
			t.Errorf("%s as %s: %s, want %s", c.query, c.as, got, c.want)
		}
	}
	if got := h.Do("GET", "/integrations?page_size=1", chief, nil).OK().At("total"); got != 4.0 {
		t.Errorf("total %v", got)
	}
	for _, query := range []string{"type=x", "tags=x", `tags={"a":1}`, "page_size=0", "page_size=1001", "current_page=-1", "page_size=1&page_size=2"} {
		h.Do("GET", "/integrations?"+query, chief, nil).Refused(400, "AB01", "")
	}
	c := h.Caller(key)
	c.Scopes = admintest.ScopeList{ofOrganisation + ".list"}
	h.SetCaller("lister", c)
	if got := h.Do("GET", "/integrations", "lister", nil).OK(); got.At("total") != 1.0 || got.Text("data", "0", "slug") != "org-1" {
		t.Errorf("with one scope: %s", got.Body)
	}
	h.Do("GET", "/integrations?type=workspace", "lister", nil).Refused(403, "AB03", "")
}

func TestMappedKeyNeedsNoKey(t *testing.T) {
	h := newHouse(t)
	slug := h.Do("POST", "/integrations", chief, `{"name":"a","ai_provider_id":"openai","secret_mappings":[{"target_field":"key","secret_reference_id":"vault-1","secret_key":"k","value_format":"string"}]}`).OK().Text("slug")
	a := h.Do("GET", "/integrations/"+slug, chief, nil).OK()
	if a.Text("secret_mappings", "0", "secret_reference_id") != "vault-1" || a.At("masked_key") != nil {
		t.Errorf("read: %s", a.Body)
	}
	h.Do("PUT", "/integrations/"+slug, chief, `{"key":"sk-abcdefgh"}`).Refused(400, "AB01", "key")
	h.Do("PUT", "/integrations/"+slug, chief, `{"secret_mappings":[]}`).Refused(400, "AB01", "key")
	h.Do("PUT", "/integrations/"+slug, chief, `{"secret_mappings":[],"key":"sk-abcdefgh"}`).OK()
	if got := h.Do("GET", "/integrations/"+slug, chief, nil).OK(); len(got.At("secret_mappings").([]any)) != 0 || got.Text("masked_key") == "" {
		t.Errorf("after the mapping went: %s", got.Body)
	}
	// A mapping takes the place of the stored key.
	h.Do("PUT", "/integrations/"+slug, chief, `{"secret_mappings":[{"target_field":"key","secret_reference_id":"vault-1"}]}`).OK()
	if rec, i := stored(t, h, "", slug); rec.HasSecret(provider.SecretKey) || len(i.SecretMappings) != 1 || len(i.Masked) != 0 {
		t.Errorf("the old key is still there: %+v", i)
	}
}

func TestModelsAreEnabledPricedAndAdded(t *testing.T) {
	h := newHouse(t)
	slug := create(t, h, chief, "")
	path := "/integrations/" + slug + "/models"
	model := func(name string) map[string]any {
		for _, e := range h.Do("GET", path, chief, nil).OK().At("models").([]any) {
			if o := e.(map[string]any); o["slug"] == name {
				return o
			}
		}
		return nil
	}
	if m := model("gpt-4o-mini"); m == nil || m["enabled"] != true || m["is_custom"] != false {
		t.Fatalf("a model of the catalogue: %v", m)
	}
	if got := h.Do("PUT", path, chief, `{"models":[
		{"slug":"gpt-4o-mini","enabled":false},
		{"slug":"mine","enabled":true,"is_finetune":true,"base_model_slug":"gpt-4o","configurations":{"custom_host":"https://models.example.com/v1","custom_headers":{"X-Key":"CANARY-0123456789"}},
		 "pricing_config":{"type":"static","pay_as_you_go":{"request_token":{"price":0.001},"response_token":{"price":0.002}}}}]}`).OK(); string(got.Body) != "{}" {
		t.Errorf("update answered %s", got.Body)
	}
	m := model("mine")
	shown, err := json.Marshal(m)
	want := `{"base_model_slug":"gpt-4o","configurations":{"custom_host":"https://models.example.com/v1","masked_custom_headers":{"X-Key":"CA****89"}},"enabled":true,"is_custom":true,"is_finetune":true,"name":"mine","pricing_config":{"pay_as_you_go":{"request_token":{"price":0.001},"response_token":{"price":0.002}},"type":"static"},"slug":"mine"}`
	if err != nil || string(shown) != want {
		t.Errorf("own model\n%s want\n%s", shown, want)
	}
	if model("gpt-4o-mini")["enabled"] != false || model("gpt-4o")["enabled"] != true {
		t.Error("one model was disabled and not another")
	}
	// What is not named stays; null clears.
	h.Do("PUT", "/integrations/"+slug+"/integration-models", chief, `{"allow_all_models":false,"models":[{"slug":"mine","enabled":true,"configurations":null,"pricing_config":null,"base_model_slug":null}]}`).OK()
	if m = model("mine"); m["configurations"] != nil || m["pricing_config"] != nil || m["base_model_slug"] != nil || m["is_finetune"] != true {
		t.Errorf("after null: %v", m)
	}
	if model("gpt-4o")["enabled"] != false {
		t.Error("without allow_all_models a model that nobody enabled may be called")
	}
	if _, i := stored(t, h, "", slug); !i.Allows("mine") || i.Allows("gpt-4o") || i.Allows("gpt-4o-mini") {
		t.Errorf("allowed: %+v", i.Models)
	}
	h.Do("DELETE", path+"?slugs=mine,gpt-4o-mini", chief, nil).Refused(400, "AB01", "slugs")
	h.Do("DELETE", path+"?slugs=mine,never-there", chief, nil).OK()
	if model("mine") != nil {
		t.Error("a deleted model is listed")
	}
	h.Do("PUT", path, chief, `{"models":[{"slug":"other","enabled":true}]}`).OK()
	h.Do("DELETE", path, chief, `{"models":["other"]}`).OK()
	if model("other") != nil {
		t.Error("a model named in the body is listed")
	}
}

func TestAccessOpensWithAProviderAndCloses(t *testing.T) {
	h := newHouse(t)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	if got := h.Do("GET", path, chief, nil).OK(); got.At("total") != 0.0 || len(got.At("workspaces").([]any)) != 0 || got.At("global_workspace_access", "enabled") != false {
		t.Errorf("a new integration: %s", got.Body)
	}
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+admintest.OneSlug+`","enabled":true,"default_provider_slug":"bee",
		"usage_limits":[{"credit_limit":5,"alert_threshold":3,"periodic_reset":"monthly"}],"rate_limits":[{"type":"requests","unit":"rpm","value":9}]},
		{"id":"`+h.Two+`","enabled":true,"create_default_provider":false}]}`).OK()
	one, two := providersIn(t, h, h.One), providersIn(t, h, h.Two)
	if len(one) != 1 || one[0].Slug != "bee" || len(two) != 0 {
		t.Errorf("providers %v, %v", one, two)
	}
	a := h.Do("GET", path, chief, nil).OK()
	entry := map[string]any{}
	for _, e := range a.At("workspaces").([]any) {
		entry[e.(map[string]any)["id"].(string)] = e
	}
	first := entry[admintest.OneSlug].(map[string]any)
	limit := first["usage_limits"].([]any)[0].(map[string]any)
	if a.At("total") != 2.0 || first["enabled"] != true || limit["credit_limit"] != 5.0 || limit["current_usage"] != 0.0 || limit["status"] != "active" || limit["next_usage_reset_at"] == nil ||
		first["rate_limits"].([]any)[0].(map[string]any)["value"] != 9.0 || entry[admintest.TwoSlug].(map[string]any)["usage_limits"] != nil {
		t.Errorf("workspaces: %s", a.Body)
	}
	if got := h.Do("GET", "/integrations/"+slug, chief, nil).OK().At("workspace_count"); got != 2.0 {
		t.Errorf("workspace_count %v", got)
	}
	// What is not named stays, null clears, and access that is open already makes
	// no provider.
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true,"rate_limits":null},{"id":"`+h.Two+`","enabled":true}]}`).OK()
	_, i := stored(t, h, "", slug)
	if got := i.Access(h.One); len(got.UsageLimits) != 1 || len(got.RateLimits) != 0 || len(providersIn(t, h, h.Two)) != 0 {
		t.Errorf("after the second call: %+v", got)
	}
	// Closed and opened again: the provider is still there.
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":false}]}`).OK()
	if _, i = stored(t, h, "", slug); i.Access(h.One).Enabled || !i.Access(h.Two).Enabled {
		t.Error("access is not closed")
	}
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true,"default_provider_slug":"wasp"}]}`).OK()
	if one = providersIn(t, h, h.One); len(one) != 1 || one[0].Slug != "bee" {
		t.Errorf("providers %v", one)
	}
}

func TestTakenDefaultSlugRefusesTheWholeCall(t *testing.T) {
	h := newHouse(t)
	create(t, h, admintest.WorkspaceB, `,"slug":"bee"`)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	h.Do("PUT", path, chief, `{"default_provider_slug":"bee","workspaces":[{"id":"`+h.One+`","enabled":true},{"id":"`+h.Two+`","enabled":true}]}`).Refused(400, "AB01", "default_provider_slug")
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true},{"id":"`+h.Two+`","enabled":true,"default_provider_slug":"bee"}]}`).Refused(400, "AB01", "workspaces[1].default_provider_slug")
	if _, i := stored(t, h, "", slug); len(i.Workspaces) != 0 || len(providersIn(t, h, h.One)) != 0 {
		t.Error("a refused call opened access")
	}
	// The entry's own slug wins over the common one.
	h.Do("PUT", path, chief, `{"default_provider_slug":"bee","workspaces":[{"id":"`+h.One+`","enabled":true},{"id":"`+h.Two+`","enabled":true,"default_provider_slug":"wasp"}]}`).OK()
	if got := providersIn(t, h, h.Two)[0].Slug; got != "wasp" {
		t.Errorf("slug %s", got)
	}
}

func TestGlobalAccessAndOverride(t *testing.T) {
	h := newHouse(t)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":false}]}`).OK()
	h.Do("PUT", path, chief, `{"global_workspace_access":{"enabled":true,"usage_limits":[{"credit_limit":7}]}}`).OK()
	_, i := stored(t, h, "", slug)
	if i.Access(h.One).Enabled || !i.Access(h.Two).Enabled || len(i.Access(h.Two).UsageLimits) != 1 || !i.Access(resource.NewID()).Enabled {
		t.Errorf("global access: %+v", i)
	}
	if len(providersIn(t, h, h.One)) != 0 || len(providersIn(t, h, h.Two)) != 1 {
		t.Error("default providers do not follow access")
	}
	if got := h.Do("GET", path, chief, nil).OK(); got.At("total") != 2.0 || got.At("global_workspace_access", "usage_limits", "0", "credit_limit") != 7.0 {
		t.Errorf("workspaces: %s", got.Body)
	}
	h.Do("PUT", path, chief, `{"workspaces":[],"override_existing_workspace_access":true}`).OK()
	if _, i = stored(t, h, "", slug); !i.Access(h.One).Enabled || len(i.Workspaces) != 0 || len(providersIn(t, h, h.One)) != 1 {
		t.Errorf("after the override: %+v", i)
	}
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true,"usage_limits":null}],"global_workspace_access":{"enabled":false,"usage_limits":null},"override_existing_workspace_access":true}`).OK()
	if _, i = stored(t, h, "", slug); !i.Access(h.One).Enabled || i.Access(h.Two).Enabled || len(i.Global.UsageLimits) != 0 {
		t.Errorf("an entry beside the override: %+v", i)
	}
}

func TestUsageIsResetPerWorkspace(t *testing.T) {
	h := newHouse(t)
	slug := create(t, h, chief, `,"slug":"org"`)
	path := "/integrations/" + slug + "/workspaces"
	h.Do("PUT", path, chief, `{"global_workspace_access":{"enabled":true,"usage_limits":[{"credit_limit":7}]}}`).OK()
	h.Do("PUT", path, chief, `{"workspaces":[{"id":"`+h.One+`","enabled":true,"reset_usage":true}]}`).OK()
	_, i := stored(t, h, "", slug)
	if a := i.Access(h.One); len(a.UsageLimits) != 1 || a.UsageLimits[0].ResetAt.IsZero() || a.LastResetAt == nil || !i.Global.UsageLimits[0].ResetAt.IsZero() {
		t.Errorf("reset: %+v", i)
	}
	for _, e := range h.Do("GET", path, chief, nil).OK().At("workspaces").([]any) {
		o := e.(map[string]any)
		if (o["last_reset_at"] != nil) != (o["id"] == admintest.OneSlug) {
			t.Errorf("last_reset_at of %v", o)
		}
	}
}

// addWorkspaces makes the organisation larger than one change.
func addWorkspaces(t testing.TB, h *admintest.House, n int) {
	t.Helper()
	sc := store.Scope{Org: admintest.Org}
	for k := range n {
		rec := resource.Record{Scope: sc, Kind: "WORKSPACE", Slug: fmt.Sprintf("ws-more-%06d", k), Name: "More", Status: "active", Body: []byte("{}")}
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
			t.Fatal(err)
		}
	}
}

func TestManyWorkspacesGetTheirProvidersAndLoseThem(t *testing.T) {
	h := newHouse(t)
	addWorkspaces(t, h, 40)
	slug := create(t, h, chief, `,"slug":"org"`)
	h.Do("PUT", "/integrations/"+slug+"/workspaces", chief, `{"global_workspace_access":{"enabled":true}}`).OK()
	rec, i := stored(t, h, "", slug)
	users, err := h.Resources.Users(context.Background(), rec.Ref())
	if err != nil || len(users) != 42 || !i.Global.Enabled {
		t.Fatalf("%d providers, %v", len(users), err)
	}
	h.Do("DELETE", "/integrations/"+slug, chief, nil).OK()
	if users, err = h.Resources.Users(context.Background(), rec.Ref()); err != nil || len(users) != 0 || len(providersIn(t, h, h.One)) != 0 {
		t.Errorf("after the delete: %d providers, %v", len(users), err)
	}
	if rec, _, err = h.Resources.Get(context.Background(), rec.Scope, rec.Kind, rec.ID); err != nil || !rec.Archived() {
		t.Errorf("the integration is %s, %v", rec.Status, err)
	}
	var changes []string
	for _, e := range h.Audit() {
		changes = append(changes, e.Action)
		if e.ResourceType != "integrations" || e.ResourceID != rec.ID || e.StatusCode != 200 {
			t.Errorf("audit: %+v", e)
		}
	}
	if got := strings.Join(changes, " "); got != "create update delete" {
		t.Errorf("audit: %s", got)
	}
}

func TestCallsAtATimeMakeOneProviderPerWorkspace(t *testing.T) {
	h := newHouse(t)
	addWorkspaces(t, h, 20)
	slug := create(t, h, chief, `,"slug":"org"`)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if got := h.Do("PUT", "/integrations/"+slug+"/workspaces", chief, `{"global_workspace_access":{"enabled":true}}`); got.Status != 200 {
				t.Errorf("%d %s", got.Status, got.Body)
			}
		})
	}
	wg.Wait()
	rec, _ := stored(t, h, "", slug)
	users, err := h.Resources.Users(context.Background(), rec.Ref())
	if err != nil {
		t.Fatal(err)
	}
	perWorkspace := map[string]int{}
	for _, u := range users {
		perWorkspace[u.Scope.Workspace]++
	}
	if len(users) != 22 || len(perWorkspace) != 22 {
		t.Errorf("%d providers in %d workspaces", len(users), len(perWorkspace))
	}
}

func TestOfTwoEqualSlugsOneIsTaken(t *testing.T) {
	h := newHouse(t)
	var wg sync.WaitGroup
	var made atomic.Int32
	for range 6 {
		wg.Go(func() {
			got := h.Do("POST", "/integrations", key, `{"name":"a","slug":"same","ai_provider_id":"openai","key":"sk-abcdefgh","default_provider_slug":"same"}`)
			switch got.Status {
			case 200:
				made.Add(1)
			case 400, 409:
			default:
				t.Errorf("%d %s", got.Status, got.Body)
			}
		})
	}
	wg.Wait()
	if made.Load() != 1 || len(providersIn(t, h, h.One)) != 1 {
		t.Errorf("%d integrations, %d providers", made.Load(), len(providersIn(t, h, h.One)))
	}
}

func TestProviderInUseKeepsItsIntegration(t *testing.T) {
	h := newHouse(t)
	slug := create(t, h, key, `,"slug":"own"`)
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	used := resource.Ref{Scope: sc, Kind: provider.KindProvider, ID: providersIn(t, h, h.One)[0].ID}
	by := resource.Ref{Scope: sc, Kind: "PROMPT", ID: resource.NewID(), Name: "greeting"}
	if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Use(used, by) }); err != nil {
		t.Fatal(err)
	}
	if f := h.Do("DELETE", "/integrations/"+slug, key, nil).Refused(409, "AB07", "").Failure(); !strings.Contains(f.Message, "greeting") {
		t.Errorf("the user is not named: %s", f.Message)
	}
	h.Do("GET", "/integrations/"+slug, key, nil).OK()
}

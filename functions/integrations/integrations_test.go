package integrations

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/testkit/admintest"
)

func TestReadShowsEverythingButSecrets(t *testing.T) {
	const canary = "CANARY-0123456789"
	h := newInstallation(t)
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

func TestUpdateChangesWhatItNames(t *testing.T) {
	h := newInstallation(t)
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
	h := newInstallation(t)
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
		{"PUT", "/" + slug + "/workspaces", `{"workspaces":[{"id":"` + h.One + `","enabled":true,"usage_limits":[{"credit_limit":0}]}]}`, "workspaces[0].usage_limits[0].credit_limit"},
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
		got.RequireFault(400, "AB01", c.field)
	}
}

func TestSlugIsTakenOnce(t *testing.T) {
	h := newInstallation(t)
	if got := create(t, h, chief, `,"slug":"mine"`); got != "mine" {
		t.Errorf("slug %s", got)
	}
	h.Do("POST", "/integrations", chief, `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh","slug":"mine"}`).RequireFault(409, "AB07", "slug")
	if a, b := create(t, h, chief, ""), create(t, h, chief, ""); a != "own" || !strings.HasPrefix(b, "own-") {
		t.Errorf("slugs %s, %s", a, b)
	}
	h.Do("DELETE", "/integrations/mine", chief, nil).OK()
	h.Do("GET", "/integrations/mine", chief, nil).RequireFault(404, "AB08", "")
	create(t, h, chief, `,"slug":"mine"`)
}

func TestWorkspaceIntegrationBringsAProvider(t *testing.T) {
	h := newInstallation(t)
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
	h.Do("POST", "/integrations", key, `{"name":"a","ai_provider_id":"openai","key":"sk-abcdefgh","slug":"e","default_provider_slug":"bee"}`).RequireFault(400, "AB01", "default_provider_slug")
	h.Do("GET", "/integrations/e", key, nil).RequireFault(404, "AB08", "")
	// An organization key finds it without naming the workspace, and by it.
	for _, query := range []string{"", "?workspace_id=" + admintest.OneSlug} {
		if got := h.Do("GET", "/integrations/a"+query, chief, nil).OK().Text("workspace_id"); got != h.One {
			t.Errorf("workspace %s", got)
		}
	}
	create(t, h, admintest.WorkspaceB, `,"slug":"a"`)
	h.Do("GET", "/integrations/a", chief, nil).RequireFault(400, "AB01", "workspace_id")
	if got := h.Do("GET", "/integrations/a/workspaces", key, nil).OK(); got.At("total") != 1.0 || got.Text("workspaces", "0", "id") != admintest.OneSlug {
		t.Errorf("workspaces of a workspace's own: %s", got.Body)
	}
	h.Do("PUT", "/integrations/b/workspaces", key, `{"workspaces":[{"id":"`+h.One+`","enabled":false}]}`).RequireFault(400, "AB01", "workspaces")
}

func TestMappedKeyNeedsNoKey(t *testing.T) {
	h := newInstallation(t)
	h.SecretReference("vault-1")
	slug := h.Do("POST", "/integrations", chief, `{"name":"a","ai_provider_id":"openai","secret_mappings":[{"target_field":"key","secret_reference_id":"vault-1","secret_key":"k","value_format":"string"}]}`).OK().Text("slug")
	a := h.Do("GET", "/integrations/"+slug, chief, nil).OK()
	if a.Text("secret_mappings", "0", "secret_reference_id") != "vault-1" || a.At("masked_key") != nil {
		t.Errorf("read: %s", a.Body)
	}
	h.Do("PUT", "/integrations/"+slug, chief, `{"key":"sk-abcdefgh"}`).RequireFault(400, "AB01", "key")
	h.Do("PUT", "/integrations/"+slug, chief, `{"secret_mappings":[]}`).RequireFault(400, "AB01", "key")
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

func TestSeveralCredentialsAreSealedAndMasked(t *testing.T) {
	const canary = "sk-CANARY-000000000"
	h := newInstallation(t)
	slug := h.Do("POST", "/integrations", key, `{"name":"Two","ai_provider_id":"openai","credentials":[{"key":"`+canary+`1","weight":3},{"label":"spare","key":"`+canary+`2","weight":0}]}`).OK().Text("slug")
	const want = `[{"label":"1","masked_key":"sk****01","weight":3},{"label":"spare","masked_key":"sk****02","weight":0}]`
	shown := func() (string, []byte) {
		a := h.Do("GET", "/integrations/"+slug, key, nil).OK()
		list, err := json.Marshal(a.At("credentials"))
		if err != nil {
			t.Fatal(err)
		}
		return string(list), a.Body
	}
	got, body := shown()
	if got != want {
		t.Errorf("%s", got)
	}
	rec, _ := stored(t, h, h.One, slug)
	h.Do("PUT", "/integrations/"+slug, key, `{"credentials":`+want+`}`).OK() // as a read shows it
	if got, _ := shown(); got != want {
		t.Errorf("%s", got)
	}
	h.Do("PUT", "/integrations/"+slug, key, `{"key":"sk-another"}`).RequireFault(400, "AB01", "key")
	h.Do("PUT", "/integrations/"+slug, key, `{"credentials":[{"label":"spare","weight":1001}]}`).RequireFault(400, "AB01", "credentials[0].weight")
	h.Do("PUT", "/integrations/"+slug, key, `{"credentials":[{"label":"spare","secret":"x"}]}`).RequireFault(400, "AB01", "credentials[0].secret")
	h.Do("PUT", "/integrations/"+slug, key, `{"credentials":[`+strings.Repeat(`{"key":"k"},`, provider.MaxCredentials)+`{"key":"k"}]}`).RequireFault(400, "AB01", "credentials")
	log, err := json.Marshal(h.Audit())
	if err != nil {
		t.Fatal(err)
	}
	for where, b := range map[string][]byte{"response": body, "body": rec.Body, "sealed": rec.Sealed, "audit log": log} {
		if bytes.Contains(b, []byte("CANARY")) {
			t.Errorf("the %s shows a key: %s", where, b)
		}
	}
}

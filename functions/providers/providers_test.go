package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"strings"
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

// integrate stores an integration of the organisation, or of a workspace.
func integrate(t testing.TB, h *admintest.House, org, workspace, slug string, access ...provider.WorkspaceAccess) resource.Record {
	t.Helper()
	rec := resource.Record{Scope: store.Scope{Org: org, Workspace: workspace}, Kind: provider.KindIntegration, Slug: slug, Name: "Own", Status: "active"}
	var err error
	if rec.Body, err = json.Marshal(provider.Integration{AIProviderID: "openai", AllowAllModels: true, Workspaces: access,
		Configurations: map[string]any{"openai_organization": "org-1"}, Masked: map[string]string{"key": "sk****yz"}}); err != nil {
		t.Fatal(err)
	}
	if err := h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
	return rec
}

func open(workspace string) provider.WorkspaceAccess {
	return provider.WorkspaceAccess{Workspace: workspace, Enabled: true}
}

// create saves a provider in the first workspace and gives its slug.
func create(t testing.TB, h *admintest.House, members string) string {
	t.Helper()
	a := h.Do("POST", "/providers", key, `{"name":"My Provider","integration_id":"own"`+members+`}`).OK()
	if a.Text("id") == "" || a.Text("object") != "provider" {
		t.Fatalf("create answered %s", a.Body)
	}
	return a.Text("slug")
}

func TestFamilyChecks(t *testing.T) {
	h := newHouse(t)
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
			h.Do(method, path+"/"+slug, admintest.MemberKey, `{"name":"b"}`).Refused(403, "AB03", "")
		}
		h.Do("GET", path+"/"+slug, admintest.MemberKey, nil).OK()
		h.Do("GET", path+"/"+slug, chief, nil).Refused(400, "AB01", "workspace_id")
		h.Do("GET", path+"/"+slug+"?workspace_id="+admintest.OneSlug, chief, nil).OK()
		h.Do("PUT", path+"/"+slug, admintest.ManagerKey, `{"name":"b"}`).OK()
	}
	admintest.BadBodies(t, h, "POST", "/providers", key, `{"name":"a","integration_id":"own"}`)
	admintest.BadBodies(t, h, "POST", "/virtual-keys", key, `{"name":"a","provider":"openai","key":"sk-abcdefgh"}`)
}

func TestScopesOfBothForms(t *testing.T) {
	h := newHouse(t)
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
	h := newHouse(t)
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
	if a.At("usage_limits", "credit_limit") != 10.5 || a.At("usage_limits", "current_usage") != 0.0 || a.At("usage_limits", "next_usage_reset_at") == nil ||
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
	h.Do("GET", "/providers/"+slug+"?include_configurations=true", admintest.WsAdminKey, nil).Refused(403, "AB03", "")
}

func TestUpdateChangesWhatItNames(t *testing.T) {
	h := newHouse(t)
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
	h.Do("GET", "/providers/mine", key, nil).Refused(403, "AB03", "")
	if got := h.Do("GET", "/providers", key, nil).OK().At("total"); got != 0.0 {
		t.Errorf("%v providers are listed", got)
	}
	create(t, h, `,"slug":"mine"`) // the slug is free again
}

func TestBadInputIsRefusedWithItsField(t *testing.T) {
	h := newHouse(t)
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
		got.Refused(400, "AB01", c.field)
	}
	h.Do("POST", "/providers", key, provide(`,"slug":"mine"`)).Refused(409, "AB07", "slug")
	h.Do("POST", "/virtual-keys", key, hold(`,"slug":"mine"`)).Refused(409, "AB07", "slug")
}

func TestOnlyOpenIntegrationsAreUsed(t *testing.T) {
	h := newHouse(t)
	integrate(t, h, admintest.Org, "", "shared", open(h.One))
	integrate(t, h, admintest.Org, "", "closed", open(h.Two))
	integrate(t, h, admintest.Org, h.Two, "others")
	integrate(t, h, admintest.OtherOrg, "", "foreign")
	missing := h.Do("POST", "/providers", key, `{"name":"a","integration_id":"none"}`).Refused(403, "AB03", "")
	for _, slug := range []string{"closed", "others", "foreign"} {
		if got := h.Do("POST", "/providers", key, `{"name":"a","integration_id":"`+slug+`"}`); got.Same() != missing.Same() {
			t.Errorf("%s is told from a missing one: %s", slug, got.Body)
		}
	}
	h.Do("POST", "/providers", key, `{"name":"a","slug":"a","integration_id":"shared"}`).OK()
	a := h.Do("GET", "/providers/a", key, nil).OK()
	if a.Text("integration_id") != "shared" || len(a.At("model_config").(map[string]any)) != 0 || bytes.Contains(a.Body, []byte("sk****yz")) {
		t.Errorf("of the organisation's integration: %s", a.Body)
	}
	// The workspace's own integration is found before the organisation's.
	own := integrate(t, h, admintest.Org, h.One, "shared")
	h.Do("POST", "/providers", key, `{"name":"b","slug":"b","integration_id":"shared"}`).OK()
	users, err := h.Resources.Users(context.Background(), own.Ref())
	if err != nil || len(users) != 1 || users[0].Name != "b" {
		t.Errorf("users %v, %v", users, err)
	}
}

func TestStatusFollowsIntegrationAndTime(t *testing.T) {
	h := newHouse(t)
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

func TestVirtualKeyBringsItsIntegration(t *testing.T) {
	const canary = "CANARY-0123456789"
	h := newHouse(t)
	a := h.Do("POST", "/virtual-keys", key, `{"name":"Azure","provider":"azure-openai","key":"`+canary+`","note":"n","resourceName":"res",
		"deploymentConfig":[{"apiVersion":"2024-10-21","deploymentName":"gpt","alias":"a","is_default":true}],"usage_limits":{"credit_limit":5}}`).OK()
	slug := a.Text("data", "slug")
	if want := `{"data":{"slug":"` + slug + `"},"success":true}`; string(a.Body) != want {
		t.Errorf("create answered %s", a.Body)
	}
	got := h.Do("GET", "/virtual-keys/"+slug, key, nil).OK()
	if got.Text("object") != "virtual-key" || got.Text("ai_provider_name") != "azure-openai" || got.Text("model_config", "resourceName") != "res" ||
		got.Text("model_config", "deploymentConfig", "0", "deploymentName") != "gpt" || got.At("model_config", "deploymentConfig", "0", "is_default") != true ||
		got.Text("masked_key") != "CA****89" || got.At("usage_limits", "credit_limit") != 5.0 || len(got.At("secret_mappings").([]any)) != 0 {
		t.Errorf("read: %s", got.Body)
	}
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	of, i := integrationOf(t, h, slug)
	cred := credentialOf(t, &of, i)
	if cred.Key != canary || len(cred.Deployments) != 1 || cred.Deployments[0] != (provider.Deployment{Name: "gpt", Alias: "a", APIVersion: "2024-10-21", Default: true}) || cred.Fields["azure_resource_name"] != "res" {
		t.Errorf("credential %+v", cred)
	}
	// The same store: it is a provider too.
	if got := h.Do("GET", "/providers/"+slug, key, nil).OK(); got.Text("object") != "provider" || got.Text("integration_id") != slug {
		t.Errorf("as a provider: %s", got.Body)
	}
	if got := h.Do("PUT", "/virtual-keys/"+slug, key, `{"name":"New","key":"sk-another-secret","deploymentConfig":[{"apiVersion":"v2","deploymentName":"o3"}],"provider":"azure-openai"}`).OK(); string(got.Body) != "{}" {
		t.Errorf("update answered %s", got.Body)
	}
	of, i = integrationOf(t, h, slug)
	if cred = credentialOf(t, &of, i); cred.Key != "sk-another-secret" || cred.Deployments[0].Name != "o3" || cred.Fields["azure_resource_name"] != "res" {
		t.Errorf("credential after the update %+v", cred)
	}
	log, err := json.Marshal(h.Audit())
	if err != nil || bytes.Contains(log, []byte(canary)) || bytes.Contains(of.Body, []byte("sk-another")) || bytes.Contains(got.Body, []byte(canary)) {
		t.Error("a secret is shown or stored in the clear")
	}
	h.Do("DELETE", "/virtual-keys/"+slug, key, nil).OK()
	if rec, _, err := h.Resources.Get(context.Background(), sc, provider.KindIntegration, of.ID); err != nil || !rec.Archived() {
		t.Errorf("the integration of a deleted key is %s, %v", rec.Status, err)
	}
	// While another provider calls the integration it stays.
	h.Do("POST", "/virtual-keys", key, `{"name":"k","slug":"k","provider":"openai","key":"sk-abcdefgh"}`).OK()
	of, _ = integrationOf(t, h, "k")
	h.Do("POST", "/providers", key, `{"name":"second","integration_id":"k"}`).OK()
	h.Do("DELETE", "/providers/k", key, nil).OK()
	if rec, _, err := h.Resources.Get(context.Background(), sc, provider.KindIntegration, of.ID); err != nil || rec.Archived() {
		t.Errorf("an integration in use is %s, %v", rec.Status, err)
	}
}

func integrationOf(t testing.TB, h *admintest.House, slug string) (resource.Record, *provider.Integration) {
	t.Helper()
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	rec, _, err := h.Resources.Get(context.Background(), sc, provider.KindProvider, slug)
	if err != nil {
		t.Fatal(err)
	}
	in, err := provider.DecodeInstance(rec)
	if err != nil {
		t.Fatal(err)
	}
	of, i, ok, err := in.Of(context.Background(), h.Resources, sc)
	if err != nil || !ok {
		t.Fatalf("integration of %s: %v %v", slug, ok, err)
	}
	return of, i
}

// credentialOf is what a request would use.
func credentialOf(t testing.TB, of *resource.Record, i *provider.Integration) provider.Credential {
	t.Helper()
	secrets, err := of.OpenSecrets(context.Background(), admintest.Sealer{})
	if err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]any)
	for k, v := range i.Configurations {
		fields[k] = v
	}
	for k, v := range secrets {
		if k != provider.SecretKey {
			fields[k] = string(v)
		}
	}
	p, _ := provider.ByID(i.AIProviderID)
	return provider.CredentialFromConfig(p, string(secrets[provider.SecretKey]), fields)
}

func TestOlderNamesMeanFieldsOfTheProvider(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want map[string]string
	}{
		"bedrock":        {`"provider":"bedrock","awsAccessKeyId":"AKID","awsSecretAccessKey":"s3cret","awsRegion":"eu-west-1"`, map[string]string{"aws_auth_type": "accessKey", "aws_access_key_id": "AKID", "aws_secret_access_key": "s3cret", "aws_region": "eu-west-1"}},
		"bedrock role":   {`"provider":"bedrock","awsRoleArn":"arn:aws:iam::1:role/r","awsRegion":"eu-west-1"`, map[string]string{"aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::1:role/r", "aws_region": "eu-west-1"}},
		"bedrock key":    {`"provider":"bedrock","key":"abc","awsRegion":"eu-west-1"`, map[string]string{"aws_auth_type": "apiKey", "aws_region": "eu-west-1"}},
		"vertex":         {`"provider":"vertex-ai","key":"ya29.x","vertexProjectId":"p","vertexRegion":"us-east5","vertexSkipPtuCostAttribution":true`, map[string]string{"vertex_auth_type": "basic", "vertex_project_id": "p", "vertex_region": "us-east5", "vertex_skip_ptu_cost_attribution": "true"}},
		"vertex account": {`"provider":"vertex-ai","vertexRegion":"us-east5","vertexServiceAccountJson":{"project_id":"p"}`, map[string]string{"vertex_auth_type": "serviceAccount", "vertex_region": "us-east5", "vertex_service_account_json": `{"project_id":"p"}`}},
		"workers":        {`"provider":"workers-ai","key":"k","workersAiAccountId":"acc"`, map[string]string{"workers_ai_account_id": "acc"}},
		"azure":          {`"provider":"azure-openai","key":"k","resourceName":"r","deploymentName":"d","apiVersion":"v"`, map[string]string{"azure_auth_mode": "default", "azure_resource_name": "r", "azure_api_version": "v"}},
	} {
		h := newHouse(t)
		got := h.Do("POST", "/virtual-keys", key, `{"name":"k","slug":"k",`+c.body+`}`)
		if got.Status != 200 {
			t.Errorf("%s: %s", name, got.Body)
			continue
		}
		of, i := integrationOf(t, h, "k")
		cred := credentialOf(t, &of, i)
		if len(cred.Fields) != len(c.want) {
			t.Errorf("%s: fields %v", name, cred.Fields)
		}
		for field, want := range c.want {
			if cred.Fields[field] != want {
				t.Errorf("%s: %s = %q, want %q", name, field, cred.Fields[field], want)
			}
		}
		if name == "azure" && (len(cred.Deployments) != 1 || cred.Deployments[0].Name != "d" || cred.Deployments[0].APIVersion != "v") {
			t.Errorf("deployments %+v", cred.Deployments)
		}
	}
}

func TestFieldNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range append(fields(), keyFields()...) {
		if seen[f.Name] {
			t.Errorf("%s is described twice", f.Name)
		}
		seen[f.Name] = true
	}
	for _, name := range []string{"apiVersion", "awsAccessKeyId", "awsSecretAccessKey", "awsRegion", "vertexProjectId", "vertexRegion", "workersAiAccountId", "vertexSkipPtuCostAttribution"} {
		if !seen[name] {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestMappedKeyOfAVirtualKey(t *testing.T) {
	h := newHouse(t)
	h.Do("POST", "/virtual-keys", key, `{"name":"k","slug":"k","provider":"bedrock","awsRegion":"us-east-1","awsAccessKeyId":"AKID","secret_mappings":[{"target_field":"model_config.awsSecretAccessKey","secret_reference_id":"vault"}]}`).OK()
	if _, i := integrationOf(t, h, "k"); i.SecretMappings[0].TargetField != "configurations.aws_secret_access_key" {
		t.Errorf("stored mapping %+v", i.SecretMappings)
	}
	if got := h.Do("GET", "/virtual-keys/k", key, nil).OK(); got.Text("secret_mappings", "0", "target_field") != "model_config.awsSecretAccessKey" {
		t.Errorf("read: %s", got.Body)
	}
	h.Do("POST", "/virtual-keys", key, `{"name":"m","slug":"m","provider":"openai","secret_mappings":[{"target_field":"key","secret_reference_id":"vault"}]}`).OK()
	h.Do("PUT", "/virtual-keys/m", key, `{"secret_mappings":[]}`).Refused(400, "AB01", "key")
	h.Do("PUT", "/virtual-keys/m", key, `{"secret_mappings":[],"key":"sk-abcdefgh"}`).OK()
}

func TestUsedProviderIsNotDeleted(t *testing.T) {
	h := newHouse(t)
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
		if f := h.Do("DELETE", path+slug, key, nil).Refused(409, "AB07", "").Failure(); !strings.Contains(f.Message, "greeting") {
			t.Errorf("the user is not named: %s", f.Message)
		}
	}
}

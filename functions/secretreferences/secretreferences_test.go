package secretreferences

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"gateway/shared/egress"
	"gateway/shared/seal/reference"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
	"gateway/shared/testkit/managertest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	chief  = admintest.AdminKey
	canary = "CANARY-0123456789"

	aws   = `{"name":"Key of OpenAI","slug":"openai-key","manager_type":"aws_sm","secret_path":"prod/openai","secret_key":"api_key","description":"d","tags":{"team":"a"},"auth_config":{"aws_auth_type":"accessKey","aws_access_key_id":"AKID","aws_secret_access_key":"CANARY-0123456789","aws_region":"eu-west-1"}}`
	azure = `{"name":"Azure","slug":"azure","manager_type":"azure_kv","secret_path":"openai","auth_config":{"azure_auth_mode":"entra","azure_entra_tenant_id":"t","azure_entra_client_id":"c","azure_entra_client_secret":"CANARY-0123456789","azure_vault_url":"https://mine.vault.azure.net/"}}`
	vault = `{"name":"Vault","slug":"vault","manager_type":"hashicorp_vault","secret_path":"secret/data/openai","auth_config":{"vault_auth_type":"approle","vault_addr":"https://vault.example.com","vault_role_id":"r","vault_secret_id":"CANARY-0123456789","vault_namespace":"team/a"}}`
)

var slugged = regexp.MustCompile(`"slug":"[a-z-]+",`)

func newInstallation(t *testing.T) *admintest.Installation {
	t.Helper()
	p, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	rt := egress.New(p, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(rt) })
	return admintest.New(t, New(Deps{CheckURL: p.CheckURL, Transport: rt}))
}

func create(t *testing.T, h *admintest.Installation, body string) string {
	t.Helper()
	return h.Do("POST", path, chief, body).OK().Text("id")
}

func TestTheFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	rt := egress.New(egress.Policy{}, egress.Options{})
	h := admintest.New(t, New(Deps{CheckURL: egress.Policy{}.CheckURL, Transport: rt}))
	admintest.CheckFamily(t, h)
	for _, body := range []string{aws, azure, vault} {
		id := create(t, h, body)
		for method, b := range map[string]any{"GET": nil, "PUT": `{"name":"x"}`, "DELETE": nil} {
			foreignIsMissing(t, h, method, "/"+id, b)
		}
		foreignIsMissing(t, h, "POST", "/"+id+"/verify", nil)
		admintest.BadBodies(t, h, "PUT", path+"/"+id, chief, `{"name":"x"}`)
		admintest.BadBodies(t, h, "POST", path, chief, slugged.ReplaceAllString(body, ""))
	}
	if n := h.Do("GET", path, chief, nil).OK().At("total"); n != 3.0 {
		t.Errorf("%v references", n)
	}
	for _, key := range []string{admintest.WorkspaceA, admintest.WsAdminKey, admintest.MemberKey} {
		h.Do("GET", path, key, nil).RequireFault(403, "AB03", "")
		h.Do("POST", path, key, aws).RequireFault(403, "AB03", "")
	}
}

// foreignIsMissing checks that another organization gets the same bytes for something that
// exists as for something that does not.
func foreignIsMissing(t *testing.T, h *admintest.Installation, method, below string, body any) {
	t.Helper()
	id, action, _ := strings.Cut(strings.TrimPrefix(below, "/"), "/")
	if action != "" {
		action = "/" + action
	}
	other := "0b9a2f6e-1111-4222-8333-444455556666"
	got, missing := h.Do(method, path+"/"+id+action, admintest.OtherAdmin, body), h.Do(method, path+"/"+other+action, admintest.OtherAdmin, body)
	if got.Status != 404 || got.Comparable() != missing.Comparable() {
		t.Errorf("%s of another organization's: %d %s, of none: %s", method, got.Status, got.Body, missing.Body)
	}
}

func TestAnswersArePinned(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	h.Golden(*update, "answers.txt",
		admintest.As(chief, "POST", path, aws),
		admintest.As(chief, "GET", path+"/openai-key", ""),
		admintest.As(chief, "POST", path, azure),
		admintest.As(chief, "POST", path, vault),
		admintest.As(chief, "GET", path+"?manager_type=aws_sm", ""),
		admintest.As(chief, "PUT", path+"/openai-key", `{"secret_key":null,"allowed_workspaces":["`+admintest.OneSlug+`"],"auth_config":{"aws_region":"us-east-1","aws_secret_access_key":"CANARY-0123456789"}}`),
		admintest.As(chief, "GET", path+"/openai-key", ""),
		admintest.As(chief, "DELETE", path+"/openai-key", ""),
	)
}

func TestSecretsAreSealedAndNeverShown(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for _, body := range []string{aws, azure, vault} {
		id := create(t, h, body)
		read := h.Do("GET", path+"/"+id, chief, nil).OK()
		h.Do("PUT", path+"/"+id, chief, `{"description":"again"}`).OK()
		rec, ok, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org}, reference.Kind, id)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		opened, err := rec.OpenSecrets(context.Background(), admintest.Sealer{})
		if err != nil || len(opened) != 1 {
			t.Fatalf("%d sealed, %v", len(opened), err)
		}
		for name, v := range opened {
			if string(v) != canary || read.Text("auth_config", "masked_"+name) != "CA****89" || read.At("auth_config", name) != nil {
				t.Errorf("%s: sealed %q, shown %s", name, v, read.Body)
			}
		}
		if strings.Contains(string(read.Body)+string(rec.Body), canary) {
			t.Error("a secret is in the clear")
		}
	}
	for _, e := range h.Audit() {
		if raw, err := json.Marshal(e); err != nil || strings.Contains(string(raw), canary) {
			t.Errorf("the audit log tells a secret: %s %v", raw, err)
		}
	}
}

func TestAuthConfigIsMergedMemberByMember(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	id := create(t, h, vault)
	at := path + "/" + id
	auth := func() string {
		raw, err := json.Marshal(h.Do("GET", at, chief, nil).OK().At("auth_config"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	h.Do("PUT", at, chief, `{"auth_config":{"vault_role_id":"r2","masked_vault_secret_id":"x"}}`).OK()
	if got := auth(); got != `{"masked_vault_secret_id":"CA****89","vault_addr":"https://vault.example.com","vault_auth_type":"approle","vault_namespace":"team/a","vault_role_id":"r2"}` {
		t.Error(got)
	}
	h.Do("PUT", at, chief, `{"auth_config":{"vault_namespace":null}}`).OK()
	h.Do("PUT", at, chief, `{"auth_config":{"vault_secret_id":null}}`).RequireFault(400, "AB01", "auth_config.vault_secret_id")
	// Another authentication method requires its fields and drops the others.
	h.Do("PUT", at, chief, `{"auth_config":{"vault_auth_type":"token"}}`).RequireFault(400, "AB01", "auth_config.vault_token")
	h.Do("PUT", at, chief, `{"auth_config":{"vault_auth_type":"token","vault_token":"hvs.another-token"}}`).OK()
	if got := auth(); got != `{"masked_vault_token":"hv****en","vault_addr":"https://vault.example.com","vault_auth_type":"token"}` {
		t.Error(got)
	}
	rec, _, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org}, reference.Kind, id)
	if err != nil || rec.HasSecret("vault_secret_id") || !rec.HasSecret("vault_token") {
		t.Errorf("sealed secrets of another way stay: %v", err)
	}
	// The manager stays what it is.
	h.Do("PUT", at, chief, `{"manager_type":"aws_sm","name":"n"}`).OK()
	if got := h.Do("GET", at, chief, nil).OK().Text("manager_type"); got != "hashicorp_vault" {
		t.Error(got)
	}
	h.Do("PUT", at, chief, `{"manager_type":"aws_sm"}`).RequireFault(400, "AB01", "")
}

func TestBadInputIsRefusedWithItsField(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	id := create(t, h, aws)
	with := func(body, old, now string) string {
		if !strings.Contains(body, old) {
			t.Fatalf("%s is not in %s", old, body)
		}
		return strings.Replace(slugged.ReplaceAllString(body, ""), old, now, 1)
	}
	for n, c := range []struct{ method, body, field string }{
		{"POST", `{}`, "name"}, {"POST", `{}`, "manager_type"}, {"POST", `{}`, "auth_config"}, {"POST", `{}`, "secret_path"},
		{"POST", with(aws, `aws_sm`, `gcp_sm`), "manager_type"},
		{"POST", with(aws, `accessKey"`, `apiKey"`), "auth_config.aws_auth_type"},
		{"POST", with(aws, `"aws_auth_type":"accessKey",`, ``), "auth_config.aws_auth_type"},
		{"POST", with(aws, `"aws_auth_type":"accessKey",`, `"aws_auth_type":7,`), "auth_config.aws_auth_type"},
		{"POST", with(aws, `"AKID"`, `7`), "auth_config.aws_access_key_id"},
		{"POST", with(aws, `"AKID"`, `"A K"`), "auth_config.aws_access_key_id"},
		{"POST", with(aws, canary, strings.Repeat("x", 8193)), "auth_config.aws_secret_access_key"},
		{"POST", with(aws, canary, "CA****89"), "auth_config.aws_secret_access_key"},
		{"POST", with(aws, `"eu-west-1"`, `"eu-west-1.evil.com/"`), "auth_config.aws_region"},
		{"POST", with(aws, `"AKID"`, `"AKID","vault_addr":"https://vault.example.com"`), "auth_config.vault_addr"},
		{"POST", with(aws, `"AKID"`, `"AKID","nonsense":"x"`), "auth_config.nonsense"},
		{"POST", with(aws, `prod/openai`, `prod openai`), "secret_path"},
		{"POST", with(aws, `prod/openai`, strings.Repeat("p", 1025)), "secret_path"},
		{"POST", with(aws, `"api_key"`, `"`+strings.Repeat("k", 256)+`"`), "secret_key"},
		{"POST", with(aws, `"d"`, `"`+strings.Repeat("d", 1025)+`"`), "description"},
		{"POST", with(aws, `"tags"`, `"allow_all_workspaces":true,"allowed_workspaces":["`+h.One+`"],"tags"`), "allowed_workspaces"},
		{"POST", with(aws, `"tags"`, `"allow_all_workspaces":false,"tags"`), "allowed_workspaces"},
		{"POST", with(aws, `"tags"`, `"allowed_workspaces":[],"tags"`), "allowed_workspaces"},
		{"POST", with(aws, `"tags"`, `"allowed_workspaces":["`+h.Three+`"],"tags"`), "allowed_workspaces[0]"},
		{"POST", with(aws, `"tags"`, `"allowed_workspaces":["`+h.One+`","`+admintest.OneSlug+`"],"tags"`), "allowed_workspaces[1]"},
		{"POST", with(azure, `https://mine.vault.azure.net/`, `https://169.254.169.254`), "auth_config.azure_vault_url"},
		{"POST", with(azure, `https://mine.vault.azure.net/`, `https://mine.vault.azure.net/secrets/x`), "auth_config.azure_vault_url"},
		{"POST", with(azure, `"entra","azure_entra_tenant_id":"t","azure_entra_client_id":"c","azure_entra_client_secret":"CANARY-0123456789","azure_vault_url":"https://mine.vault.azure.net/"`, `"managed","azure_vault_url":"https://mine.example.com"`), "auth_config.azure_vault_url"},
		{"POST", with(azure, `"t"`, `"../t"`), "auth_config.azure_entra_tenant_id"},
		{"POST", with(azure, `"secret_path":"openai"`, `"secret_path":"a/b/c"`), "secret_path"},
		{"POST", with(azure, `"secret_path":"openai"`, `"secret_path":"a?x=y"`), "secret_path"},
		{"POST", with(vault, `https://vault.example.com`, `https://10.0.0.1:8200`), "auth_config.vault_addr"},
		{"POST", with(vault, `https://vault.example.com`, `file:///etc`), "auth_config.vault_addr"},
		{"POST", with(vault, `https://vault.example.com`, `https://vault.example.com?x=y`), "auth_config.vault_addr"},
		{"POST", with(vault, `secret/data/openai`, `secret/../sys`), "secret_path"},
		{"POST", with(vault, `secret/data/openai`, `secret/a?b`), "secret_path"},
		{"PUT", `{}`, ""}, {"PUT", `{"nonsense":1}`, ""}, {"PUT", `{"name":null}`, "name"}, {"PUT", `{"auth_config":null}`, "auth_config"}, {"PUT", `{"secret_path":null}`, "secret_path"},
		{"PUT", `{"allow_all_workspaces":false}`, "allowed_workspaces"}, {"PUT", `{"secret_path":"a b"}`, "secret_path"},
	} {
		at := path
		if c.method == "PUT" {
			at += "/" + id
		}
		t.Run(fmt.Sprint(n, c.field), func(t *testing.T) {
			h.For(t).Do(c.method, at, chief, c.body).RequireFault(400, "AB01", c.field)
		})
	}
	h.Do("POST", path, chief, aws).RequireFault(409, "AB07", "slug")
	if n := h.Do("GET", path, chief, nil).OK().At("total"); n != 1.0 {
		t.Errorf("%v references are stored", n)
	}
}

func TestAccessOfWorkspaces(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	at := path + "/" + create(t, h, aws)
	for _, c := range []struct{ body, all, allowed string }{
		{`{"allowed_workspaces":["` + admintest.OneSlug + `"]}`, "false", `["` + h.One + `"]`},
		{`{"allow_all_workspaces":false}`, "false", `["` + h.One + `"]`},
		{`{"allow_all_workspaces":true}`, "true", `[]`},
		{`{"allow_all_workspaces":false,"allowed_workspaces":["` + h.Two + `"]}`, "false", `["` + h.Two + `"]`},
		{`{"allowed_workspaces":null}`, "true", `[]`},
	} {
		h.Do("PUT", at, chief, c.body).OK()
		got := h.Do("GET", at, chief, nil).OK()
		allowed, err := json.Marshal(got.At("allowed_workspaces"))
		if err != nil || fmt.Sprint(got.At("allow_all_workspaces")) != c.all || string(allowed) != c.allowed {
			t.Errorf("%s: %s %v", c.body, got.Body, err)
		}
	}
}

func TestAReferenceIsVerified(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	server := managertest.NewVault(t, time.Now)
	server.Tokens["hvs.good-token"], server.Secrets["kv/a"] = time.Time{}, `{"api_key":"`+canary+`","org":"o"}`
	id := create(t, h, `{"name":"V","manager_type":"hashicorp_vault","secret_path":"kv/a","secret_key":"api_key","auth_config":{"vault_auth_type":"token","vault_addr":"`+server.URL+`","vault_token":"hvs.good-token"}}`)
	verify := func(body any, success bool, part string) {
		t.Helper()
		got := h.Do("POST", path+"/"+id+"/verify", chief, body).OK()
		if got.At("success") != success || !strings.Contains(got.Text("message"), part) || strings.Contains(string(got.Body), canary) {
			t.Errorf("%s, want %v %q", got.Body, success, part)
		}
	}
	verify(nil, true, "api_key, org")
	verify(`{"secret_key":"none"}`, false, "has no field")
	server.Down(503)
	verify(nil, false, "503")
	server.Down(0)
	h.Do("PUT", path+"/"+id, chief, `{"auth_config":{"vault_token":"hvs.wrong-token"}}`).OK()
	verify(nil, false, "403")
	last := h.Audit()[len(h.Audit())-1]
	if last.Action != "manage" || last.ResourceID != id || last.ResourceType != "secret_references" {
		t.Errorf("audit: %+v", last)
	}
	h.Do("POST", path+"/"+id+"/verify", admintest.OtherAdmin, nil).RequireFault(404, "AB08", "")
}

func TestListsFilter(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for _, body := range []string{aws, azure, vault} {
		create(t, h, body)
	}
	for query, want := range map[string]string{"manager_type=azure_kv": "Azure", "search=vaul": "Vault", `tags={"team":"a"}`: "Key of OpenAI", "manager_type=aws_sm&search=vault": ""} {
		got := h.Do("GET", path+"?"+strings.NewReplacer(`"`, "%22", "{", "%7B", "}", "%7D").Replace(query), chief, nil).OK()
		if data := got.At("data").([]any); want == "" && len(data) != 0 || want != "" && (len(data) != 1 || got.Text("data", "0", "name") != want || got.Text("data", "0", "status") != "ACTIVE") {
			t.Errorf("%s: %s", query, got.Body)
		}
	}
}

func TestSecretsStayAtTheirManager(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for _, c := range []struct{ create, field, value, secret string }{
		{aws, "aws_region", "us-east-1", "aws_secret_access_key"},
		{azure, "azure_vault_url", "https://other.vault.azure.net", "azure_entra_client_secret"},
		{azure, "azure_entra_tenant_id", "other", "azure_entra_client_secret"},
		{vault, "vault_addr", "https://attacker.example.com", "vault_secret_id"},
	} {
		at := path + "/" + create(t, h, c.create)
		h.Do("PUT", at, chief, fmt.Sprintf(`{"auth_config":{%q:%q}}`, c.field, c.value)).RequireFault(400, "AB01", "auth_config."+c.field)
		h.Do("PUT", at, chief, fmt.Sprintf(`{"auth_config":{%q:%q,%q:"sent-again-0123456789"}}`, c.field, c.value, c.secret)).OK()
		h.Do("DELETE", at, chief, nil).OK()
	}
}

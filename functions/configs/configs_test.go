package configs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/egress"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

const key = admintest.WorkspaceA

// newInstallation has the saved providers that the tests name.
func newInstallation(t testing.TB) *admintest.Installation {
	h := admintest.New(t, New(Deps{CheckURL: egress.Policy{}.CheckURL}))
	for _, slug := range []string{"mock", "a", "b", "v1", "v2"} {
		provide(t, h, store.Scope{Org: admintest.Org, Workspace: h.One}, slug)
	}
	return h
}

// provide stores a saved provider and gives its id.
func provide(t testing.TB, h *admintest.Installation, sc store.Scope, slug string) string {
	t.Helper()
	rec := resource.Record{Scope: sc, Kind: provider.KindProvider, ID: resource.NewID(), Slug: slug, Name: slug, Status: provider.StatusActive, Body: []byte("{}")}
	if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
	return rec.ID
}

// save makes a config in the first workspace and gives its slug.
func save(t testing.TB, h *admintest.Installation, name, config string) string {
	t.Helper()
	a := h.Do("POST", "/configs", key, fmt.Sprintf(`{"name":%q,"config":%s}`, name, config)).OK()
	if a.At("success") != true || a.Text("data", "id") == "" || a.Text("data", "version_id") == "" {
		t.Fatalf("create answered %s", a.Body)
	}
	return a.Text("data", "slug")
}

func TestFamilyChecks(t *testing.T) {
	h := newInstallation(t)
	admintest.CheckFamily(t, h)
	slug := save(t, h, "a", `{"provider":"@mock"}`)
	admintest.ForeignIsMissing(t, h, "GET", "/configs", slug, nil)
	admintest.ForeignIsMissing(t, h, "PUT", "/configs", slug, `{"name":"b"}`)
	admintest.ForeignIsMissing(t, h, "DELETE", "/configs", slug, nil)
	admintest.BadBodies(t, h, "POST", "/configs", key, `{"name":"a","config":{"provider":"@mock"}}`)
	admintest.BadBodies(t, h, "PUT", "/configs/"+slug, key, `{"config":{"provider":"@mock"}}`)
}

func TestConfigIsReadBackAsItWasSaved(t *testing.T) {
	h := newInstallation(t)
	config := `{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@b","weight":0.70},{"provider":"@a","weight":3e-1}]}`
	slug := save(t, h, "Pplx Cache Test", config)
	if !regexp.MustCompile(`^pc-pplx-c-[0-9a-f]{6}$`).MatchString(slug) {
		t.Errorf("slug %s", slug)
	}
	a := h.Do("GET", "/configs/"+slug, key, nil).OK()
	if !bytes.Contains(a.Body, []byte(`"config":`+config)) {
		t.Errorf("the config changed: %s", a.Body)
	}
	data := a.At("data").(map[string]any)
	for name, want := range map[string]any{
		"name": "Pplx Cache Test", "slug": slug, "status": "active", "is_default": 0.0, "format": "json", "type": "ORG_CONFIG",
		"workspace_id": h.One, "organisation_id": "o1", "owner_id": h.Caller(key).KeyID,
	} {
		if data[name] != want {
			t.Errorf("%s = %v, want %v", name, data[name], want)
		}
	}
	if byID := h.Do("GET", "/configs/"+a.Text("data", "id"), key, nil).OK(); byID.Text("data", "slug") != slug {
		t.Error("not found by its id")
	}
	list := h.Do("GET", "/configs", key, nil).OK()
	entry := list.At("data", "0").(map[string]any)
	if list.At("success") != true || entry["slug"] != slug || entry["config"] != nil || entry["owner_id"] == nil {
		t.Errorf("list: %s", list.Body)
	}
}

func TestBadConfigIsRefusedWithItsPaths(t *testing.T) {
	h := newInstallation(t)
	for config, field := range map[string]string{
		`"{}"`: "config", `[]`: "config", `5`: "config", `{}`: "config",
		`{"strategy":{"mode":"best"},"targets":[{"provider":"@a"}]}`:                        "config.strategy.mode",
		`{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@a","weight":"much"}]}`: "config.targets[0].weight",
		`{"provider":"@a","retry":{"attempts":9}}`:                                          "config.retry.attempts",
		`{"provider":"@a","nonsense":1}`:                                                    "config.nonsense",
	} {
		h.Do("POST", "/configs", key, `{"name":"a","config":`+config+`}`).RequireFault(400, "AB01", field)
	}
	h.Do("POST", "/configs", key, `{}`).RequireFault(400, "AB01", "config").RequireFault(400, "AB01", "name")
	h.Do("POST", "/configs", key, `{"name":"a","config":{"provider":"@a"},"isDefault":2}`).RequireFault(400, "AB01", "isDefault")
}

func TestEveryChangeOfContentIsAVersion(t *testing.T) {
	h := newInstallation(t)
	slug := save(t, h, "a", `{"provider":"@v1"}`)
	first := h.Do("GET", "/configs/"+slug, key, nil).OK().Text("data", "version_id")
	if got := h.Do("PUT", "/configs/"+slug, key, `{"name":"b"}`).OK().Text("data", "version_id"); got != first {
		t.Error("a new name made a version")
	}
	second := h.Do("PUT", "/configs/"+slug, key, `{"config":{"provider":"@v2"}}`).OK().Text("data", "version_id")
	if second == first || second == "" {
		t.Error("new content made no version")
	}
	a := h.Do("GET", "/configs/"+slug+"/versions", key, nil).OK()
	if a.At("total") != 2.0 || a.Text("object") != "list" {
		t.Fatalf("versions: %s", a.Body)
	}
	for i, want := range []struct{ id, config string }{{second, `{"provider":"@v2"}`}, {first, `{"provider":"@v1"}`}} {
		n := fmt.Sprint(i)
		if a.Text("data", n, "version_id") != want.id || a.Text("data", n, "config") != want.config || a.Text("data", n, "object") != "config" || a.Text("data", n, "name") != "b" {
			t.Errorf("version %d: %s", i, a.Body)
		}
	}
	if got := h.Do("GET", "/configs/"+slug, key, nil).OK(); got.Text("data", "config", "provider") != "@v2" || got.Text("data", "name") != "b" {
		t.Errorf("the current version: %s", got.Body)
	}
}

func TestOneConfigIsTheDefault(t *testing.T) {
	h := newInstallation(t)
	slugs := []string{save(t, h, "a", `{"provider":"@a"}`)}
	for range 2 {
		slugs = append(slugs, h.Do("POST", "/configs", key, `{"name":"d","isDefault":1,"config":{"provider":"@a"}}`).OK().Text("data", "slug"))
	}
	check := func(want string) {
		t.Helper()
		for _, s := range slugs {
			if got := h.Do("GET", "/configs/"+s, key, nil).OK().At("data", "is_default"); (got == 1.0) != (s == want) {
				t.Errorf("%s: is_default %v", s, got)
			}
		}
	}
	check(slugs[2])
	h.Do("PUT", "/configs/"+slugs[0], key, `{"isDefault":1}`).OK()
	check(slugs[0])
	h.Do("PUT", "/configs/"+slugs[0], key, `{"isDefault":0}`).OK()
	check("none")
	// An archived config is no default.
	h.Do("PUT", "/configs/"+slugs[0], key, `{"isDefault":1}`).OK()
	h.Do("PUT", "/configs/"+slugs[0], key, `{"status":"archived"}`).OK()
	check("none")
	h.Do("PUT", "/configs/"+slugs[0], key, `{"isDefault":1}`).RequireFault(400, "AB01", "isDefault")
	h.Do("PUT", "/configs/"+slugs[0], key, `{"isDefault":1,"status":"active"}`).OK()
	check(slugs[0])
}

// Requests find the default through the workspace, which only knows one of its
// own.
func TestTheWorkspaceNamesItsDefaultConfig(t *testing.T) {
	h := newInstallation(t)
	named := func(ws string) string {
		t.Helper()
		rec, ok, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org}, tenant.KindWorkspace, ws)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		e, err := tenant.DecodeWorkspace(rec)
		if err != nil {
			t.Fatal(err)
		}
		return e.DefaultConfig
	}
	made := h.Do("POST", "/configs", key, `{"name":"d","isDefault":1,"config":{"provider":"@a"}}`).OK()
	id, slug := made.Text("data", "id"), made.Text("data", "slug")
	if named(h.One) != id || named(h.Two) != "" {
		t.Errorf("%q and %q, want %q", named(h.One), named(h.Two), id)
	}
	h.Do("PUT", "/configs/"+slug, key, `{"name":"e"}`).OK()
	if named(h.One) != id {
		t.Error("a new name unmade the default")
	}
	h.Do("DELETE", "/configs/"+slug, key, nil).OK()
	if named(h.One) != "" {
		t.Error("a deleted config is still the default")
	}
}

func TestArchivedConfigIsRestored(t *testing.T) {
	h := newInstallation(t)
	slug := save(t, h, "a", `{"provider":"@a"}`)
	h.Do("PUT", "/configs/"+slug, key, `{"status":"archived"}`).OK()
	if n := h.Do("GET", "/configs", key, nil).OK().At("total"); n != 0.0 {
		t.Errorf("an archived config is listed: %v", n)
	}
	if got := h.Do("GET", "/configs/"+slug, key, nil).OK().Text("data", "status"); got != "archived" {
		t.Errorf("status %s", got)
	}
	h.Do("PUT", "/configs/"+slug, key, `{"status":"active"}`).OK()
	h.Do("PUT", "/configs/"+slug, key, `{"status":"gone"}`).RequireFault(400, "AB01", "status")
}

func TestUsedConfigIsNotDeleted(t *testing.T) {
	h := newInstallation(t)
	slug := save(t, h, "a", `{"provider":"@a"}`)
	ctx := context.Background()
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	rec, _, err := h.Resources.Get(ctx, sc, route.KindConfig, slug)
	if err != nil {
		t.Fatal(err)
	}
	user := resource.Ref{Scope: sc.Organisation(), Kind: tenant.KindWorkspace, ID: h.One, Name: "One"}
	if err := h.Resources.Change(ctx, sc, func(tx *resource.Tx) error { return tx.Use(rec.Ref(), user) }); err != nil {
		t.Fatal(err)
	}
	if f := h.Do("DELETE", "/configs/"+slug, key, nil).RequireFault(409, "AB07", "").Failure(); !strings.Contains(f.Message, "One") {
		t.Errorf("the user is not named: %s", f.Message)
	}
	if err := h.Resources.Change(ctx, sc, func(tx *resource.Tx) error { return tx.RemoveUse(rec.Ref(), user) }); err != nil {
		t.Fatal(err)
	}
	if got := h.Do("DELETE", "/configs/"+slug, key, nil).OK(); string(got.Body) != "{}" {
		t.Errorf("delete answered %s", got.Body)
	}
	h.Do("GET", "/configs/"+slug, key, nil).RequireFault(404, "AB08", "")
}

func TestSecretsInAConfigAreSealedAndMasked(t *testing.T) {
	const canary = "CANARY-0123456789"
	h := newInstallation(t)
	config := `{"strategy":{"mode":"fallback"},"targets":[{"provider":"openai","api_key":"` + canary + `","override_params":{"prompt_cache_key":"shown"}},
		{"provider":"bedrock","aws_region":"us-east-1","aws_access_key_id":"AKID","aws_secret_access_key":"` + canary + `"}]}`
	slug := save(t, h, "a", config)
	ctx := context.Background()
	rec, _, err := h.Resources.Get(ctx, store.Scope{Org: admintest.Org, Workspace: h.One}, route.KindConfig, slug)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(rec.Body, []byte(canary)) || bytes.Contains(rec.Sealed, []byte(canary)) {
		t.Error("a secret is stored in the clear")
	}
	if plain, err := rec.OpenSecrets(ctx, admintest.Sealer{}); err != nil || string(plain[sealedConfig]) != config {
		t.Errorf("the sealed config: %s %v", plain[sealedConfig], err)
	}
	a := h.Do("GET", "/configs/"+slug, key, nil).OK()
	if bytes.Contains(a.Body, []byte(canary)) || !bytes.Contains(a.Body, []byte(`"prompt_cache_key":"shown"`)) || !bytes.Contains(a.Body, []byte("us-east-1")) {
		t.Errorf("read: %s", a.Body)
	}
	// What a read shows cannot be saved back as the secret.
	shown, err := json.Marshal(a.At("data", "config"))
	if err != nil {
		t.Fatal(err)
	}
	h.Do("PUT", "/configs/"+slug, key, `{"config":`+string(shown)+`}`).RequireFault(400, "AB01", "config.targets[0].api_key")
	h.Do("PUT", "/configs/"+slug, key, `{"name":"still sealed"}`).OK()
	// Without secrets nothing is sealed any more.
	h.Do("PUT", "/configs/"+slug, key, `{"config":{"provider":"@a"}}`).OK()
	if rec, _, _ = h.Resources.Get(ctx, rec.Scope, route.KindConfig, slug); rec.HasSecret(sealedConfig) {
		t.Error("old secrets outlived the content they were in")
	}
	log, err := json.Marshal(h.Audit())
	if err != nil || bytes.Contains(log, []byte(canary)) {
		t.Error("the audit log shows a secret")
	}
}

// TestDocumentedMembersAreOfConfigs parses a config with each field that the document names.
func TestDocumentedMembersAreOfConfigs(t *testing.T) {
	t.Parallel()
	samples := map[any]string{"string": `"a"`, "integer": `1`, "number": `1`, "boolean": `true`, "array": `[]`, "object": `{}`, nil: `"simple"`}
	var check func(schema admin.Schema, before, after string)
	check = func(schema admin.Schema, before, after string) {
		for name, s := range schema["properties"].(admin.Schema) {
			member := s.(admin.Schema)
			_, details := route.Parse([]byte(before+fmt.Sprintf(`{%q:%s}`, name, samples[member["type"]])+after), route.Strict)
			for _, d := range details {
				if strings.Contains(d.Message, "is not a property") {
					t.Errorf("%s%s%s: %s %s", before, name, after, d.Field, d.Message)
				}
			}
			if member["type"] == "object" && member["properties"] != nil {
				check(member, before+fmt.Sprintf(`{%q:`, name), `}`+after)
			}
		}
	}
	check(configForm(), "", "")
	for _, name := range []string{"nonsense", "targt"} {
		if _, details := route.Parse([]byte(fmt.Sprintf(`{%q:1}`, name)), route.Strict); len(details) == 0 || !strings.Contains(details[0].Message, "is not a property") {
			t.Errorf("the test does not recognize what is said of unknown members: %v", details)
		}
	}
}

package workspaces

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
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

const key = admintest.AdminKey

func newInstallation(t testing.TB) *admintest.Installation {
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{New(Deps{Ledger: ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{})})}
	})
}

func TestFamilyChecks(t *testing.T) {
	h := newInstallation(t)
	admintest.CheckFamily(t, h)
	admintest.BadBodies(t, h, "POST", "/admin/workspaces", key, `{"name":"a"}`)
	admintest.BadBodies(t, h, "PUT", "/workspaces/"+h.One, key, `{"description":"a"}`)
	admintest.BadBodies(t, h, "DELETE", "/workspaces/"+h.One, key, `{"name":"no","x":1}`)
}

func TestForeignWorkspaceIsAMissingOne(t *testing.T) {
	h := newInstallation(t)
	for _, id := range []string{h.One, admintest.OneSlug} {
		for caller, calls := range map[string][][2]string{
			admintest.WorkspaceB: {{"GET", ""}, {"PUT", `{"description":"x"}`}},
			admintest.OtherAdmin: {{"GET", ""}, {"PUT", `{"description":"x"}`}, {"DELETE", `{"name":"One"}`}},
		} {
			for _, call := range calls {
				var body any
				if call[1] != "" {
					body = call[1]
				}
				foreign := h.Do(call[0], "/workspaces/"+id, caller, body)
				missing := h.Do(call[0], "/workspaces/"+resource.NewID(), caller, body)
				if foreign.Comparable() != missing.Comparable() || foreign.Status != 404 {
					t.Errorf("%s as %s: %s | %s", call[0], caller, foreign.Body, missing.Body)
				}
			}
		}
	}
	if got := h.Do("GET", "/workspaces", admintest.WorkspaceA, nil).OK(); got.At("total") != 1.0 || got.Text("data", "0", "slug") != admintest.OneSlug {
		t.Errorf("a workspace key lists %s", got.Body)
	}
	h.Do("GET", "/workspaces/"+h.One, admintest.WorkspaceA, nil).OK()
}

func TestOnlyAdminsChangeAWorkspaceAndOnlyTheOrganisationMakesOne(t *testing.T) {
	h := newInstallation(t)
	for _, k := range []string{admintest.MemberKey, admintest.ManagerKey} {
		h.Do("PUT", "/workspaces/"+h.One, k, `{"description":"x"}`).RequireFault(403, "AB03", "")
	}
	for _, k := range []string{admintest.WsAdminKey, admintest.WorkspaceA, key} {
		h.Do("PUT", "/workspaces/"+h.One, k, `{"description":"x"}`).OK()
	}
	for _, k := range []string{admintest.WsAdminKey, admintest.WorkspaceA} {
		h.Do("POST", "/workspaces", k, `{"name":"x"}`).RequireFault(403, "AB03", "")
		h.Do("DELETE", "/workspaces/"+h.One, k, `{"name":"One"}`).RequireFault(403, "AB03", "")
	}
}

func TestCreateAnswersTheWholeWorkspace(t *testing.T) {
	h := newInstallation(t)
	a := h.Do("POST", "/admin/workspaces", key, `{"name":"Data Team","description":"d","icon":"🚀","defaults":{"metadata":{"team":"data"}},
		"usage_limits":[{"type":"cost","credit_limit":10.5,"alert_threshold":5,"periodic_reset":"monthly"}],"rate_limits":[{"type":"requests","unit":"rpm","value":100}]}`).OK()
	for path, want := range map[string]any{
		"name": "Data Team", "status": "active", "icon": "🚀", "description": "d", "object": "workspace", "is_default": 0.0,
		"defaults.metadata.team": "data", "usage_limits.0.type": "cost", "usage_limits.0.credit_limit": 10.5, "usage_limits.0.current_usage": 0.0,
		"usage_limits.0.status": "active", "rate_limits.0.value": 100.0, "rate_limits.0.unit": "rpm",
	} {
		if got := a.At(strings.Split(path, ".")...); got != want {
			t.Errorf("%s = %v, want %v in %s", path, got, want, a.Body)
		}
	}
	id := a.Text("id")
	if !strings.HasPrefix(a.Text("slug"), "ws-data-t-") || a.Text("usage_limits", "0", "next_reset_at") == "" {
		t.Errorf("created %s", a.Body)
	}
	if got := h.Do("GET", "/workspaces/"+id, key, nil).OK().Text("name"); got != "🚀 Data Team" {
		t.Errorf("display name %q", got)
	}
	if got := h.Do("GET", "/workspaces/"+id+"?name_format=plain", key, nil).OK().Text("name"); got != "Data Team" {
		t.Errorf("plain name %q", got)
	}
}

func TestLimitsAndDefaultsAreThreeState(t *testing.T) {
	h := newInstallation(t)
	at := "/workspaces/" + h.One
	put := func(body string) { t.Helper(); h.Do("PUT", at, key, body).OK() }
	put(`{"usage_limits":[{"type":"cost","credit_limit":1}],"rate_limits":[{"type":"tokens","unit":"rph","value":5}],"defaults":{"metadata":{"a":"1"},"user_api_key_config":null},"icon":"x"}`)
	next := h.Do("GET", at, key, nil).OK()
	put(`{"description":"other"}`)
	put(`{"defaults":{"input_guardrails":[]}}`)
	a := h.Do("GET", at, key, nil).OK()
	if a.Text("defaults", "metadata", "a") != "1" || a.At("usage_limits", "0", "credit_limit") != 1.0 || a.At("rate_limits", "0", "value") != 5.0 {
		t.Errorf("absent fields did not stay: %s", a.Body)
	}
	if next.At("usage_limits", "0", "next_reset_at") != a.At("usage_limits", "0", "next_reset_at") {
		t.Error("the period moved without a change")
	}
	put(`{"usage_limits":null,"rate_limits":[],"defaults":null,"icon":""}`)
	a = h.Do("GET", at, key, nil).OK()
	if got, _ := json.Marshal([]any{a.At("usage_limits"), a.At("rate_limits"), a.At("defaults", "metadata"), a.At("icon"), a.At("name")}); string(got) != `[[],[],{},"","One"]` {
		t.Errorf("cleared: %s", got)
	}
	for body, field := range map[string]string{
		`{"usage_limits":[{"type":"cost","credit_limit":-1}]}`:               "usage_limits[0].credit_limit",
		`{"usage_limits":{"type":"cost","credit_limit":1}}`:                  "usage_limits",
		`{"usage_limits":[{"type":"cost","credit_limit":1,"more":2}]}`:       "usage_limits[0].more",
		`{"rate_limits":[{"type":"requests","unit":"rpy","value":1}]}`:       "rate_limits[0].unit",
		`{"defaults":{"metadata":{"a":1}}}`:                                  "defaults.metadata.a",
		`{"defaults":{"metadata":{"a":"` + strings.Repeat("x", 129) + `"}}}`: "defaults.metadata.a",
		`{"defaults":{"user_api_key_config":"pc-none"}}`:                     "defaults.user_api_key_config",
		`{"defaults":{"input_guardrails":["pg-none"]}}`:                      "defaults.input_guardrails[0]",
		`{"name":"` + strings.Repeat("x", 256) + `"}`:                        "name",
	} {
		h.Do("PUT", at, key, body).RequireFault(400, "AB01", field)
	}
	h.Do("POST", "/workspaces", key, `{"name":"n","defaults":{"user_api_key_config":"pc-none"}}`).RequireFault(400, "AB01", "defaults.user_api_key_config")
}

// addConfigs makes configs in a workspace and gives their slugs.
func addConfigs(t *testing.T, h *admintest.Installation, workspace string, n int) (slugs []string) {
	t.Helper()
	sc := store.Scope{Org: admintest.Org, Workspace: workspace}
	err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
		slugs = nil
		for i := range n {
			rec := resource.Record{Scope: sc, Kind: route.KindConfig, Slug: fmt.Sprintf("pc-%s-%d", workspace[:8], i), Name: "c", Status: "active", Body: []byte(`{"provider":"@a"}`)}
			slugs = append(slugs, rec.Slug)
			if err := tx.Create(&rec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return slugs
}

func TestDefaultConfigCannotBeDeleted(t *testing.T) {
	h := newInstallation(t)
	slugs := addConfigs(t, h, h.One, 2)
	other := addConfigs(t, h, h.Two, 1)[0]
	at := "/workspaces/" + h.One
	inUse := func(slug string, want bool) {
		t.Helper()
		rec, ok, err := h.Resources.Get(context.Background(), store.Scope{Org: admintest.Org, Workspace: h.One}, route.KindConfig, slug)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		users, err := h.Resources.Users(context.Background(), rec.Ref())
		if err != nil || (len(users) == 1 && users[0].Name == "One") != want || len(users) > 1 {
			t.Errorf("%s is used by %v (%v), want %v", slug, users, err, want)
		}
	}
	set := func(slug string) string { return `{"defaults":{"user_api_key_config":"` + slug + `"}}` }
	h.Do("PUT", at, key, set(other)).RequireFault(400, "AB01", "defaults.user_api_key_config")
	h.Do("PUT", at, key, set(slugs[0])).OK()
	if got := h.Do("GET", at, key, nil).OK().Text("defaults", "user_api_key_config"); got != slugs[0] {
		t.Errorf("config %s", got)
	}
	inUse(slugs[0], true)
	h.Do("PUT", at, key, set(slugs[1])).OK()
	inUse(slugs[0], false)
	inUse(slugs[1], true)
	h.Do("PUT", at, key, `{"defaults":{"user_api_key_config":null}}`).OK()
	inUse(slugs[1], false)
}

func TestListFiltersByNameAndStatus(t *testing.T) {
	h := newInstallation(t)
	h.Do("POST", "/workspaces", key, `{"name":"Twosome"}`).OK()
	h.Do("DELETE", "/workspaces/"+h.One, key, `{"name":"One"}`).OK()
	for query, want := range map[string]string{
		"": "Twosome Two", "?name=Two": "Twosome Two", "?name=two": "", "?exact_name=Two": "Two", "?name=One": "",
		"?status=archived": "One", "?status=active,archived&page_size=2&current_page=1": "One",
	} {
		a := h.Do("GET", "/workspaces"+query, key, nil).OK()
		var names []string
		for i := range 5 {
			if n := a.Text("data", fmt.Sprint(i), "name"); n != "" {
				names = append(names, n)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if a := h.Do("GET", "/workspaces", key, nil).OK(); a.Text("data", "0", "id") == a.Text("data", "0", "slug") || a.Text("data", "0", "id") == "" {
		t.Error("an entry of the list has its slug as id")
	}
}

// A name of maximal length can be sent back as it is read, with the icon before it.
func TestALongNameIsSentBackWithItsIcon(t *testing.T) {
	h := newInstallation(t)
	at, long := "/workspaces/"+h.One, strings.Repeat("ü", tenant.MaxName)
	h.Do("PUT", at, key, `{"name":"`+long+`","icon":"🚀"}`).OK()
	shown := h.Do("GET", at, key, nil).OK().Text("name")
	h.Do("PUT", at, key, `{"name":"`+shown+`"}`).OK()
	if got := h.Do("GET", at, key, nil).OK().Text("name"); got != "🚀 "+long {
		t.Errorf("the name is %s", got)
	}
	h.Do("PUT", at, key, `{"name":"`+long+`x"}`).RequireFault(400, "AB01", "name")
	h.Do("POST", "/admin/workspaces", key, `{"name":"`+long+`x"}`).RequireFault(400, "AB01", "name")
}

func TestDeleteIsConfirmedRefusedWhileInUseAndTakesKeysAlong(t *testing.T) {
	h := newInstallation(t)
	ctx := context.Background()
	at := "/workspaces/" + h.One
	h.Do("PUT", at, key, `{"icon":"🚀"}`).OK()
	raw := addKey(t, h)
	slug := addConfigs(t, h, h.One, 20)[0]
	h.Do("PUT", at, key, `{"defaults":{"user_api_key_config":"`+slug+`"}}`).OK()

	h.Do("DELETE", at, key, nil).RequireFault(400, "AB01", "")
	h.Do("DELETE", at, key, `{}`).RequireFault(400, "AB01", "name")
	h.Do("DELETE", at, key, `{"name":"Two"}`).RequireFault(400, "AB01", "name")
	if f := h.Do("DELETE", at, key, `{"name":"One"}`).RequireFault(409, "AB07", "").Failure(); !strings.Contains(f.Message, "20 of kind config") {
		t.Errorf("refusal: %s", f.Message)
	}
	auth := identity.NewAuthenticator(resource.NewLoader(h.Resources), time.Now)
	if _, err := auth.Authenticate(ctx, raw, identity.AuthenticationAttempt{}); err != nil {
		t.Errorf("a refused deletion took the keys: %v", err)
	}
	h.Do("DELETE", at, key, `{"name":"🚀 One","force_delete":true}`).OK()
	if _, err := auth.Authenticate(ctx, raw, identity.AuthenticationAttempt{}); err == nil {
		t.Error("a key outlived its workspace")
	}
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	if rows, err := h.Resources.List(ctx, sc, route.KindConfig); err != nil || len(rows) != 0 {
		t.Errorf("%d configs outlived their workspace: %v", len(rows), err)
	}
	if rec, ok, _ := h.Resources.Get(ctx, sc.Organisation(), tenant.KindWorkspace, h.One); !ok || !rec.Archived() {
		t.Error("the workspace is not archived")
	}
	h.Do("GET", at, key, nil).RequireFault(404, "AB08", "")
	h.Do("DELETE", at, key, `{"name":"One"}`).RequireFault(404, "AB08", "")
}

// addKey makes a key of the first workspace and gives its raw form.
func addKey(t *testing.T, h *admintest.Installation) string {
	t.Helper()
	raw, secret := identity.NewSecret()
	k := identity.Key{Type: identity.WorkspaceService, Scopes: []string{"completions.write"}, Secret: secret}
	body, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	rec := resource.Record{Scope: store.Scope{Org: admintest.Org, Workspace: h.One}, Kind: identity.KindKey, Name: "k", Status: identity.StatusActive, Body: body}
	err = h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error {
		if err := tx.Create(&rec); err != nil {
			return err
		}
		return identity.Stage(tx, &rec, &k, admintest.OneSlug)
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestDefaultWorkspaceIsNotDeleted(t *testing.T) {
	h := newInstallation(t)
	ctx := context.Background()
	err := h.Resources.Change(ctx, store.Scope{Org: admintest.Org}, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(store.Scope{Org: admintest.Org}, tenant.KindWorkspace, h.One)
		if err != nil {
			return err
		}
		rec.Body = []byte(`{"is_default":true}`)
		return tx.Update(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Do("DELETE", "/workspaces/"+h.One, key, `{"name":"One","force_delete":true}`).RequireFault(409, "AB07", "")
}

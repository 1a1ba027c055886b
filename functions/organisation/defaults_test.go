package organisation

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// guardrail stores one and gives its id and slug.
func guardrail(t *testing.T, h *admintest.Installation, sc store.Scope, slug string) (id string) {
	t.Helper()
	rec := resource.Record{Scope: sc, Kind: kindGuardrail, Slug: slug, Name: slug, Status: "active", Body: []byte("{}")}
	if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
	return rec.ID
}

// effective are the guardrails of requests of a workspace, in and out.
func effective(t *testing.T, h *admintest.Installation, org, workspace string) string {
	t.Helper()
	view, err := resource.NewLoader(h.Resources).Fresh(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	of, err := tenant.LoadSettings(t.Context(), view, store.Scope{Org: org, Workspace: workspace})
	if err != nil {
		t.Fatal(err)
	}
	ws, ok, err := resource.Load(t.Context(), view, store.Scope{Org: org}, tenant.KindWorkspace, workspace, tenant.DecodeWorkspace)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	in, out := ws.Guardrails(of)
	return strings.Join(in, " ") + "|" + strings.Join(out, " ")
}

func TestGuardrailsOfTheOrganisation(t *testing.T) {
	h := admintest.New(t, New())
	org, other := store.Scope{Org: admintest.Org}, store.Scope{Org: admintest.OtherOrg}
	a, b := guardrail(t, h, org, "pg-a"), guardrail(t, h, org, "pg-b")
	theirs, inside := guardrail(t, h, other, "pg-theirs"), guardrail(t, h, store.Scope{Org: admintest.Org, Workspace: h.One}, "pg-one")
	put := func(body string) admintest.Response { return h.Do("PUT", defaultsPath, key, body) }

	for body, field := range map[string]string{
		`{}`: "", `{"checks":[]}`: "", `{"input_guardrails":"pg-a"}`: "input_guardrails", `{"input_guardrails":[7]}`: "input_guardrails[0]",
		`{"input_guardrails":["pg-a","` + theirs + `"]}`: "input_guardrails[1]", `{"output_guardrails":["pg-theirs"]}`: "output_guardrails[0]",
		`{"input_guardrails":["` + inside + `"]}`: "input_guardrails[0]", `{"input_guardrails":["pg-none"]}`: "input_guardrails[0]",
		`{"input_guardrails":["pg-a","` + a + `"]}`: "input_guardrails[1]", `{"output_guardrails":["\ud800"]}`: "",
	} {
		put(body).RequireFault(400, "AB01", field)
	}
	if got := put(`{"input_guardrails":["pg-x","pg-y"],"output_guardrails":["pg-z"]}`).Failure(); len(got.Fields) != 3 {
		t.Errorf("errors: %v", got.Fields)
	}
	if got := h.Do("GET", defaultsPath, key, nil).OK(); got.At("input_guardrails", "0") != nil || got.At("output_guardrails", "0") != nil {
		t.Errorf("a refused change was kept: %s", got.Body)
	}

	put(`{"input_guardrails":["pg-b","` + a + `"],"output_guardrails":["pg-a"]}`).OK()
	got := h.Do("GET", defaultsPath, key, nil).OK()
	if got.At("input_guardrails", "0", "id") != b || got.At("input_guardrails", "0", "slug") != "pg-b" || got.At("input_guardrails", "1", "id") != a || got.At("output_guardrails", "0", "slug") != "pg-a" {
		t.Errorf("%s", got.Body)
	}
	if !stored(t, h, key).BlockInlineConfig {
		t.Error("the first change took the standard of the settings away")
	}
	h.Do("PUT", path, key, `{"cache_settings":{"max_age":60}}`).OK()
	put(`{"output_guardrails":null}`).OK()
	if got := effective(t, h, admintest.Org, h.One); got != b+" "+a+"|" {
		t.Errorf("of a workspace: %s", got)
	}
	if got := effective(t, h, admintest.OtherOrg, h.Three); got != "|" {
		t.Errorf("of another organization: %s", got)
	}
	if stored(t, h, key).CacheMaxAge != 60 {
		t.Error("a change of the defaults took a setting away")
	}
}

func TestWorkspacesAreLeftOut(t *testing.T) {
	h := admintest.New(t, New())
	a := guardrail(t, h, store.Scope{Org: admintest.Org}, "pg-a")
	h.Do("PUT", defaultsPath, key, `{"input_guardrails":["pg-a"],"output_guardrails":["pg-a"]}`).OK()
	const in, out = "/workspace-exclusions/input-guardrails", "/workspace-exclusions/output-guardrails"
	put := func(path, body string) { t.Helper(); h.Do("PUT", path, key, body).OK() }
	hold := func(one, two string) {
		t.Helper()
		if got := effective(t, h, admintest.Org, h.One); got != one {
			t.Errorf("first workspace: %s, want %s", got, one)
		}
		if got := effective(t, h, admintest.Org, h.Two); got != two {
			t.Errorf("second workspace: %s, want %s", got, two)
		}
	}
	put(in, `{"workspaces":[{"workspace_id":"`+admintest.OneSlug+`","excluded":true}]}`)
	hold("|"+a, a+"|"+a)
	put(out, `{"workspaces":[{"workspace_id":"`+h.One+`","excluded":false},{"workspace_id":"`+h.Two+`","excluded":true}]}`)
	hold("|"+a, a+"|")
	put(in, `{"workspaces":[{"workspace_id":"`+h.Two+`","excluded":true}]}`)
	hold("|"+a, "|")
	got := h.Do("GET", in, key, nil).OK()
	if got.At("total") != 2.0 || got.At("data", "0", "slug") != admintest.TwoSlug || got.At("data", "1", "workspace_id") != h.One {
		t.Errorf("%s", got.Body)
	}
	if got := h.Do("GET", in+"?page_size=1&current_page=1", key, nil).OK(); got.At("total") != 2.0 || got.At("data", "0", "workspace_id") != h.One || got.At("data", "1") != nil {
		t.Errorf("%s", got.Body)
	}
	put(in, `{"workspaces":[{"workspace_id":"`+h.Two+`","excluded":true}],"override_existing":true}`)
	hold(a+"|"+a, "|")
	put(in, `{"workspaces":[],"override_existing":true}`)
	hold(a+"|"+a, a+"|")
	if got := h.Do("GET", in, key, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("%s", got.Body)
	}
}

func TestBadExclusions(t *testing.T) {
	h := admintest.New(t, New())
	const in = "/workspace-exclusions/input-guardrails"
	entry := func(id string) string { return `{"workspace_id":"` + id + `","excluded":true}` }
	for body, field := range map[string]string{
		`{}`: "workspaces", `{"workspaces":[]}`: "workspaces", `{"workspaces":{}}`: "workspaces", `{"workspaces":[{"excluded":true}]}`: "workspaces[0].workspace_id",
		`{"workspaces":[{"workspace_id":"` + h.One + `"}]}`:                          "workspaces[0].excluded",
		`{"workspaces":[{"workspace_id":"` + h.One + `","excluded":"yes"}]}`:         "workspaces[0].excluded",
		`{"workspaces":[` + entry(h.One) + `,` + entry(h.Three) + `]}`:               "workspaces[1].workspace_id",
		`{"workspaces":[` + entry(admintest.ThreeSlug) + `]}`:                        "workspaces[0].workspace_id",
		`{"workspaces":[` + entry(h.One) + `,` + entry(admintest.OneSlug) + `]}`:     "workspaces[1].workspace_id",
		`{"workspaces":[` + entry(h.One) + `],"override_existing":1}`:                "override_existing",
		`{"workspaces":[` + strings.Repeat(entry("x")+",", 1000) + entry("x") + `]}`: "workspaces",
	} {
		h.Do("PUT", in, key, body).RequireFault(400, "AB01", field)
	}
	if got := h.Do("GET", in, key, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("a refused change was kept: %s", got.Body)
	}
	if got := h.Do("GET", in, admintest.OtherAdmin, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("another organization reads %s", got.Body)
	}
	for _, k := range []string{admintest.WorkspaceA, admintest.WsAdminKey, admintest.MemberKey} {
		h.Do("GET", in, k, nil).RequireFault(403, "AB03", "")
		h.Do("PUT", in, k, `{"workspaces":[`+entry(h.One)+`]}`).RequireFault(403, "AB03", "")
		h.Do("GET", defaultsPath, k, nil).RequireFault(403, "AB03", "")
		h.Do("PUT", defaultsPath, k, `{"input_guardrails":[]}`).RequireFault(403, "AB03", "")
	}
	admintest.BadBodies(t, h, "PUT", in, key, `{"workspaces":[`+entry(h.One)+`]}`)
	admintest.BadBodies(t, h, "PUT", defaultsPath, key, `{"input_guardrails":[]}`)
}

// More than a transaction takes.
func TestManyWorkspacesAreLeftOut(t *testing.T) {
	h := admintest.New(t, New())
	sc := store.Scope{Org: admintest.Org}
	var entries []string
	for n := range 130 {
		rec := resource.Record{Scope: sc, Kind: tenant.KindWorkspace, Slug: fmt.Sprintf("ws-more-%06d", n), Name: "More", Status: "active", Body: []byte("{}")}
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, `{"workspace_id":"`+rec.Slug+`","excluded":true}`)
	}
	const in = "/workspace-exclusions/input-guardrails"
	h.Do("PUT", in, key, `{"workspaces":[`+strings.Join(entries, ",")+`]}`).OK()
	if got := h.Do("GET", in, key, nil).OK(); got.At("total") != 130.0 {
		t.Errorf("%v are left out", got.At("total"))
	}
	h.Do("PUT", in, key, `{"workspaces":[],"override_existing":true}`).OK()
	if got := h.Do("GET", in, key, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("%v are left out", got.At("total"))
	}
	if log := h.Audit(); len(log) != 2 || log[0].ResourceType != "organisation_exclusions" || log[0].Action != "manage" {
		t.Errorf("audit: %+v", log)
	}
}

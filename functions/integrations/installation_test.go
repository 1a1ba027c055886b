package integrations

import (
	"context"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/egress"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

const (
	key   = admintest.WorkspaceA
	chief = admintest.AdminKey
)

func newInstallation(t testing.TB) *admintest.Installation {
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{New(Deps{Ledger: ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{}), CheckURL: egress.Policy{}.CheckURL})}
	})
}

// create makes an integration and gives its slug.
func create(t testing.TB, h *admintest.Installation, as, members string) string {
	t.Helper()
	a := h.Do("POST", "/integrations", as, `{"name":"Own","ai_provider_id":"openai","key":"sk-first-secret-of-mine"`+members+`}`).OK()
	if a.Text("id") == "" || len(a.Object()) != 2 {
		t.Fatalf("create answered %s", a.Body)
	}
	return a.Text("slug")
}

func providersIn(t testing.TB, h *admintest.Installation, workspace string) []resource.Row {
	t.Helper()
	rows, err := h.Resources.List(context.Background(), store.Scope{Org: admintest.Org, Workspace: workspace}, provider.KindProvider)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func stored(t testing.TB, h *admintest.Installation, workspace, slug string) (resource.Record, *provider.Integration) {
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

func mustProvider(t testing.TB, id string) *provider.Provider {
	t.Helper()
	p, ok := provider.ByID(id)
	if !ok {
		t.Fatal(id)
	}
	return p
}

package providers

import (
	"context"
	"encoding/json"
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
		policy, err := egress.ParseAllow("127.0.0.0/8")
		if err != nil {
			t.Fatal(err)
		}
		via := egress.New(policy, egress.Options{})
		t.Cleanup(func() { egress.CloseIdle(via) })
		tokens := provider.NewTokens(via, time.Now)
		return []admin.Family{New(Deps{Ledger: ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{}), CheckURL: egress.Policy{}.CheckURL,
			Loader: resource.NewLoader(d.Resources), Secrets: provider.NewSecrets(admintest.Sealer{}, tokens, via), Tokens: tokens, Transport: via, TrustedTransport: via})}
	})
}

// integrate stores an integration of the organization, or of a workspace.
func integrate(t testing.TB, h *admintest.Installation, org, workspace, slug string, access ...provider.WorkspaceAccess) resource.Record {
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
func create(t testing.TB, h *admintest.Installation, members string) string {
	t.Helper()
	a := h.Do("POST", "/providers", key, `{"name":"My Provider","integration_id":"own"`+members+`}`).OK()
	if a.Text("id") == "" || a.Text("object") != "provider" {
		t.Fatalf("create answered %s", a.Body)
	}
	return a.Text("slug")
}

func integrationOf(t testing.TB, h *admintest.Installation, slug string) (resource.Record, *provider.Integration) {
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

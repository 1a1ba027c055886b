// Package integrations is the family of integrations: credentials of model
// providers, of the organization or of one workspace, with their models and the
// workspaces they are open to.
package integrations

import (
	"gateway/shared/admin"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

// Scope families: one for integrations of the organization, one for those of a
// workspace. Which one counts depends on the integration.
const (
	ofOrganisation = "organisation_integrations"
	ofWorkspace    = "workspace_integrations"
)

const auditName = "integrations"

// Deps is what the family works with.
type Deps struct {
	Ledger *ledger.Ledger
	// CheckURL is the egress rule for hosts that people name.
	CheckURL provider.URLCheck
}

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.col, f.access = f.describe(), f.limits()
	routes := append(f.col.Routes(), f.modelRoutes()...)
	return admin.Family{Name: "integrations", Doc: "Integrations: credentials of model providers.", Routes: append(routes, f.workspaceRoutes()...)}
}

type family struct {
	Deps
	col    *admin.Collection[provider.Integration]
	access *admin.Limits[provider.WorkspaceAccess]
}

// item and change are an integration and what happens to it.
type (
	item   = admin.Item[provider.Integration]
	change = admin.Change[provider.Integration]
)

func (f *family) describe() *admin.Collection[provider.Integration] {
	return &admin.Collection[provider.Integration]{
		Kind: provider.KindIntegration, Object: "integration", Path: "/integrations", Param: "slug",
		Resource: auditName, WriteRole: admin.Manager, Slugs: &admin.Slugs{Max: 15},
		Levels: &admin.Levels[provider.Integration]{
			Organisation: ofOrganisation, Workspace: ofWorkspace, Filter: true,
			Open: func(it item, workspace string) bool { return it.Form.OpenTo(it.Record, workspace) },
		},
		Fields: fields(), Computed: shown(),
		List: admin.List{Paging: admin.Paging{DefaultSize: 100}, Tags: true},
		Adjust: func(action string, r *admin.Route) {
			switch action {
			case "create", "update":
				r.Errors = append(r.Errors, 404) // a secret reference that goes at the same time
			case "delete":
				r.Doc = "Delete an integration and the providers that use it."
				r.Do = f.col.WithItem("delete", f.delete)
			}
		},
		New: func(*admin.Call) provider.Integration { return provider.Integration{AllowAllModels: true} },
		Before: func(c *admin.Call, tx *resource.Tx, ch *change) error {
			if err := mayPrice(c, ch.OldForm, ch.Form); err != nil {
				return err
			}
			if ch.Creates() {
				if err := plainSlug(c, tx, ch.Rec); err != nil {
					return err
				}
			} else if err := ch.Form.SealModels(c.Context, c.Sealer, ch.Rec); err != nil {
				return err
			} else if !c.Body.Has("key") && !c.Body.Has("credentials") && !c.Body.Has("configurations") && !c.Body.Has("secret_mappings") {
				return nil
			}
			return f.setCredentials(c, tx, ch)
		},
		After:    defaultProvider,
		Decorate: countWorkspaces,
	}
}

// plainSlug gives a new integration the slug of its name alone, if it is free.
func plainSlug(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	if c.Body.HasValue("slug") {
		return nil
	}
	plain := admin.Slugs{Plain: true, Max: provider.MaxSlug}.Make(rec.Name)
	_, taken, err := tx.Get(rec.Scope, provider.KindIntegration, plain)
	if err == nil && !taken {
		rec.Slug = plain
	}
	return err
}

// setCredentials puts key, configurations and mappings of the body into place.
func (f *family) setCredentials(c *admin.Call, tx *resource.Tx, ch *change) error {
	set := provider.Change{ClearAll: c.Body.Null("configurations")}
	if c.Body.Has("key") {
		key := c.Body.Text("key")
		set.Key = &key
	}
	if err := c.Body.Decode("configurations", &set.Configurations); err != nil {
		return err
	}
	if c.Body.Has("credentials") {
		set.Credentials = &[]provider.CredentialInput{}
		if err := c.Body.Decode("credentials", set.Credentials); err != nil {
			return err
		}
	}
	if c.Body.Has("secret_mappings") {
		set.Mappings = &[]provider.SecretMapping{}
		if err := c.Body.Decode("secret_mappings", set.Mappings); err != nil {
			return err
		}
	}
	return f.apply(c, tx, ch, &set)
}

// apply changes the credentials, and checks where they are sent.
func (f *family) apply(c *admin.Call, tx *resource.Tx, ch *change, set *provider.Change) error {
	if err := set.Apply(c.Context, provider.ChangeStore{Sealer: c.Sealer, CheckURL: f.CheckURL}, ch.Rec, ch.Form); err != nil {
		return err
	}
	return provider.LinkSecrets(tx, ch.Rec.Ref(), provider.Links{Was: ch.OldForm.SecretMappings, Now: ch.Form.SecretMappings, Addresses: ch.Form.Addresses(ch.OldForm), By: c.SecretReferences()})
}

// defaultProvider makes the workspace of a new integration able to call it.
func defaultProvider(c *admin.Call, tx *resource.Tx, ch *change) error {
	rec := ch.Rec
	if !ch.Creates() || rec.Scope.Workspace == "" || (c.Body.HasValue("create_default_provider") && !c.Body.Bool("create_default_provider")) {
		return nil
	}
	d := provider.Default{Workspace: rec.Scope.Workspace, Slug: c.Body.Text("default_provider_slug"), Field: "default_provider_slug", Actor: rec.CreatedBy}
	return d.Stage(tx, rec, ch.Form)
}

// countWorkspaces adds the number of workspaces that may use an integration; lists omit it.
func countWorkspaces(c *admin.Call, items []item, objects []admin.Members) error {
	for n, it := range items {
		if _, present := objects[n]["workspace_count"]; !present || it.Scope.Workspace != "" {
			continue
		}
		spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
		if err != nil {
			return err
		}
		count := 0
		for _, a := range accessOf(it.Form, spaces) {
			if a.Enabled {
				count++
			}
		}
		objects[n]["workspace_count"] = count
	}
	return nil
}

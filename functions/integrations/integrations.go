// Package integrations is the family of integrations: credentials of model
// providers, of the organisation or of one workspace, with their models and the
// workspaces they are open to.
package integrations

import (
	"encoding/json"
	"fmt"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Scope families: one for integrations of the organisation, one for those of a
// workspace. Which one counts depends on the integration.
const (
	ofOrganisation = "organisation_integrations"
	ofWorkspace    = "workspace_integrations"
)

// Values of the field and of the query parameter type.
const (
	typeOrganisation = "organisation"
	typeWorkspace    = "workspace"
	typeAll          = "all"
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
	f.describe()
	routes := f.col.Routes()
	for i := range routes {
		f.place(&routes[i])
	}
	routes = append(routes, f.deleteRoute())
	routes = append(routes, f.modelRoutes()...)
	routes = append(routes, f.workspaceRoutes()...)
	return admin.Family{Name: "integrations", Doc: "Integrations: credentials of model providers.", Routes: routes}
}

type family struct {
	Deps
	col admin.Collection[provider.Integration]
}

// anyOf are the scopes of which a route needs one; place checks the right one.
func anyOf(action string) []string {
	return []string{ofOrganisation + "." + action, ofWorkspace + "." + action}
}

func (f *family) describe() {
	f.col = admin.Collection[provider.Integration]{
		Kind: provider.KindIntegration, Object: "integration", Path: "/integrations", Param: "slug",
		Scopes: anyOf, Resource: auditName, Where: admin.InEither, WriteRole: admin.Manager,
		Without: []string{"delete"}, Slugs: &admin.Slugs{Max: 15},
		Fields: fields(),
		List: admin.List{
			Paging: admin.Paging{DefaultSize: 100}, Tags: true,
			Query: []admin.Field{{Name: "type", Type: admin.String, Enum: []string{typeWorkspace, typeOrganisation, typeAll}, Default: typeAll, Doc: "Where the integrations belong."}},
		},
		New: func(*admin.Call) provider.Integration { return provider.Integration{AllowAllModels: true} },
		BeforeCreate: func(c *admin.Call, tx *resource.Tx, rec *resource.Record, i *provider.Integration) error {
			if err := plainSlug(c, tx, rec); err != nil {
				return err
			}
			return f.setCredentials(c, rec, i)
		},
		AfterCreate: defaultProvider,
		BeforeUpdate: func(c *admin.Call, _ *resource.Tx, _, rec *resource.Record, _, i *provider.Integration) error {
			if !c.Body.Has("key") && !c.Body.Has("configurations") && !c.Body.Has("secret_mappings") {
				return nil
			}
			return f.setCredentials(c, rec, i)
		},
		Render:     render,
		Decorate:   countWorkspaces,
		ExtraShown: shown(),
	}
}

// place settles in which scope a route acts before it does.
func (f *family) place(r *admin.Route) {
	do := r.Do
	switch {
	case r.Method == "POST":
		r.Do = func(c *admin.Call) (any, error) {
			if err := may(c, "create"); err != nil {
				return nil, err
			}
			return do(c)
		}
	case r.Path == f.col.Path:
		r.Do = f.list
	default:
		action := map[string]string{"GET": "read", "PUT": "update"}[r.Method]
		r.Do = f.at(action, do)
	}
}

// at finds the integration of the path before do acts on it.
func (f *family) at(action string, do func(*admin.Call) (any, error)) func(*admin.Call) (any, error) {
	return func(c *admin.Call) (any, error) {
		if err := locate(c); err != nil {
			return nil, err
		}
		if err := may(c, action); err != nil {
			return nil, err
		}
		return do(c)
	}
}

// may checks the scope that the place of an integration needs. What belongs to
// the organisation is changed by its admins only.
func may(c *admin.Call, action string) error {
	need := ofWorkspace
	if c.Scope.Workspace == "" {
		need = ofOrganisation
		if action != "read" && !c.Caller.AtLeast(admin.Admin) {
			return admin.Denied()
		}
	}
	if !c.Caller.HasAny([]string{need + "." + action}) {
		return admin.Denied()
	}
	return nil
}

// locate moves the call to the scope of the integration that the path names: the
// workspace's own, then for organisation keys the organisation's, then, when no
// workspace is named, that of any workspace.
func locate(c *admin.Call) error {
	name := c.Param("slug")
	scopes := []store.Scope{c.Scope}
	if c.Caller.OfOrganisation() && c.Scope.Workspace != "" {
		scopes = append(scopes, c.Organisation())
	}
	for _, sc := range scopes {
		rec, ok, err := c.Resources.Get(c.Context, sc, provider.KindIntegration, name)
		if err != nil {
			return err
		}
		if ok && !rec.Archived() {
			c.Scope = sc
			return nil
		}
	}
	if c.Scope.Workspace != "" {
		return nil // the family's answer for what is missing follows
	}
	return locateInWorkspaces(c, name)
}

func locateInWorkspaces(c *admin.Call, name string) error {
	scopes, err := workspacesOf(c)
	if err != nil {
		return err
	}
	lists, err := listsOf(c, scopes)
	if err != nil {
		return err
	}
	var found []store.Scope
	for n, rows := range lists {
		for i := range rows {
			if rows[i].ID == name || rows[i].Slug == name {
				found = append(found, scopes[n])
			}
		}
	}
	if len(found) > 1 {
		return fault.Invalid("workspace_id", "%d workspaces have an integration of this slug: name the workspace", len(found))
	}
	if len(found) == 1 {
		c.Scope = found[0]
	}
	return nil
}

// plainSlug gives a new integration the slug of its name alone, if it is free.
func plainSlug(c *admin.Call, tx *resource.Tx, rec *resource.Record) error {
	if c.Body.Given("slug") {
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
func (f *family) setCredentials(c *admin.Call, rec *resource.Record, i *provider.Integration) error {
	ch := provider.Change{ClearAll: c.Body.Null("configurations")}
	if c.Body.Has("key") {
		key := c.Body.Text("key")
		ch.Key = &key
	}
	if err := c.Body.Into("configurations", &ch.Configurations); err != nil {
		return err
	}
	if c.Body.Has("secret_mappings") {
		ch.Mappings = &[]provider.SecretMapping{}
		if err := c.Body.Into("secret_mappings", ch.Mappings); err != nil {
			return err
		}
	}
	return ch.Apply(c.Context, provider.Keeper{Sealer: c.Sealer, CheckURL: f.CheckURL}, rec, i)
}

// defaultProvider makes the workspace of a new integration able to call it.
func defaultProvider(c *admin.Call, tx *resource.Tx, rec *resource.Record, i *provider.Integration) error {
	if rec.Scope.Workspace == "" || (c.Body.Given("create_default_provider") && !c.Body.Bool("create_default_provider")) {
		return nil
	}
	d := provider.Default{Workspace: rec.Scope.Workspace, Slug: c.Body.Text("default_provider_slug"), Field: "default_provider_slug", Actor: rec.CreatedBy}
	return d.Stage(tx, rec, i)
}

func render(c *admin.Call, rec *resource.Record, i *provider.Integration) (map[string]any, error) {
	o := brief(rec, i)
	o["configurations"], o["secret_mappings"] = i.Shown(), list(i.SecretMappings)
	o["pricing_adjustments"], o["allow_all_models"] = orNull(i.PricingAdjustments), i.AllowAllModels
	o["global_workspace_access_settings"] = access(i.Global, c.Now)
	if mask, ok := i.Masked[provider.SecretKey]; ok {
		o["masked_key"] = mask
	}
	return o, nil
}

// brief is an integration as lists show it.
func brief(rec *resource.Record, i *provider.Integration) map[string]any {
	o := map[string]any{
		"id": rec.ID, "organisation_id": rec.Scope.Org, "ai_provider_id": i.AIProviderID, "name": rec.Name, "status": rec.Status,
		"created_at": admin.FormatTime(rec.Created), "last_updated_at": admin.FormatTime(rec.Updated), "last_reset_at": nil,
		"slug": rec.Slug, "description": i.Description, "tags": rec.Tags, "type": typeOrganisation, "workspace_id": nil, "object": "integration",
	}
	if i.LastResetAt != nil {
		o["last_reset_at"] = admin.FormatTime(*i.LastResetAt)
	}
	if rec.Scope.Workspace != "" {
		o["type"], o["workspace_id"] = typeWorkspace, rec.Scope.Workspace
	}
	return o
}

// access is what workspaces without settings of their own get; null where
// nothing is limited, as in the settings of a workspace.
func access(g provider.GlobalAccess, now time.Time) map[string]any {
	o := map[string]any{"enabled": g.Enabled, "usage_limits": nil, "rate_limits": nil}
	if len(g.RateLimits) > 0 {
		o["rate_limits"] = g.RateLimits
	}
	if len(g.UsageLimits) > 0 {
		states := make([]ledger.BudgetState, len(g.UsageLimits))
		for i, u := range g.UsageLimits { // counted by each workspace on its own
			states[i] = ledger.BudgetState{Limit: u, Status: ledger.Active}
			states[i].NextResetAt, _ = u.Schedule().Next(now)
		}
		o["usage_limits"] = states
	}
	return o
}

func list[T any](of []T) []T {
	if of == nil {
		return []T{}
	}
	return of
}

func orNull(raw json.RawMessage) any {
	if len(raw) == 0 {
		return nil
	}
	return raw
}

// countWorkspaces shows how many workspaces may call an integration.
func countWorkspaces(c *admin.Call, recs []resource.Record, objects []map[string]any) error {
	for n := range recs {
		if recs[n].Scope.Workspace != "" {
			objects[n]["workspace_count"] = 1
			continue
		}
		i, err := provider.DecodeIntegration(recs[n])
		if err != nil {
			return err
		}
		spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
		if err != nil {
			return err
		}
		count := 0
		for _, a := range accessOf(i, spaces) {
			if a.Enabled {
				count++
			}
		}
		objects[n]["workspace_count"] = count
	}
	return nil
}

func save(tx *resource.Tx, rec *resource.Record, i *provider.Integration) error {
	var err error
	if rec.Body, err = json.Marshal(i); err != nil {
		return fmt.Errorf("integrations: encode: %w", err)
	}
	return tx.Update(rec)
}

// actor is who is written down as the author of a change.
func actor(c *admin.Call) string {
	if c.Caller.UserID != "" {
		return c.Caller.UserID
	}
	return c.Caller.KeyID
}

package integrations

import (
	"fmt"
	"slices"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

var workspacePaging = admin.Paging{DefaultSize: 1000}

// limits are those of the integration in one workspace.
func (f *family) limits() *admin.Limits[provider.WorkspaceAccess] {
	return &admin.Limits[provider.WorkspaceAccess]{
		Ledger: f.Ledger, Place: ledger.OnIntegration,
		Budgets: func(a *provider.WorkspaceAccess) *[]ledger.UsageLimit { return &a.UsageLimits },
		Rates:   func(a *provider.WorkspaceAccess) *[]ledger.RateLimit { return &a.RateLimits },
		Reset:   func(a *provider.WorkspaceAccess) **time.Time { return &a.LastResetAt },
		Subject: func(it accessItem) *ledger.Subject {
			sc := store.Scope{Org: it.Scope.Org, Workspace: it.Form.Workspace}
			return provider.AccessSubject(sc, it.ID, it.Slug, it.Rev, *it.Form)
		},
	}
}

// accessItem is an integration with what holds for one workspace.
type accessItem = admin.Item[provider.WorkspaceAccess]

// workspaceRoutes are the workspaces that an integration is open to.
func (f *family) workspaceRoutes() []admin.Route {
	const path = "/integrations/{slug}/workspaces"
	return f.col.ItemRoutes(
		admin.Route{Method: "GET", Path: path, Name: "listIntegrationWorkspaces", Doc: "List the workspaces of an integration with their limits.",
			Query: workspacePaging.Fields(), Response: workspacesSchema, Do: f.col.WithItem("read", f.listWorkspaces)},
		admin.Route{Method: "PUT", Path: path, Name: "updateIntegrationWorkspaces", Action: audit.Manage,
			Doc:  "Grant workspaces access to an integration of the organization, revoke it, and set their limits.",
			Body: workspaceFields(), BodyMode: admin.PartialBody, Response: admin.EmptyResponse, Do: f.col.WithItem("update", f.putWorkspaces)},
	)
}

func workspaceFields() []admin.Field {
	access := append([]admin.Field{{Name: "enabled", Type: admin.Boolean, Required: true}}, admin.LimitFields(ledger.OnIntegration)...)
	create := admin.Field{Name: "create_default_provider", Doc: "Whether a workspace that gets access gets a provider too.", Type: admin.Boolean, Default: true}
	slug := admin.SlugField(provider.MaxSlug)
	slug.Name, slug.Doc, slug.Column, slug.CreateOnly = "default_provider_slug", "Slug of the provider.", false, false
	entry := append([]admin.Field{{Name: "id", Doc: "Id or slug of the workspace.", Type: admin.String, Reference: "/admin/workspaces", Required: true, Min: 1, Max: 255}}, access...)
	entry = append(entry, admin.Field{Name: "reset_usage", Doc: "true resets the usage.", Type: admin.Boolean}, create, slug,
		admin.Field{Name: "last_reset_at", Type: admin.Timestamp, ReadOnly: true})
	return []admin.Field{
		{Name: "workspaces", Type: admin.Array, Max: maxWorkspaces, Of: &admin.Field{Type: admin.Object, Fields: entry}},
		{Name: "global_workspace_access", Doc: "Access of workspaces without their own settings, including later ones.", Type: admin.Object, Fields: access},
		{Name: "override_existing_workspace_access", Doc: "Removes the settings of workspaces, which then use the global ones.", Type: admin.Boolean},
		{Name: "override_existing_workspaces_access", Doc: "The same, as some clients spell it.", Type: admin.Boolean},
		create, slug,
	}
}

var workspacesSchema = admin.Closed(map[string]admin.Schema{
	"total": {"type": "integer"}, "global_workspace_access": accessSchema,
	"workspaces": {"type": "array", "items": admin.Closed(map[string]admin.Schema{
		"id": {"type": "string"}, "enabled": {"type": "boolean"}, "usage_limits": ledger.OnIntegration.UsageSchema(),
		"rate_limits": ledger.OnIntegration.RateSchema(), "last_reset_at": {"type": []string{"string", "null"}, "format": "date-time"},
	})},
})

// namedAccess is what holds for a workspace, with the workspace's slug.
type namedAccess struct {
	provider.WorkspaceAccess
	slug string
}

// accessOf lists live workspaces that have settings of their own or access, by
// the order of spaces.
func accessOf(i *provider.Integration, spaces []resource.Row) []namedAccess {
	own := make(map[string]bool, len(i.Workspaces))
	for _, a := range i.Workspaces {
		own[a.Workspace] = true
	}
	var out []namedAccess
	for n := range spaces {
		if i.Global.Enabled || own[spaces[n].ID] {
			out = append(out, namedAccess{i.Access(spaces[n].ID), spaces[n].Slug})
		}
	}
	return out
}

func (f *family) listWorkspaces(c *admin.Call) (any, error) {
	page, err := workspacePaging.Of(c.Query)
	if err != nil {
		return nil, err
	}
	it, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	var all []namedAccess
	if it.Scope.Workspace == "" {
		all = accessOf(it.Form, spaces)
	} else if n := slices.IndexFunc(spaces, func(r resource.Row) bool { return r.ID == it.Scope.Workspace }); n >= 0 {
		all = []namedAccess{{provider.WorkspaceAccess{Workspace: spaces[n].ID, Enabled: true}, spaces[n].Slug}}
	}
	part := admin.Cut(all, page)
	items, entries := make([]accessItem, len(part)), make([]admin.Members, len(part))
	for n := range part {
		a := &part[n]
		items[n] = accessItem{Record: it.Record, Form: &a.WorkspaceAccess}
		entries[n] = admin.Members{"id": a.slug, "enabled": a.Enabled, "usage_limits": nil, "rate_limits": a.RateLimits, "last_reset_at": nil}
	}
	return admin.Members{"total": len(all), "workspaces": entries, "global_workspace_access": showGlobal(it.Form.Global, c.Now)}, f.access.Decorate(c, items, entries)
}

// showGlobal shows what workspaces without settings of their own get. As in the settings of
// a workspace, null means no limit.
func showGlobal(g provider.GlobalAccess, now time.Time) admin.Members {
	o := admin.Members{"enabled": g.Enabled, "usage_limits": nil, "rate_limits": g.RateLimits}
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

// putWorkspaces changes who may use the integration. If more workspaces get a default
// provider than fit into one change, their providers are made first; access opens, or
// closes, with the last change.
func (f *family) putWorkspaces(c *admin.Call) (any, error) {
	var it item
	var p *plan
	err := admin.Rounds(c, func(tx *resource.Tx) (more bool, err error) {
		if it, err = f.col.FindIn(c, tx); err != nil {
			return false, err
		}
		if p, err = f.plan(c, it); err != nil {
			return false, err
		}
		next := it
		if more = len(p.defaults) > perChange; !more {
			next.Form = p.next // before that it stays as it is, and of two calls at a time one plans again
		}
		if err := f.col.Save(c, tx, next); err != nil {
			return false, err
		}
		for n := range p.defaults[:min(perChange, len(p.defaults))] {
			if err := p.defaults[n].Stage(tx, it.Record, it.Form); err != nil {
				return false, err
			}
		}
		return more, nil
	})
	if err != nil {
		return nil, err
	}
	for _, id := range p.limited {
		if a := p.next.Access(id); len(a.UsageLimits) > 0 {
			// The next request brings the counters up to date as well.
			_ = f.Ledger.Apply(c.Context, f.access.Subject(accessItem{Record: it.Record, Form: &a}))
		}
	}
	return nil, nil
}

// plan is what a change of the workspaces leads to.
type plan struct {
	next     *provider.Integration
	defaults []provider.Default // providers to make
	limited  []string           // workspaces with budgets in the request
}

func (f *family) plan(c *admin.Call, it item) (*plan, error) {
	if it.Scope.Workspace != "" {
		return nil, fault.Invalid("workspaces", "cannot be set: the integration belongs to one workspace")
	}
	sent := c.Body.Objects("workspaces")
	override := c.Body.Bool("override_existing_workspace_access") || c.Body.Bool("override_existing_workspaces_access")
	if len(sent) == 0 && !override && !c.Body.HasValue("global_workspace_access") {
		return nil, fault.Invalid("workspaces", "must have an entry; it may be empty with global_workspace_access or override_existing_workspace_access true")
	}
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	next := *it.Form
	p := &plan{next: &next}
	var bad []fault.Detail
	if in, ok := c.Body.Object("global_workspace_access"); ok {
		a := provider.WorkspaceAccess{UsageLimits: slices.Clone(next.Global.UsageLimits), RateLimits: next.Global.RateLimits}
		bad = within("global_workspace_access", f.access.Set(in, &a, c.Now))
		next.Global = provider.GlobalAccess{Enabled: in.Bool("enabled"), UsageLimits: a.UsageLimits, RateLimits: a.RateLimits}
	}
	next.Workspaces = slices.Clone(next.Workspaces)
	if override {
		next.Workspaces = nil
	}
	byWorkspace, err := f.own(c, p, sent, spaces, bad)
	if err != nil {
		return nil, err
	}
	return p, p.makeDefaults(c, it, spaces, byWorkspace)
}

// within puts details below a path.
func within(path string, details []fault.Detail) []fault.Detail {
	for i := range details {
		details[i].Field = path + "." + details[i].Field
	}
	return details
}

// own sets the settings of the named workspaces. It returns the requested changes by workspace
// id; bad are faults found before.
func (f *family) own(c *admin.Call, p *plan, sent []admin.Values, spaces []resource.Row, bad []fault.Detail) (map[string]accessChange, error) {
	ids := make(map[string]string, 2*len(spaces))
	for n := range spaces {
		ids[spaces[n].Slug] = spaces[n].ID
	}
	for n := range spaces { // an id wins over a slug
		ids[spaces[n].ID] = spaces[n].ID
	}
	byWorkspace := make(map[string]accessChange, len(sent))
	for n, in := range sent {
		at := fmt.Sprintf("workspaces[%d]", n)
		id, ok := ids[in.Text("id")]
		if !ok {
			bad = append(bad, fault.Detail{Field: at + ".id", Message: "must name a workspace of the organization"})
			continue
		}
		if _, twice := byWorkspace[id]; twice {
			bad = append(bad, fault.Detail{Field: at + ".id", Message: "must not be listed twice"})
			continue
		}
		byWorkspace[id] = accessChange{in, at + ".default_provider_slug"}
		a := p.next.Access(id)
		a.UsageLimits, a.Enabled = slices.Clone(a.UsageLimits), in.Bool("enabled")
		bad = append(bad, within(at, f.access.Set(in, &a, c.Now))...)
		if in.Bool("reset_usage") && a.LastResetAt != nil {
			p.next.LastResetAt = a.LastResetAt
		}
		if in.Has("usage_limits") || in.Bool("reset_usage") {
			p.limited = append(p.limited, id)
		}
		if k := slices.IndexFunc(p.next.Workspaces, func(w provider.WorkspaceAccess) bool { return w.Workspace == id }); k >= 0 {
			p.next.Workspaces[k] = a
		} else {
			p.next.Workspaces = append(p.next.Workspaces, a)
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return nil, refused
	}
	return byWorkspace, nil
}

// accessChange is what an entry states about the default provider.
type accessChange struct {
	values admin.Values
	field  string // of its slug
}

// makeDefaults finds the workspaces that get access by the change and have no
// provider of the integration.
func (p *plan) makeDefaults(c *admin.Call, it item, spaces []resource.Row, byWorkspace map[string]accessChange) error {
	users, err := providersOf(c, it.Ref())
	if err != nil {
		return err
	}
	served := make(map[string]bool, len(users))
	for _, u := range users {
		served[u.Scope.Workspace] = true
	}
	for n := range spaces {
		id := spaces[n].ID
		create, d := true, provider.Default{Workspace: id, Actor: c.Actor()}
		for _, w := range []accessChange{{c.Body, "default_provider_slug"}, byWorkspace[id]} { // the entry's own words win
			if w.values.HasValue("create_default_provider") {
				create = w.values.Bool("create_default_provider")
			}
			if w.values.HasValue("default_provider_slug") {
				d.Slug, d.Field = w.values.Text("default_provider_slug"), w.field
			}
		}
		if !create || served[id] || it.Form.Access(id).Enabled || !p.next.Access(id).Enabled {
			continue
		}
		if err := free(c, d); err != nil {
			return err
		}
		p.defaults = append(p.defaults, d)
	}
	return nil
}

// free rejects a slug that is taken before anything is written.
func free(c *admin.Call, d provider.Default) error {
	if d.Slug == "" {
		return nil
	}
	sc := store.Scope{Org: c.Caller.Scope.Org, Workspace: d.Workspace}
	_, taken, err := c.Resources.Get(c.Context, sc, provider.KindProvider, d.Slug)
	if err == nil && taken {
		return provider.SlugConflict(d.Field, d.Slug)
	}
	return err
}

// perChange is how many providers one change makes or archives beside the
// integration, so that their rows fit into a transaction.
const perChange = 14

// delete archives the integration and the providers that call it. If there are more than
// fit into one change, the first ones are archived before; when one fails, the integration
// is still there, and the call can be repeated.
func (f *family) delete(c *admin.Call) (any, error) {
	return nil, admin.Rounds(c, func(tx *resource.Tx) (more bool, err error) {
		it, err := f.col.FindIn(c, tx)
		if err != nil {
			return false, err
		}
		users, err := c.Resources.Users(c.Context, it.Ref())
		if err != nil {
			return false, err
		}
		if slices.ContainsFunc(users, func(u resource.Ref) bool { return u.Kind != provider.KindProvider }) {
			return false, tx.RefuseIfUsed(it.Ref())
		}
		more = len(users) > perChange
		if err := retire(tx, it.Ref(), users[:min(perChange, len(users))]); err != nil || more {
			return more, err
		}
		it.UpdatedBy = c.Actor()
		return false, tx.ArchiveAndFreeSlug(it.Record)
	})
}

func retire(tx *resource.Tx, of resource.Ref, providers []resource.Ref) error {
	for _, ref := range providers {
		rec, ok, err := tx.Get(ref.Scope, ref.Kind, ref.ID)
		if err != nil {
			return err
		}
		if !ok || rec.Archived() {
			if err := tx.RemoveUse(of, ref); err != nil {
				return err
			}
			continue
		}
		if err := provider.Retire(tx, &rec); err != nil {
			return err
		}
	}
	return nil
}

// providersOf lists the providers that call an integration.
func providersOf(c *admin.Call, of resource.Ref) ([]resource.Ref, error) {
	users, err := c.Resources.Users(c.Context, of)
	return slices.DeleteFunc(users, func(u resource.Ref) bool { return u.Kind != provider.KindProvider }), err
}

package integrations

import (
	"encoding/json"
	"fmt"
	"slices"

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

// workspaceRoutes are the workspaces that an integration is open to.
func (f *family) workspaceRoutes() []admin.Route {
	const path = "/integrations/{slug}/workspaces"
	return []admin.Route{
		{Method: "GET", Path: path, Name: "listIntegrationWorkspaces", Doc: "List the workspaces of an integration with their limits.",
			Scopes: anyOf("read"), Where: admin.InEither, Query: workspacePaging.Fields(), Answer: workspacesSchema, Do: f.at("read", f.listWorkspaces)},
		{Method: "PUT", Path: path, Name: "updateIntegrationWorkspaces",
			Doc:    "Open an integration of the organisation to workspaces, close it, and set their limits.",
			Scopes: anyOf("update"), Where: admin.InEither, Role: admin.Manager, Action: audit.Manage, Resource: auditName,
			Body: workspaceFields(), BodyMode: admin.PartialBody, Answer: admin.Schema{"type": "object"}, Do: f.at("update", f.putWorkspaces)},
	}
}

func workspaceFields() []admin.Field {
	limits := []admin.Field{
		{Name: "enabled", Type: admin.Boolean, Required: true},
		{Name: "usage_limits", Doc: "At most one; null or [] clears.", Type: admin.Array, Check: usageLimits, Form: ledger.OnIntegration.UsageSchema()},
		{Name: "rate_limits", Doc: "At most one; null or [] clears.", Type: admin.Array, Check: rateLimits, Form: ledger.OnIntegration.RateSchema()},
	}
	create := admin.Field{Name: "create_default_provider", Doc: "Whether a workspace that gets access gets a provider too.", Type: admin.Boolean, Default: true}
	slug := admin.Field{Name: "default_provider_slug", Doc: "Slug of that provider.", Type: admin.String, Min: 1, Max: provider.MaxSlug, Pattern: admin.SlugPattern}
	entry := append([]admin.Field{{Name: "id", Doc: "Id or slug of the workspace.", Type: admin.String, Required: true, Min: 1, Max: 255}}, limits...)
	entry = append(entry, admin.Field{Name: "reset_usage", Doc: "true sets the usage back to nothing.", Type: admin.Boolean}, create, slug)
	return []admin.Field{
		{Name: "workspaces", Type: admin.Array, Max: maxWorkspaces, Of: &admin.Field{Type: admin.Object, Fields: entry}},
		{Name: "global_workspace_access", Doc: "What workspaces without settings of their own get, also those made later.", Type: admin.Object, Fields: limits},
		{Name: "override_existing_workspace_access", Doc: "Workspaces lose the settings of their own and follow the global ones.", Type: admin.Boolean},
		create, slug,
	}
}

var workspacesSchema = admin.ObjectSchema(map[string]admin.Schema{
	"total": {"type": "integer"}, "global_workspace_access": {"type": "object"},
	"workspaces": {"type": "array", "items": admin.ObjectSchema(map[string]admin.Schema{
		"id": {"type": "string"}, "enabled": {"type": "boolean"}, "usage_limits": {"type": []string{"array", "null"}},
		"rate_limits": {"type": []string{"array", "null"}}, "last_reset_at": {"type": []string{"string", "null"}, "format": "date-time"},
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
	rec, i, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	var all []namedAccess
	if rec.Scope.Workspace == "" {
		all = accessOf(i, spaces)
	} else if n := slices.IndexFunc(spaces, func(r resource.Row) bool { return r.ID == rec.Scope.Workspace }); n >= 0 {
		all = []namedAccess{{provider.WorkspaceAccess{Workspace: spaces[n].ID, Enabled: true}, spaces[n].Slug}}
	}
	entries, err := f.showAccess(c, &rec, admin.Cut(all, page))
	if err != nil {
		return nil, err
	}
	return map[string]any{"total": len(all), "workspaces": entries, "global_workspace_access": access(i.Global, c.Now)}, nil
}

// showAccess shows settings with what is used of their budgets.
func (f *family) showAccess(c *admin.Call, rec *resource.Record, part []namedAccess) ([]any, error) {
	entries := make([]any, len(part))
	var subjects []*ledger.Subject
	var at []map[string]any
	for n, a := range part {
		o := map[string]any{"id": a.slug, "enabled": a.Enabled, "usage_limits": nil, "rate_limits": nil, "last_reset_at": nil}
		entries[n] = o
		if len(a.RateLimits) > 0 {
			o["rate_limits"] = a.RateLimits
		}
		if a.LastResetAt != nil {
			o["last_reset_at"] = admin.FormatTime(*a.LastResetAt)
		}
		if len(a.UsageLimits) > 0 {
			subjects, at = append(subjects, subject(rec, a.WorkspaceAccess)), append(at, o)
		}
	}
	states, err := f.Ledger.States(c.Context, subjects)
	if err != nil {
		return nil, err
	}
	for n, o := range at {
		o["usage_limits"] = states[n]
		if t := states[n][0].LastResetAt; !t.IsZero() {
			o["last_reset_at"] = admin.FormatTime(t)
		}
	}
	return entries, nil
}

func subject(rec *resource.Record, a provider.WorkspaceAccess) *ledger.Subject {
	sc := store.Scope{Org: rec.Scope.Org, Workspace: a.Workspace}
	return provider.AccessSubject(sc, rec.ID, rec.Slug, rec.Rev, a)
}

// putWorkspaces changes who may use the integration, in one change. When more
// workspaces get a default provider than fit into it, providers are made in
// changes before: access opens with the last one, and closes with it.
func (f *family) putWorkspaces(c *admin.Call) (any, error) {
	for {
		more, err := f.stageMany(c)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	var rec resource.Record
	var p *plan
	err := c.Change(func(tx *resource.Tx) error {
		var i *provider.Integration
		var err error
		if rec, i, err = f.col.FindIn(c, tx); err != nil {
			return err
		}
		if p, err = f.plan(c, &rec, i); err != nil {
			return err
		}
		rec.UpdatedBy = actor(c)
		if err := save(tx, &rec, p.next); err != nil {
			return err
		}
		return stage(tx, &rec, i, p.defaults)
	})
	if err != nil {
		return nil, err
	}
	for _, id := range p.limited {
		if a := p.next.Access(id); len(a.UsageLimits) > 0 {
			// The next request brings the counters up to date as well.
			_ = f.Ledger.Apply(c.Context, subject(&rec, a))
		}
	}
	return nil, nil
}

// stageMany makes default providers while there are more than fit into the
// change that opens access.
func (f *family) stageMany(c *admin.Call) (more bool, err error) {
	rec, i, err := f.col.Find(c)
	if err != nil {
		return false, err
	}
	p, err := f.plan(c, &rec, i)
	if err != nil || len(p.defaults) <= perChange {
		return false, err
	}
	return true, c.Resources.Change(c.Context, c.Organisation(), func(tx *resource.Tx) error {
		rec, i, err := f.col.FindIn(c, tx)
		if err != nil {
			return err
		}
		p, err := f.plan(c, &rec, i)
		if err != nil {
			return err
		}
		if err := tx.Update(&rec); err != nil { // as it is: of two calls at a time one plans again
			return err
		}
		return stage(tx, &rec, i, p.defaults[:min(perChange, len(p.defaults))])
	})
}

func stage(tx *resource.Tx, rec *resource.Record, i *provider.Integration, defaults []provider.Default) error {
	for n := range defaults {
		if err := defaults[n].Stage(tx, rec, i); err != nil {
			return err
		}
	}
	return nil
}

// plan is what a change of the workspaces leads to.
type plan struct {
	next     *provider.Integration
	defaults []provider.Default // providers to make
	limited  []string           // workspaces whose budgets were named
}

// sentAccess is an entry of the body as it was sent; nil limits were not.
type sentAccess struct {
	ID      string          `json:"id"`
	Enabled bool            `json:"enabled"`
	Usage   json.RawMessage `json:"usage_limits"`
	Rates   json.RawMessage `json:"rate_limits"`
	Reset   bool            `json:"reset_usage"`
	Create  *bool           `json:"create_default_provider"`
	Slug    string          `json:"default_provider_slug"`
}

func (f *family) plan(c *admin.Call, rec *resource.Record, i *provider.Integration) (*plan, error) {
	if rec.Scope.Workspace != "" {
		return nil, fault.Invalid("workspaces", "cannot be set: the integration belongs to one workspace")
	}
	var sent []sentAccess
	if err := c.Body.Into("workspaces", &sent); err != nil {
		return nil, err
	}
	override := c.Body.Bool("override_existing_workspace_access")
	if len(sent) == 0 && !override && (c.Body.Has("workspaces") || !c.Body.Given("global_workspace_access")) {
		return nil, fault.Invalid("workspaces", "must have an entry; it may be empty with override_existing_workspace_access true")
	}
	spaces, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	next := *i
	p := &plan{next: &next}
	if err := p.global(c); err != nil {
		return nil, err
	}
	next.Workspaces = slices.Clone(next.Workspaces)
	if override {
		next.Workspaces = nil
	}
	asked, err := p.own(c, sent, spaces)
	if err != nil {
		return nil, err
	}
	return p, p.makeDefaults(c, rec, i, spaces, asked)
}

// global sets what workspaces without settings of their own get.
func (p *plan) global(c *admin.Call) error {
	if !c.Body.Given("global_workspace_access") {
		return nil
	}
	var sent sentAccess
	if err := c.Body.Into("global_workspace_access", &sent); err != nil {
		return err
	}
	was := p.next.Global
	a := provider.WorkspaceAccess{UsageLimits: was.UsageLimits, RateLimits: was.RateLimits}
	setLimits(c, &a, &sent)
	p.next.Global = provider.GlobalAccess{Enabled: sent.Enabled, UsageLimits: a.UsageLimits, RateLimits: a.RateLimits}
	return nil
}

// setLimits puts the limits that were sent in place of those in a. They were
// checked with the body.
func setLimits(c *admin.Call, a *provider.WorkspaceAccess, sent *sentAccess) {
	if sent.Usage != nil {
		fresh, _ := ledger.OnIntegration.UsageLimits(sent.Usage, "")
		for n := range fresh {
			var was *ledger.UsageLimit
			if k := slices.IndexFunc(a.UsageLimits, func(u ledger.UsageLimit) bool { return u.Type == fresh[n].Type }); k >= 0 {
				was = &a.UsageLimits[k]
			}
			fresh[n].Prepare(was, c.Now)
		}
		a.UsageLimits = fresh
	}
	if sent.Rates != nil {
		a.RateLimits, _ = ledger.OnIntegration.RateLimits(sent.Rates, "")
	}
	if sent.Reset && len(a.UsageLimits) > 0 {
		a.UsageLimits = slices.Clone(a.UsageLimits)
		for n := range a.UsageLimits {
			a.UsageLimits[n].ResetUsage(c.Now)
		}
		now := c.Now.UTC()
		a.LastResetAt = &now
	}
}

// own sets the settings of the named workspaces. It gives what was asked by
// workspace id.
func (p *plan) own(c *admin.Call, sent []sentAccess, spaces []resource.Row) (map[string]wish, error) {
	ids := make(map[string]string, 2*len(spaces))
	for n := range spaces {
		ids[spaces[n].Slug] = spaces[n].ID
	}
	for n := range spaces { // an id wins over a slug
		ids[spaces[n].ID] = spaces[n].ID
	}
	asked := make(map[string]wish, len(sent))
	var bad []fault.Detail
	for n := range sent {
		at := fmt.Sprintf("workspaces[%d]", n)
		id, ok := ids[sent[n].ID]
		if !ok {
			bad = append(bad, fault.Detail{Field: at + ".id", Message: "is no workspace of the organisation"})
			continue
		}
		if _, twice := asked[id]; twice {
			bad = append(bad, fault.Detail{Field: at + ".id", Message: "is named twice"})
			continue
		}
		asked[id] = wish{sent[n].Create, sent[n].Slug, at + ".default_provider_slug"}
		a := p.next.Access(id)
		a.Enabled = sent[n].Enabled
		setLimits(c, &a, &sent[n])
		if sent[n].Reset && a.LastResetAt != nil {
			p.next.LastResetAt = a.LastResetAt
		}
		if sent[n].Usage != nil || sent[n].Reset {
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
	return asked, nil
}

// wish is what an entry says about the default provider.
type wish struct {
	create *bool
	slug   string
	field  string // of the slug
}

// makeDefaults finds the workspaces that get access by the change and have no
// provider of the integration.
func (p *plan) makeDefaults(c *admin.Call, rec *resource.Record, was *provider.Integration, spaces []resource.Row, asked map[string]wish) error {
	users, err := providersOf(c, rec.Ref())
	if err != nil {
		return err
	}
	served := make(map[string]bool, len(users))
	for _, u := range users {
		served[u.Scope.Workspace] = true
	}
	slug := c.Body.Text("default_provider_slug")
	create := !c.Body.Given("create_default_provider") || c.Body.Bool("create_default_provider")
	for n := range spaces {
		id := spaces[n].ID
		w := asked[id]
		if w.create == nil {
			w.create = &create
		}
		if w.slug == "" {
			w.slug, w.field = slug, "default_provider_slug"
		}
		if !*w.create || served[id] || was.Access(id).Enabled || !p.next.Access(id).Enabled {
			continue
		}
		if err := free(c, id, w); err != nil {
			return err
		}
		p.defaults = append(p.defaults, provider.Default{Workspace: id, Slug: w.slug, Field: w.field, Actor: actor(c)})
	}
	return nil
}

// free refuses a slug that is taken before anything is written.
func free(c *admin.Call, workspace string, w wish) error {
	if w.slug == "" {
		return nil
	}
	sc := store.Scope{Org: c.Caller.Scope.Org, Workspace: workspace}
	_, taken, err := c.Resources.Get(c.Context, sc, provider.KindProvider, w.slug)
	if err == nil && taken {
		return provider.SlugTaken(w.field, w.slug)
	}
	return err
}

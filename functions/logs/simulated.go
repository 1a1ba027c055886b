package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/pricing"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/route/replay"
	"gateway/shared/route/saved"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage/report"
)

// question reads the changes to simulate. All faults are reported together.
func (f *family) question(c *admin.Call, sc store.Scope, filter *report.Filter) (q replay.Changes, m *means, err error) {
	view, err := resource.NewLoader(c.Resources).Fresh(c.Context, sc.Org)
	if err != nil {
		return q, nil, err
	}
	book := f.Prices
	if book == nil {
		book = pricing.Default()
	}
	m = &means{book: book.Current(), view: view, org: sc.Org, now: c.Now, saved: map[[2]string]*saved.Provider{}, prices: map[string]*pricing.Overrides{}}
	bad := unknown(c)
	if raw := c.Body.Raw("prices"); isSet(raw) {
		in, _ := c.Body.Object("prices")
		p, wrong := replay.ParsePrices(in.Raw("models"), in.Raw("multipliers"))
		q.Prices, bad = p, append(bad, details(wrong, "prices")...)
	}
	for _, name := range [...]string{"rate_limits", "usage_limits"} {
		for i, raw := range items(c, name) {
			l, wrong := replay.ParseLimit(raw, entryOf(name, i), name == "rate_limits")
			if bad = append(bad, details(wrong, entryOf(name, i))...); l != nil {
				l.Begin(filter.From)
				q.Limits = append(q.Limits, l)
			}
		}
	}
	wrong, err := f.config(c, sc, view, &q)
	if err != nil {
		return q, nil, err
	}
	bad = append(bad, wrong...)
	if wrong, err = f.checks(c, sc, view, &q); err != nil {
		return q, nil, err
	}
	if refused := fault.Invalids(append(bad, wrong...)); refused != nil {
		return q, nil, refused
	}
	return q, m, nil
}

// unknown names fields of the body that mean nothing. A misspelled change would otherwise
// look like one that changes nothing.
func unknown(c *admin.Call) (bad []fault.Detail) {
	var sent map[string]json.RawMessage
	_ = json.Unmarshal(c.Raw(), &sent) // it has been read
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		known := name == "workspace_id" || name == "organisation_id" || slices.ContainsFunc(c.Route.Body, func(f admin.Field) bool { return f.Name == name })
		if !known {
			bad = append(bad, fault.Detail{Field: fault.Clip(name, 100), Message: "is not known here"})
		}
	}
	return bad
}

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// needsWorkspace is the fault for a saved resource that is named without its workspace.
func needsWorkspace(field string) *fault.Fault {
	return fault.Invalid(field, "refers to a resource of a workspace: with an organization key, send workspace_id, its id or slug")
}

// config reads the config of the question.
func (f *family) config(c *admin.Call, sc store.Scope, view *resource.View, q *replay.Changes) ([]fault.Detail, error) {
	raw := bytes.TrimSpace(c.Body.Raw("config"))
	if !isSet(raw) {
		return nil, nil
	}
	var slug string
	if json.Unmarshal(raw, &slug) != nil {
		cfg, bad := route.Parse(raw, route.Strict)
		if len(bad) > 0 {
			return details(bad, "config"), nil
		}
		tree, bad := cfg.Compile()
		q.Config = &replay.Config{Tree: tree}
		return details(bad, "config"), nil
	}
	if !c.Caller.HasAny([]string{"configs.read", "completions.write"}) {
		return nil, admin.Denied()
	}
	if sc.Workspace == "" {
		return nil, needsWorkspace("config")
	}
	found, ok, err := saved.LoadConfig(c.Context, view, sc, slug)
	if err != nil {
		return nil, err
	}
	if !ok || found.Record.Archived() {
		return []fault.Detail{{Field: "config", Message: "is not the slug of a config of this workspace"}}, nil
	}
	// Its sealed credentials do not matter: nothing is sent.
	cfg, bad := route.ParseSaved(found.Record.Body)
	if len(bad) > 0 {
		return details(bad, "config"), nil
	}
	tree, bad := cfg.Compile()
	q.Config = &replay.Config{Tree: tree, Slug: found.Record.Slug, ID: found.Record.ID, Version: found.Record.Version}
	return details(bad, "config"), nil
}

// checks reads the guardrails of the question.
func (f *family) checks(c *admin.Call, sc store.Scope, view *resource.View, q *replay.Changes) (bad []fault.Detail, err error) {
	q.Checks = replay.NewChecks(func() time.Time { return c.Now })
	for _, name := range [...]string{"input_guardrails", "output_guardrails"} {
		phase := guard.Before
		if name == "output_guardrails" {
			phase = guard.After
		}
		for i, raw := range items(c, name) {
			at := entryOf(name, i)
			var slug string
			if json.Unmarshal(raw, &slug) != nil {
				wrong := guard.CheckHook(raw, nil)
				if bad = append(bad, details(wrong, at)...); len(wrong) == 0 {
					q.Checks.Add(at, q.Checks.Kit().Prepare(guard.ReadHook(raw, phase == guard.Before, false)), phase)
				}
				continue
			}
			if !c.Caller.HasAny([]string{"guardrails.read", "completions.write"}) {
				return nil, admin.Denied()
			}
			if sc.Workspace == "" {
				return nil, needsWorkspace(at)
			}
			h, err := f.guardrail(c, sc, view, slug)
			if err != nil {
				return nil, err
			}
			if h == nil {
				bad = append(bad, fault.Detail{Field: at, Message: "is not the slug of a guardrail of this workspace or its organisation"})
				continue
			}
			q.Checks.Add(slug, q.Checks.Kit().Prepare(h), phase)
		}
	}
	return bad, nil
}

// guardrail finds a saved guardrail; nil: there is none. Its checks are sealed if one of
// them holds a credential and so would ask an outside service; such checks are used in
// their masked form.
func (f *family) guardrail(c *admin.Call, sc store.Scope, view *resource.View, slug string) (*guard.Hook, error) {
	for _, in := range [...]store.Scope{sc, sc.Organisation()} {
		g, ok, err := resource.Load(c.Context, view, in, guard.KindGuardrail, strings.TrimPrefix(slug, "@"), func(rec resource.Record) (*guard.Saved, error) {
			return guard.Decode(rec, map[string][]byte{guard.SealedChecks: shown(rec.Body)})
		})
		if err != nil {
			return nil, err
		}
		if ok && g.Status != resource.StatusArchived {
			return g.HookOf(), nil
		}
	}
	return nil, nil
}

// shown are the checks of a guardrail as its body has them, with secrets masked.
func shown(body []byte) []byte {
	var g struct {
		Checks json.RawMessage `json:"checks"`
	}
	if json.Unmarshal(body, &g) != nil || len(g.Checks) == 0 {
		return []byte("[]")
	}
	return g.Checks
}

// means find saved providers and prices as they are now.
type means struct {
	view   *resource.View
	org    string
	now    time.Time
	saved  map[[2]string]*saved.Provider // by workspace and name; nil: there is none
	book   *pricing.Book                 // as it is now
	prices map[string]*pricing.Overrides // of the organization, by workspace
}

func (m *means) provider(ctx context.Context, workspace, name string) (*saved.Provider, error) {
	key := [2]string{workspace, name}
	if p, known := m.saved[key]; known {
		return p, nil
	}
	p, err := saved.Load(ctx, m.view, store.Scope{Org: m.org, Workspace: workspace}, name, m.now)
	if err != nil && fault.From(err).Status() >= 500 {
		return nil, err
	}
	if err != nil {
		p = nil
	}
	m.saved[key] = p
	return p, nil
}

// Saved finds a saved provider of a workspace.
func (m *means) Saved(ctx context.Context, workspace, name string) (slug, provider string, ok bool, err error) {
	p, err := m.provider(ctx, workspace, name)
	if err != nil || p == nil || p.Provider == nil {
		return "", "", false, err
	}
	return p.Slug, p.Provider.ID, true, nil
}

// Price is what a target charges.
func (m *means) Price(ctx context.Context, workspace string, of replay.Target, o pricing.Options) (pricing.Price, bool, error) {
	by, known := m.prices[workspace]
	if !known {
		org, err := tenant.LoadSettings(ctx, m.view, store.Scope{Org: m.org, Workspace: workspace})
		if err != nil {
			return pricing.Price{}, false, err
		}
		by = org.Prices()
		m.prices[workspace] = by
	}
	at := saved.Prices{List: m.book, By: by, Of: of.Provider}
	if of.Slug != "" {
		p, err := m.provider(ctx, workspace, of.Slug)
		if err != nil {
			return pricing.Price{}, false, err
		}
		at.Saved = p
	}
	_, price, ok := at.Find(of.Model, o)
	return price, ok, nil
}

// kindView is the resource kind of saved views.
const kindView resource.Kind = "VIEW"

// maxViews is how many saved views a workspace has.
const maxViews = 200

// view is the stored form of a saved view: filters of a page that lists logs or analytics.
type view struct {
	Page  string `json:"page" enum:"logs,analytics"`
	Query string `json:"query" max:"4096"`
}

// views are the saved views of a workspace. All who may read logs or analytics there see them;
// who made one, and managers, change it.
func views() *admin.Collection[view] {
	return &admin.Collection[view]{
		Kind: kindView, Object: "view", Path: "/views", UUIDOnly: true,
		Scopes: func(string) []string { return []string{"logs.list", "analytics.view"} }, Resource: "views",
		Level: admin.InWorkspace, WriteRole: admin.Member,
		List: admin.List{Search: true},
		Fields: []admin.Field{
			admin.NameField(100),
			{Name: "page", Required: true, Listed: true, Doc: "The page that the view belongs to."},
			{Name: "query", Required: true, Doc: "Query string of GET /logs or of analytics, without the question mark.", Example: "ai_model=gpt-4o&status_code=429"},
		},
		Check: func(_ *admin.Call, ch *admin.Change[view]) []fault.Detail {
			if _, err := url.ParseQuery(ch.Form.Query); err != nil {
				return []fault.Detail{{Field: "query", Message: "must be a query string, such as ai_model=gpt-4o&status_code=429"}}
			}
			return nil
		},
		Before: func(c *admin.Call, _ *resource.Tx, ch *admin.Change[view]) error {
			if !ch.Creates() {
				return ownView(c, ch.Rec)
			}
			rows, err := c.Resources.List(c.Context, c.Scope, kindView)
			if err == nil && len(rows) >= maxViews {
				err = fault.New(fault.QuotaReached, "", fmt.Sprintf("A workspace has at most %d saved views; delete one first", maxViews))
			}
			return err
		},
		Retire: func(c *admin.Call, _ *resource.Tx, it admin.Item[view]) error { return ownView(c, it.Record) },
	}
}

// ownView rejects callers who may not change a view.
func ownView(c *admin.Call, rec *resource.Record) error {
	if rec.CreatedBy == c.Actor() || c.Caller.AtLeast(admin.Manager) {
		return nil
	}
	return fault.New(fault.NotAllowed, "", "Only the creator of a view and managers of the workspace can change it")
}

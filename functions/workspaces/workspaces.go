// Package workspaces is the family of workspaces: create, list, read, change and
// delete, which archives.
package workspaces

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// kindGuardrail is the kind of guardrails, of the workspace or the organisation.
const kindGuardrail resource.Kind = "GUARDRAIL"

// Deps is what the family works with.
type Deps struct {
	Ledger *ledger.Ledger
	// Dependants are the kinds, beside providers and configs, that keep a
	// workspace from being deleted without force.
	Dependants []resource.Kind
}

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d}
	f.describe()
	routes := f.workspaces.Routes()
	for i := range routes {
		if routes[i].Method == "POST" {
			routes[i].Where, routes[i].Role = admin.InOrganisation, admin.Admin
		}
	}
	return admin.Family{Name: "workspaces", Doc: "Workspaces: the units of isolation.", Routes: append(routes, f.deleteRoute())}
}

type family struct {
	Deps
	workspaces admin.Collection[tenant.Workspace]
}

func (f *family) describe() {
	f.workspaces = admin.Collection[tenant.Workspace]{
		Kind: tenant.KindWorkspace, Object: "workspace", Path: "/admin/workspaces", Aliases: []string{"/workspaces"},
		Scope: "workspaces", Where: admin.Shared, WriteRole: admin.Admin, Missing: fault.NotAllowed,
		Slugs: &admin.Slugs{Prefix: "ws-"}, Without: []string{"delete"},
		Visible: func(c *admin.Call, id string) bool {
			return c.Caller.OfOrganisation() || c.Caller.Scope.Workspace == id
		},
		List:       admin.List{Status: true, Query: listQuery, Match: matches, Brief: brief},
		ReadQuery:  []admin.Field{{Name: "name_format", Type: admin.String, Enum: []string{"display", "plain"}, Default: "display", Doc: "display puts the icon before the name."}},
		Fields:     fields(),
		ExtraShown: shown,
		Check: func(_ *admin.Call, rec *resource.Record, w *tenant.Workspace) []fault.Detail {
			return w.Validate(rec.Name)
		},
		BeforeCreate: func(c *admin.Call, tx *resource.Tx, rec *resource.Record, w *tenant.Workspace) error {
			return f.prepare(c, tx, rec, nil, w)
		},
		AfterCreate: openDefaults,
		BeforeUpdate: func(c *admin.Call, tx *resource.Tx, _, rec *resource.Record, was, w *tenant.Workspace) error {
			return f.prepare(c, tx, rec, was, w)
		},
		Committed: f.applyLimits,
		Render:    render,
		Decorate:  f.addUsage,
		Created: func(c *admin.Call, rec *resource.Record, w *tenant.Workspace) (any, error) {
			obj, err := render(c, rec, w)
			if err != nil {
				return nil, err
			}
			return obj, f.addUsage(c, []resource.Record{*rec}, []map[string]any{obj})
		},
	}
	f.workspaces.CreatedSchema = f.workspaces.Shown()
}

var listQuery = []admin.Field{
	{Name: "name", Type: admin.String, Max: tenant.MaxName, Doc: "Part of the name; case counts."},
	{Name: "exact_name", Type: admin.String, Max: tenant.MaxName, Doc: "The whole name."},
}

func matches(c *admin.Call, row *resource.Row) bool {
	return (!c.Query.Given("name") || strings.Contains(row.Name, c.Query.Text("name"))) &&
		(!c.Query.Given("exact_name") || row.Name == c.Query.Text("exact_name"))
}

func fields() []admin.Field {
	text := &admin.Field{Type: admin.String, Min: 1, Max: 255}
	return []admin.Field{
		{Name: "name", Type: admin.String, Required: true, Min: 1, Max: tenant.MaxName, Column: true},
		{Name: "description", Type: admin.String, Max: tenant.MaxDescription},
		{Name: "icon", Type: admin.String, Max: tenant.MaxIcon, Doc: "An emoji; empty removes it."},
		{Name: "defaults", Type: admin.Object, Merge: true, Open: true, Doc: "What applies to every request of the workspace.", Fields: []admin.Field{
			{Name: "metadata", Type: admin.Map, Max: tenant.MaxMetadata, Of: &admin.Field{Type: admin.String, Max: tenant.MaxMetaValue}},
			{Name: "input_guardrails", Type: admin.Array, Max: 100, Of: text},
			{Name: "output_guardrails", Type: admin.Array, Max: 100, Of: text},
			{Name: "user_api_key_config", Type: admin.String, Max: 255, Doc: "Config, by id or slug, of keys that have none."},
		}},
		{Name: "usage_limits", Type: admin.Array, Convert: convert(ledger.OnWorkspace.UsageLimits), Form: ledger.OnWorkspace.UsageSchema()},
		{Name: "rate_limits", Type: admin.Array, Convert: convert(ledger.OnWorkspace.RateLimits), Form: ledger.OnWorkspace.RateSchema()},
		{Name: "reset_usage", Doc: "true sets the usage of all budgets back to nothing.", Type: admin.Boolean, Trigger: true, UpdateOnly: true},
	}
}

// convert reads limits as clients send them and gives them as they are stored.
func convert[T any](read func(raw []byte, path string) ([]T, []fault.Detail)) func(json.RawMessage) (json.RawMessage, []fault.Detail) {
	return func(raw json.RawMessage) (json.RawMessage, []fault.Detail) {
		limits, bad := read(raw, "")
		if len(bad) > 0 {
			return nil, bad
		}
		out, err := json.Marshal(limits)
		if err != nil {
			return nil, []fault.Detail{{Message: "cannot be stored"}}
		}
		return out, nil
	}
}

// prepare settles what the fields alone cannot: dates of limits and what the
// defaults refer to. was is nil for a new workspace.
func (f *family) prepare(c *admin.Call, tx *resource.Tx, rec *resource.Record, was, w *tenant.Workspace) error {
	if was == nil {
		was = &tenant.Workspace{}
	}
	if c.Body.Given("usage_limits") {
		for i := range w.UsageLimits {
			w.UsageLimits[i].Prepare(limitOf(was.UsageLimits, w.UsageLimits[i].Type), c.Now)
		}
	}
	if c.Body.Bool("reset_usage") {
		for i := range w.UsageLimits {
			w.UsageLimits[i].ResetUsage(c.Now)
		}
	}
	var bad []fault.Detail
	for _, list := range []struct {
		field    string
		was, now []string
	}{
		{"defaults.input_guardrails", was.Defaults.InputGuardrails, w.Defaults.InputGuardrails},
		{"defaults.output_guardrails", was.Defaults.OutputGuardrails, w.Defaults.OutputGuardrails},
	} {
		missing, err := missingGuardrails(tx, rec, list.field, list.was, list.now)
		if err != nil {
			return err
		}
		bad = append(bad, missing...)
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return useConfig(tx, rec, was.Defaults.UserAPIKeyConfig, w)
}

func limitOf(limits []ledger.UsageLimit, t ledger.Measure) *ledger.UsageLimit {
	for i := range limits {
		if limits[i].Type == t {
			return &limits[i]
		}
	}
	return nil
}

// missingGuardrails are the new entries of a list that name no guardrail of the
// workspace or the organisation.
func missingGuardrails(tx *resource.Tx, rec *resource.Record, field string, was, now []string) ([]fault.Detail, error) {
	var bad []fault.Detail
	for i, ref := range now {
		if slices.Contains(was, ref) {
			continue
		}
		found := false
		for _, sc := range []store.Scope{inside(rec), rec.Scope} {
			g, ok, err := tx.Get(sc, kindGuardrail, ref)
			if err != nil {
				return nil, err
			}
			found = found || (ok && !g.Archived())
		}
		if !found {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("%s[%d]", field, i), Message: "is no guardrail of the workspace or the organisation"})
		}
	}
	return bad, nil
}

// inside is the scope of what belongs to a workspace.
func inside(rec *resource.Record) store.Scope {
	return store.Scope{Org: rec.Scope.Org, Workspace: rec.ID}
}

// useConfig makes sure that the default config is one of the workspace, keeps
// it by its slug, and keeps it from being deleted.
func useConfig(tx *resource.Tx, rec *resource.Record, was string, w *tenant.Workspace) error {
	ref := w.Defaults.UserAPIKeyConfig
	if ref == was {
		return nil
	}
	if was != "" {
		old, ok, err := tx.Get(inside(rec), route.KindConfig, was)
		if err != nil {
			return err
		}
		if ok {
			if err := tx.Unuse(old.Ref(), rec.Ref()); err != nil {
				return err
			}
		}
	}
	if ref == "" {
		return nil
	}
	cfg, ok, err := tx.Get(inside(rec), route.KindConfig, ref)
	if err != nil {
		return err
	}
	if !ok || cfg.Archived() {
		return fault.Invalid("defaults.user_api_key_config", "is no config of the workspace")
	}
	w.Defaults.UserAPIKeyConfig = cfg.Slug
	return tx.Use(cfg.Ref(), rec.Ref())
}

// applyLimits makes changed limits count from now on.
func (f *family) applyLimits(c *admin.Call, _, rec *resource.Record) {
	if rec == nil || f.Ledger == nil || (!c.Body.Has("usage_limits") && !c.Body.Has("reset_usage")) {
		return
	}
	var w tenant.Workspace
	if json.Unmarshal(rec.Body, &w) != nil {
		return
	}
	if s := tenant.WorkspaceSubject(inside(rec), rec.Name, rec.Rev, &w); s != nil {
		// The next request brings the counters up to date as well.
		_ = f.Ledger.Apply(c.Context, s)
	}
}

var shown = []admin.Field{
	{Name: "is_default", Type: admin.Integer, Max: 1},
	{Name: "last_reset_at", Type: admin.Timestamp},
}

func render(c *admin.Call, rec *resource.Record, w *tenant.Workspace) (map[string]any, error) {
	isDefault := 0
	if w.IsDefault {
		isDefault = 1
	}
	name := rec.Name
	if w.Icon != "" && c.Route.Name == "getWorkspace" && c.Query.Text("name_format") != "plain" {
		name = w.Icon + " " + name
	}
	return map[string]any{
		"id": rec.ID, "slug": rec.Slug, "name": name, "icon": w.Icon, "description": w.Description, "status": rec.Status,
		"organisation_id": rec.Scope.Org, "created_at": admin.FormatTime(rec.Created), "last_updated_at": admin.FormatTime(rec.Updated),
		"is_default": isDefault, "last_reset_at": nil, "object": "workspace",
		"defaults": map[string]any{
			"metadata": orEmptyMap(w.Defaults.Metadata), "input_guardrails": orEmpty(w.Defaults.InputGuardrails),
			"output_guardrails": orEmpty(w.Defaults.OutputGuardrails), "user_api_key_config": orNull(w.Defaults.UserAPIKeyConfig),
			"is_default": isDefault, "object": "workspace",
		},
		"usage_limits": []ledger.BudgetState{}, "rate_limits": orEmpty(w.RateLimits),
	}, nil
}

// brief is an entry of the list, which names a workspace by its slug.
func brief(o map[string]any) map[string]any {
	o["id"] = o["slug"]
	return o
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func orEmptyMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// addUsage shows each budget with what is used of it.
func (f *family) addUsage(c *admin.Call, recs []resource.Record, objects []map[string]any) error {
	var subjects []*ledger.Subject
	var at []int
	for i := range recs {
		var w tenant.Workspace
		if err := json.Unmarshal(recs[i].Body, &w); err != nil {
			return fmt.Errorf("workspaces: stored %s: %w", recs[i].ID, err)
		}
		if len(w.UsageLimits) > 0 {
			subjects = append(subjects, tenant.WorkspaceSubject(inside(&recs[i]), recs[i].Name, recs[i].Rev, &w))
			at = append(at, i)
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	states, err := f.Ledger.States(c.Context, subjects)
	if err != nil {
		return err
	}
	for n, i := range at {
		objects[i]["usage_limits"] = states[n]
		var last time.Time
		for _, s := range states[n] {
			if s.LastResetAt.After(last) {
				last = s.LastResetAt
			}
		}
		objects[i]["last_reset_at"] = admin.FormatTime(last)
	}
	return nil
}

package policies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Bounds of one listing of limits. What is beyond them is not ranked.
const (
	maxWorkspaces = 100
	maxHolders    = 1000 // resources of a kind
	maxPolicies   = 100
	maxCounters   = 1000 // of a policy
	defaultTop    = 10
	maxTop        = 100
	readers       = 8 // policies that are read at a time

	// counted is how long the counters of a policy are taken as they were read, and
	// maxCounted of how many policies.
	counted    = 5 * time.Second
	maxCounted = 1000
)

var limitSchema = admin.Closed(map[string]admin.Schema{
	"object": {"type": "string", "const": "limit"},
	"kind":   {"type": "string", "enum": []string{ledger.Key, ledger.Workspace, ledger.Policy, ledger.Integration, ledger.Provider}, "description": "What has the limit."},
	"id":     {"type": "string"}, "name": {"type": []string{"string", "null"}}, "workspace_id": {"type": []string{"string", "null"}, "description": "null for a key of the organization."},
	"value_key": {"type": []string{"string", "null"}, "description": "The counter of a policy; null for others."},
	"type":      {"type": "string", "enum": []string{string(ledger.Cost), string(ledger.Tokens), string(ledger.Requests)}}, "credit_limit": inUnit, "current_usage": inUnit, "reserved_usage": inUnit, "available": inUnit,
	"used_share":    {"type": "number", "description": "Settled and reserved usage divided by the limit with its temporary raise; 1 is the whole limit."},
	"status":        {"type": "string", "enum": []string{ledger.Active, ledger.Exhausted}},
	"next_reset_at": {"type": []string{"string", "null"}, "format": "date-time"}, "is_threshold_alerts_sent": {"type": "boolean"}, "is_exhausted_alerts_sent": {"type": "boolean"},
})

// limitsRoute lists the budgets of everything in a workspace, by the share that is used.
func (f *family) limitsRoute() admin.Route {
	answer := admin.ListSchema(limitSchema)
	answer["properties"].(map[string]admin.Schema)["total_is_lower_bound"] = admin.Schema{"type": "boolean", "description": "There are more limits than were compared: at most 100 workspaces, 1,000 resources of a kind, and 1,000 counters of each of 100 policies."}
	return admin.Route{
		Method: "GET", Path: "/policies/limits", Name: "listLimits", Scopes: []string{"policies.list"}, Resource: "policies", Level: admin.InWorkspace, OrgKeyWithoutWorkspace: true, Response: answer,
		Doc: "List the budgets of a workspace, its keys, providers, integrations and policies that the caller may list, closest to their end first. Without a workspace, of all workspaces of the organization. Counters of policies may be 5 seconds old.",
		Query: []admin.Field{
			{Name: "page_size", Type: admin.Integer, Min: 1, Max: maxTop, Default: defaultTop, Doc: "Maximum number of entries; there is one page."},
			{Name: "kind", Type: admin.String, Enum: []string{ledger.Key, ledger.Workspace, ledger.Policy, ledger.Integration, ledger.Provider}, Doc: "Only the limits of this kind."},
		},
		Do: f.limits,
	}
}

// subjectBudget is a budget with the subject that has it.
type subjectBudget struct {
	of    *ledger.Subject
	state ledger.BudgetState
}

// share is the part of a budget that is settled or reserved.
func (h *subjectBudget) share() float64 {
	limit := h.state.Limit.CreditLimit + h.state.Raised
	if limit <= 0 {
		return 1
	}
	return float64(h.state.Usage+h.state.Reserved) / float64(limit)
}

func (h *subjectBudget) show() admin.Members {
	s, unit := &h.state, h.state.Limit.Type
	return admin.Members{
		"object": "limit", "kind": h.of.Kind, "id": h.of.ID, "name": admin.OrNull(h.of.Label), "workspace_id": admin.OrNull(h.of.Scope.Workspace), "value_key": admin.OrNull(h.of.Bucket),
		"type": string(unit), "credit_limit": unit.Amount(s.Limit.CreditLimit), "current_usage": unit.Amount(s.Usage), "reserved_usage": unit.Amount(s.Reserved), "available": unit.Amount(s.Available()),
		"used_share": math.Round(h.share()*1e4) / 1e4, "status": s.Status, "next_reset_at": admin.FormatTime(s.NextResetAt),
		"is_threshold_alerts_sent": s.ThresholdAlert, "is_exhausted_alerts_sent": s.ExhaustedAlert,
	}
}

// holder is a kind of resource that has budgets: the scopes of which a caller needs one to see
// them, where they are, and the subject of one in a scope, nil if it has no limits there.
type holder struct {
	kind    ledger.Kind
	scopes  []string
	stored  resource.Kind
	in      []store.Scope
	subject func(resource.Record) ([]*ledger.Subject, error)
	may     func(*resource.Row) bool // nil: all
}

// listsKeys returns the scope that lists keys of a type.
func listsKeys(of identity.KeyType) string { return of.ScopeFamily() + ".list" }

// holders are the kinds other than policies, in workspaces.
func holders(c *admin.Call, in []store.Scope) []holder {
	org, keys := []store.Scope{c.Organisation()}, in
	if c.Scope.Workspace == "" {
		keys = slices.Concat(org, in)
	}
	access := func(rec resource.Record) (out []*ledger.Subject, err error) {
		i, err := provider.DecodeIntegration(rec)
		if err != nil {
			return nil, err
		}
		for _, sc := range in {
			if (rec.Scope.Workspace == "" || rec.Scope == sc) && i.OpenTo(&rec, sc.Workspace) {
				out = append(out, provider.AccessSubject(sc, rec.ID, rec.Slug, rec.Rev, i.Access(sc.Workspace)))
			}
		}
		return out, nil
	}
	return []holder{
		{ledger.Key, []string{listsKeys(identity.WorkspaceService), listsKeys(identity.WorkspaceUser), listsKeys(identity.OrganisationService)}, identity.KindKey, keys, func(rec resource.Record) ([]*ledger.Subject, error) {
			var k identity.Key
			if err := json.Unmarshal(rec.Body, &k); err != nil || k.UsageLimits == nil {
				return nil, err
			}
			return []*ledger.Subject{identity.SubjectOf(rec.Scope, rec.ID, rec.Name, rec.Rev, k.RateLimits, k.UsageLimits)}, nil
		}, func(row *resource.Row) bool { // as the list of keys does
			return c.Caller.HasAny([]string{listsKeys(identity.KeyType(row.Fields["type"]))}) && c.Caller.MayAccessKeysOf(row.Fields["user"])
		}},
		{ledger.Workspace, []string{"workspaces.list", "workspaces.read"}, tenant.KindWorkspace, org, func(rec resource.Record) ([]*ledger.Subject, error) {
			w, err := tenant.ReadWorkspace(rec)
			if err != nil {
				return nil, err
			}
			return []*ledger.Subject{tenant.WorkspaceSubject(store.Scope{Org: rec.Scope.Org, Workspace: rec.ID}, rec.Name, rec.Rev, w)}, nil
		}, func(row *resource.Row) bool {
			return slices.Contains(in, store.Scope{Org: c.Scope.Org, Workspace: row.ID})
		}},
		{ledger.Provider, []string{"providers.list", "virtual_keys.list"}, provider.KindProvider, in, func(rec resource.Record) ([]*ledger.Subject, error) {
			i, err := provider.DecodeInstance(rec)
			if err != nil {
				return nil, err
			}
			return []*ledger.Subject{provider.InstanceSubject(rec.Scope, rec.ID, rec.Slug, rec.Rev, i)}, nil
		}, nil},
		{ledger.Integration, []string{"workspace_integrations.list"}, provider.KindIntegration, in, access, nil},
		{ledger.Integration, []string{"organisation_integrations.list"}, provider.KindIntegration, org, access, nil},
	}
}

func (f *family) limits(c *admin.Call) (any, error) {
	in, err := admin.WorkspaceScopes(c)
	if err != nil {
		return nil, err
	}
	only, whole := c.Query.Text("kind"), len(in) <= maxWorkspaces
	in = in[:min(len(in), maxWorkspaces)]
	var subjects []*ledger.Subject
	for _, h := range holders(c, in) {
		if only != "" && only != h.kind || !c.Caller.HasAny(h.scopes) {
			continue
		}
		all := true
		if subjects, all, err = h.collect(c, subjects); err != nil {
			return nil, err
		}
		whole = whole && all
	}
	states, err := f.ledger.States(c.Context, subjects)
	if err != nil {
		return nil, err
	}
	var found []subjectBudget
	for i, budgets := range states {
		for _, b := range budgets {
			found = append(found, subjectBudget{subjects[i], b})
		}
	}
	if only == "" || only == ledger.Policy {
		counters, all, err := f.counters(c, in)
		if err != nil {
			return nil, err
		}
		found, whole = append(found, counters...), whole && all
	}
	slices.SortStableFunc(found, func(a, b subjectBudget) int {
		return cmp.Or(cmp.Compare(b.share(), a.share()), cmp.Compare(a.of.Kind, b.of.Kind), cmp.Compare(a.of.ID, b.of.ID), cmp.Compare(a.of.Bucket, b.of.Bucket))
	})
	size := defaultTop
	if c.Query.HasValue("page_size") {
		size = int(c.Query.Int("page_size"))
	}
	shown := []any{}
	for i := range found[:min(size, len(found))] {
		shown = append(shown, found[i].show())
	}
	out := admin.Members{"object": "list", "total": len(found), "data": shown}
	if !whole {
		out["total_is_lower_bound"] = true
	}
	return out, nil
}

// records reads those records of a kind that may lets pass, at most as many as most; whole is false
// if there are more.
func records(c *admin.Call, in []store.Scope, kind resource.Kind, most int, may func(*resource.Row) bool) (out []resource.Record, whole bool, err error) {
	lists, err := c.Resources.ListMany(c.Context, in, kind, false)
	if err != nil {
		return nil, false, err
	}
	whole = true
	for n, rows := range lists {
		var ids []string
		for i := range rows {
			if may == nil || may(&rows[i]) {
				ids = append(ids, rows[i].ID)
			}
		}
		if left := most - len(out); len(ids) > left {
			whole, ids = false, ids[:left]
		}
		some, err := c.Resources.GetMany(c.Context, in[n], kind, ids)
		if err != nil {
			return nil, false, err
		}
		out = append(out, some...)
	}
	return out, whole, nil
}

// collect adds the subjects with budgets.
func (h *holder) collect(c *admin.Call, to []*ledger.Subject) (out []*ledger.Subject, whole bool, err error) {
	found, whole, err := records(c, h.in, h.stored, maxHolders, h.may)
	if err != nil {
		return nil, false, err
	}
	for _, rec := range found {
		subjects, err := h.subject(rec)
		if err != nil {
			return nil, false, err
		}
		for _, s := range subjects {
			if s != nil && len(s.Budgets) > 0 {
				to = append(to, s)
			}
		}
	}
	return to, whole, nil
}

// counters are those of the policies of workspaces.
func (f *family) counters(c *admin.Call, in []store.Scope) (out []subjectBudget, whole bool, err error) {
	found, whole, err := records(c, in, ledger.KindUsagePolicy, maxPolicies, nil)
	if err != nil {
		return nil, false, err
	}
	lists, errs := make([]policyCounters, len(found)), make([]error, len(found))
	var wg sync.WaitGroup
	free := make(chan struct{}, readers)
	for i, rec := range found {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			lists[i], errs[i] = f.seen.of(c.Context, f.ledger, rec, c.Now)
		})
	}
	wg.Wait()
	for i := range lists {
		out, whole = append(out, lists[i].budgets...), whole && !lists[i].more
	}
	return out, whole, errors.Join(errs...)
}

// policyCounters are the first counters of a policy as they were at a time.
type policyCounters struct {
	rev     int64
	at      time.Time
	budgets []subjectBudget
	more    bool
}

// recentCounters are the counters of policies that were read lately, so that a page that is
// loaded again does not query each policy again. It is safe for concurrent use.
type recentCounters struct {
	mu  sync.Mutex
	all map[resource.Ref]policyCounters
}

func (r *recentCounters) of(ctx context.Context, l *ledger.Ledger, rec resource.Record, now time.Time) (policyCounters, error) {
	key := rec.Ref()
	r.mu.Lock()
	got, ok := r.all[key]
	r.mu.Unlock()
	if ok && got.rev == rec.Rev && now.Sub(got.at).Abs() < counted {
		return got, nil
	}
	got, err := countersOf(ctx, l, rec)
	if err != nil {
		return policyCounters{}, err
	}
	got.at = now
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil || len(r.all) >= maxCounted {
		r.all = map[resource.Ref]policyCounters{}
	}
	r.all[key] = got
	return got, nil
}

func countersOf(ctx context.Context, l *ledger.Ledger, rec resource.Record) (policyCounters, error) {
	p, err := ledger.DecodePolicy(rec)
	if err != nil {
		return policyCounters{}, err
	}
	of := func(valueKey string) *ledger.Subject {
		return p.SubjectOf(rec.Scope, rec.ID, rec.Name, rec.Rev, valueKey)
	}
	buckets, next, err := l.Buckets(ctx, of(""), "", maxCounters)
	out := policyCounters{rev: rec.Rev, more: next != ""}
	for _, b := range buckets {
		for _, state := range b.Budgets {
			out.budgets = append(out.budgets, subjectBudget{of(b.ValueKey), state})
		}
	}
	return out, err
}

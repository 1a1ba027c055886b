package accounting

import (
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/route"
)

// Ruled are the policies that hold for a request.
type Ruled struct {
	policies Set
	early    []*ledger.Subject // counters that the request's own facts decided
	sent     bool              // a budget has sent the request to another model
	rerouted string            // that model, while it is the target
	counted  []*ledger.Subject // of targets by which the request was counted
	late     []*ledger.Subject // counters that the target decided
}

// Copy returns the policies for a second attempt of the request. r may continue to be used.
func (r *Ruled) Copy() Ruled {
	c := *r
	c.counted, c.late = slices.Clone(r.counted), nil
	return c
}

// ReadPolicies finds what policies say of the request before it is routed.
func (b *Bill) ReadPolicies() error {
	var err error
	if b.policies, err = Load(b.Target.Req.Ctx, b.Target.Req.View, b.Target.Req.Who.Scope); err != nil || b.policies.Empty() {
		return err
	}
	b.early = b.policies.Early(b.fact)
	return nil
}

// fact returns the request's values of a policy key.
func (b *Bill) fact(key string) []string {
	one := func(v string) []string {
		if v == "" {
			return nil
		}
		return []string{v}
	}
	switch key {
	case "api_key":
		return one(b.Target.Req.Who.KeyID)
	case "workspace_id":
		return one(b.Target.Req.Who.Scope.Workspace)
	case "organisation_id":
		return one(b.Target.Req.Who.Scope.Org)
	case "config":
		return one(b.Target.Plan.Config.Slug)
	case "prompt":
		if b.Target.Body.Filled != nil {
			return one(b.Target.Body.Filled.Slug)
		}
	case "endpoint_type":
		return one(b.Target.Req.Route.Endpoint)
	case "virtual_key":
		return one(b.Target.To.Names.Slug)
	case "provider":
		return one(b.Target.To.Names.Provider)
	case "model":
		return namesOfModel(b)
	default:
		if name, ok := strings.CutPrefix(key, "metadata."); ok {
			return one(b.Target.Body.Metadata[name])
		}
	}
	return nil
}

// namesOfModel returns @provider/model, by the saved provider and by the vendor: of the
// requested model, where the request names one.
func namesOfModel(b *Bill) (names []string) {
	model := b.Target.Body.Model
	if model == "" {
		model = b.Target.To.Model
	}
	if model == "" {
		return nil
	}
	for _, provider := range [...]string{b.Target.To.Names.Slug, b.Target.To.Names.Provider} {
		if provider != "" {
			names = append(names, "@"+provider+"/"+model)
		}
	}
	return names
}

// LimitsOfTarget applies the target's policies, and returns the rates that have not yet counted
// the request.
func (b *Bill) LimitsOfTarget() (rates []*ledger.Subject) {
	rates = b.Target.To.Subjects
	if b.policies.Empty() {
		return rates
	}
	if b.late = b.policies.Late(b.fact); len(b.late) == 0 {
		return rates
	}
	rates = rates[:len(rates):len(rates)]
	for _, s := range b.late {
		if !slices.Contains(b.counted, s) {
			rates = append(rates, s)
		}
	}
	return rates
}

// NextTarget clears what holds for the previous target alone.
func (b *Bill) NextTarget() {
	b.Reported.Clear()
	b.late = nil
}

// Reroute returns the fallback target of an exhausted budget; nil if there is none. It does so
// once per request. A passed-through request names its own model, so it is not rerouted.
func (r *Ruled) Reroute(leaf *route.Leaf, raw bool, err error) *route.Leaf {
	f := fault.From(err)
	if r.sent || raw || f.Code != fault.BudgetExhausted || f.Limit == nil || f.Limit.Fallback == "" {
		return nil
	}
	r.sent, r.rerouted = true, f.Limit.Fallback
	next := *leaf
	next.Slug, next.Model, _ = strings.Cut(strings.TrimPrefix(f.Limit.Fallback, "@"), "/")
	next.Provider, next.APIKey, next.Fields, next.CustomHost, next.PromptID = "", "", nil, "", ""
	return &next
}

// Planned is called before a target of the plan is tried, as opposed to one that a budget
// chose.
func (r *Ruled) Planned() { r.rerouted = "" }

// CountHit counts a cached response against the budgets that count requests: it costs nothing
// else.
func (b *Bill) CountHit() error {
	if b.policies.Empty() {
		return nil
	}
	b.LimitsOfTarget()
	own, its := b.Budgeted()
	return b.Purse.CountHit(b.Target.Req.Base, b.Ledger, b.Target.Req.ULID, own, its)
}

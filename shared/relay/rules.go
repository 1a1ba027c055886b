package relay

import (
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/relay/policed"
	"gateway/shared/relay/purse"
	"gateway/shared/route"
)

// ruled are the policies that hold for a request.
type ruled struct {
	policies policed.Set
	early    []*ledger.Subject // counters that the request's own facts decided
	sent     bool              // a budget has sent the request to another model
	rerouted string            // that model, while it is the target
	counted  []*ledger.Subject // of targets, whose rates the request was counted by
	calling  *calling          // of a protocol that asks no model; nil: none
}

// readPolicies finds what policies say of the request before it is routed.
func (bk *books) readPolicies() error {
	var err error
	if bk.policies, err = policed.Load(bk.Ctx, bk.View, bk.Who.Scope); err != nil || bk.policies.Empty() {
		return err
	}
	bk.early = bk.policies.Early(bk.fact)
	return nil
}

// fact gives the request's values of a key of policies.
func (bk *books) fact(key string) []string {
	one := func(v string) []string {
		if v == "" {
			return nil
		}
		return []string{v}
	}
	switch key {
	case "api_key":
		return one(bk.Who.KeyID)
	case "workspace_id":
		return one(bk.Who.Scope.Workspace)
	case "organisation_id":
		return one(bk.Who.Scope.Org)
	case "config":
		return one(bk.Config.Slug)
	case "prompt":
		if bk.Filled != nil {
			return one(bk.Filled.Slug)
		}
	case "endpoint_type":
		return one(bk.Route.Endpoint)
	case "virtual_key":
		return one(bk.To.Names.Slug)
	case "provider":
		return one(bk.To.Names.Provider)
	case "model":
		return bk.namesOfModel()
	default:
		if name, ok := strings.CutPrefix(key, "metadata."); ok {
			return one(bk.Metadata[name])
		}
	}
	return nil
}

// namesOfModel are @provider/model, by the saved provider and by its maker: of the
// model that was asked for, where the request names one.
func (bk *books) namesOfModel() (names []string) {
	model := bk.Model
	if model == "" {
		model = bk.To.Model
	}
	if model == "" {
		return nil
	}
	for _, provider := range [...]string{bk.To.Names.Slug, bk.To.Names.Provider} {
		if provider != "" {
			names = append(names, "@"+provider+"/"+model)
		}
	}
	return names
}

// limitsOfTarget gives the target what policies say of it, and what of that the
// request was not counted by yet.
func (bk *books) limitsOfTarget() (rates []*ledger.Subject) {
	rates = bk.To.Subjects
	if bk.policies.Empty() {
		return rates
	}
	late := bk.policies.Late(bk.fact)
	if len(late) == 0 {
		return rates
	}
	own := rates[:len(rates):len(rates)]
	rates, bk.To.Subjects = own, append(own, late...)
	for _, s := range late {
		if !slices.Contains(bk.counted, s) {
			rates = append(rates, s)
		}
	}
	return rates
}

// reroute is where a budget sends a request that it has not enough for, once; nil:
// nowhere. What is passed through names its model where nobody writes another.
func (rd *ruled) reroute(leaf *route.Leaf, raw bool, err error) *route.Leaf {
	f := fault.From(err)
	if rd.sent || raw || f.Code != fault.BudgetExhausted || f.Limit == nil || f.Limit.Fallback == "" {
		return nil
	}
	rd.sent, rd.rerouted = true, f.Limit.Fallback
	next := *leaf
	next.Slug, next.Model, _ = strings.Cut(strings.TrimPrefix(f.Limit.Fallback, "@"), "/")
	next.Provider, next.APIKey, next.Fields, next.CustomHost, next.PromptID = "", "", nil, "", ""
	return &next
}

// countHit counts an answer of the cache by the budgets that count requests: it costs
// nothing else.
func (bk *books) countHit() error {
	if bk.policies.Empty() {
		return nil
	}
	bk.limitsOfTarget()
	own, its := bk.budgeted()
	return bk.purse.Spend(bk.Base, bk.Ledger, bk.ULID, true, purse.ByRequests(own), purse.ByRequests(its))
}

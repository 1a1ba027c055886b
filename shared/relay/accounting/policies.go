package accounting

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/relay/routes"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// PolicyState holds the policies in force for a request.
type PolicyState struct {
	policies Set
	early    []*ledger.Subject // counters that the request's own facts decided
	switched bool              // a budget has sent the request to another model
	rerouted string            // that model, while it is the target
	counted  []*ledger.Subject // of targets by which the request was counted
	late     []*ledger.Subject // counters that the target decided
}

// Copy returns the policies for a second attempt of the request. r may continue to be used.
func (r *PolicyState) Copy() PolicyState {
	c := *r
	c.counted, c.late = slices.Clone(r.counted), nil
	return c
}

// ReadPolicies finds what policies say of the request before it is routed.
func (b *Bill) ReadPolicies() error {
	policies, err := Load(b.Target.Req.Ctx, b.Target.Req.View, b.Target.Req.Principal.Scope)
	if err != nil {
		return err
	}
	b.PolicyState = PolicyState{policies: policies, early: policies.ForRequest(b.fact)}
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
		return one(b.Target.Req.Principal.KeyID)
	case "workspace_id":
		return one(b.Target.Req.Principal.Scope.Workspace)
	case "organisation_id":
		return one(b.Target.Req.Principal.Scope.Org)
	case "config":
		return one(b.Target.Plan.Config.Slug)
	case "prompt":
		if b.Target.Body.Prompt != nil {
			return one(b.Target.Body.Prompt.Slug)
		}
	case "endpoint_type":
		return one(b.Target.Req.Route.Endpoint)
	case "virtual_key":
		return one(b.Target.Choice.Names.Slug)
	case "provider":
		return one(b.Target.Choice.Names.Provider)
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
		model = b.Target.Choice.Model
	}
	if model == "" {
		return nil
	}
	for _, provider := range [...]string{b.Target.Choice.Names.Slug, b.Target.Choice.Names.Provider} {
		if provider != "" {
			names = append(names, "@"+provider+"/"+model)
		}
	}
	return names
}

// LimitsOfTarget applies the target's policies, and returns the rates that have not yet counted
// the request.
func (b *Bill) LimitsOfTarget() (rates []*ledger.Subject) {
	return limits(&b.PolicyState, b.Target.Choice.Subjects, b.fact)
}

func limits(r *PolicyState, rates []*ledger.Subject, facts Facts) []*ledger.Subject {
	if r.policies.Empty() {
		return rates
	}
	r.late = r.policies.ForTarget(facts)
	rates = rates[:len(rates):len(rates)]
	for _, s := range r.late {
		if !slices.Contains(r.counted, s) {
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
func (r *PolicyState) Reroute(leaf *route.Leaf, passedThrough bool, err error) *route.Leaf {
	f := fault.From(err)
	if r.switched || passedThrough || f.Code != fault.BudgetExhausted || f.Limit == nil || f.Limit.Fallback == "" {
		return nil
	}
	r.switched, r.rerouted = true, f.Limit.Fallback
	slug, model, _ := strings.Cut(strings.TrimPrefix(f.Limit.Fallback, "@"), "/")
	return leaf.At(slug, model)
}

// Planned is called before a target of the plan is tried, as opposed to one that a budget
// chose.
func (r *PolicyState) Planned() { r.rerouted = "" }

// CountHit counts a cached response against the budgets that count requests: it costs nothing
// else.
func (b *Bill) CountHit() error {
	if b.policies.Empty() {
		return nil
	}
	b.LimitsOfTarget()
	own, its := b.Budgeted()
	return b.Spending.CountHit(b.Target.Req.Base, b.Ledger, b.Target.Req.ULID, own, its)
}

// batchMode is the mode of the price of batches.
const batchMode = "batch"

// measureInput measures the billed input that the body of the request does not contain. It fails
// with 412 if that has no bound and the organization does not allow such requests.
func measureInput(b *Bill) error {
	var err error
	window := func() int64 { return b.windowOf(b.ModelOf()) }
	b.hidden = 0
	if b.Target.Body.Form == nil && (!b.Target.Req.Route.NoModel || b.Target.Req.Route.BodyMode == routes.Raw) {
		b.hidden, err = InputBound(sentBody(b), func(id string) (int64, bool) { return seenTurn(b, id) }, window)
	}
	if err == nil && b.Target.UnboundedField != "" {
		if most := window(); most > 0 {
			b.hidden = max(b.hidden, most)
		} else {
			err = Unbounded(b.Target.UnboundedField)
		}
	}
	if err != nil && b.Target.Req.Org.Settings.Unbounded == tenant.UnboundedAllow {
		return nil
	}
	return err
}

// MeasureInput is measureInput for a request that is not sent. Its error counts only where a
// budget is in force.
func MeasureInput(b *Bill) error {
	err := measureInput(b)
	if own, its := b.Budgeted(); len(own)+len(its) == 0 {
		return nil
	}
	if err == nil {
		_, unmeasured := boundOf(b)
		err = measuredUnits(b, unmeasured)
	}
	return err
}

// measuredUnits fails with 412 for a request without a measurable bound, see boundOf, unless the
// organization allows such requests.
func measuredUnits(b *Bill, unmeasured bool) error {
	if !unmeasured || b.Target.Req.Req.Method != http.MethodPost || b.Target.Req.Org.Settings.Unbounded == tenant.UnboundedAllow || polls(b.Target.Body.RawPath()) {
		return nil
	}
	return fault.Newf(fault.UnboundedRequest, "model", "%s is priced by images, seconds, characters or pages, and this request does not state how many it needs while a budget applies: state it (n, seconds, duration), use the route of the gateway for this operation, or have an admin allow such requests (budget_settings.unbounded: allow)", fault.Clip(b.ModelOf(), 200))
}

// polls reports whether a POST to the path only reads the state of an earlier job.
func polls(escapedPath string) bool {
	return strings.HasSuffix(strings.ToLower(escapedPath), ":fetchpredictoperation")
}

// sentBody is the client's body as the config of the target changed it.
func sentBody(b *Bill) []byte {
	if b.Target.Choice.Body != nil {
		return b.Target.Choice.Body
	}
	return b.Target.Body.In
}

func (b *Bill) windowOf(model string) int64 {
	to := &b.Target.Choice.Target
	if to.Provider == nil || model == "" {
		return 0
	}
	return ContextWindow(to.Provider.ID, model, to.PricedAs(b.Target.Req.Base, model))
}

// measureRows reads the rows of the batch that the request creates, and sums them up while a
// budget is in force. It fails for rows that name objects or models that the caller may not use,
// and, unless the organization allows it, for rows without a bound.
func measureRows(b *Bill, budgeted bool) error {
	b.rows = nil
	if !budgeted {
		return b.ReadRows(nil)
	}
	sum := NewBatchSum(b.ModelOf(), b.windowOf)
	if err := b.ReadRows(sum); err != nil {
		return err
	}
	var err error
	if b.rows, err = sum.Rows(); err == nil || b.Target.Req.Org.Settings.Unbounded == tenant.UnboundedAllow {
		return nil
	}
	if fault.Is(err, fault.UnboundedRequest) {
		return err
	}
	return fault.New(fault.UnboundedRequest, "input_file_id", fmt.Sprintf("The rows of the batch cannot be read (%s), and a budget applies: name a file with readable rows, or have an admin allow such batches (budget_settings.unbounded: allow)", fault.Clip(fault.From(err).Message, 200))).WithCause(err)
}

// boundOfRows is the most that the rows of a batch may cost.
func boundOfRows(b *Bill) (sum ledger.Bound, unmeasured bool) {
	sum = ledger.Bound{Priced: true, Rerouted: b.rerouted}
	for i := range b.rows {
		r := &b.rows[i]
		price, known := b.priceOf(r.Model, priceOptions(b, r.Prompt, batchMode), false)
		if known {
			most := mostBelow(b, r.Model, r.Prompt, batchMode, false, func(p pricing.Price) pricing.NanoDollars { return p.Bound(r.In, r.Out) })
			sum.Cost = sum.Cost.Add(most)
			unmeasured = unmeasured || price.Bound(r.In, r.Out) == 0 && !price.OnlyTools()
		}
		sum.Priced = sum.Priced && (known || b.Target.Req.Org.Settings.Unpriced == tenant.UnpricedAllow)
		sum.Tokens += r.In + r.Out
		sum.Assumed = sum.Assumed || r.Assumed
	}
	return sum, unmeasured
}

// Facts returns a request's values of a key that conditions and groups use; none if it has none.
// Several values are names of the same thing; counters are named by the first.
type Facts func(key string) []string

// ofTarget are the keys that only a target decides.
var ofTarget = []string{"virtual_key", "provider", "model"}

// rule is a policy with the counters that requests have used.
type rule struct {
	*ledger.SavedPolicy
	late bool // it has a condition or group that only a target decides

	mu       sync.Mutex
	counters map[string]*ledger.Subject
}

// maxCounters limits the counters of one policy that are cached; further ones are created again,
// which only costs memory.
const maxCounters = 4096

func decode(rec resource.Record) (*rule, error) {
	p, err := ledger.DecodePolicy(rec)
	if err != nil {
		return nil, err
	}
	r := &rule{SavedPolicy: p, counters: map[string]*ledger.Subject{}}
	for i := range p.Conditions {
		r.late = r.late || slices.Contains(ofTarget, p.Conditions[i].Key)
	}
	for _, g := range p.GroupBy {
		r.late = r.late || slices.Contains(ofTarget, g.Key)
	}
	return r, nil
}

// subject is what the policy counts a request by; nil: it does not count it.
func (r *rule) subject(facts Facts) *ledger.Subject {
	if !r.Matches(facts) {
		return nil
	}
	key, ok := r.ValueKey(facts)
	if !ok {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.counters[key]
	if s == nil {
		key = strings.Clone(key)
		s = r.SubjectOf(r.Scope, r.ID, label(r.SavedPolicy, key), r.Revision, key)
		if len(r.counters) >= maxCounters {
			clear(r.counters)
		}
		r.counters[key] = s
	}
	return s
}

// label is the name of the counter in a rejection.
func label(p *ledger.SavedPolicy, valueKey string) string {
	name := p.Name
	if name == "" {
		name = p.ID
	}
	if valueKey == ledger.Wildcard {
		return name
	}
	return name + " (" + valueKey + ")"
}

// Set are the policies of a workspace. The zero value has none.
type Set struct {
	usage, rates []*rule
}

// Load returns the live policies of a workspace.
func Load(ctx context.Context, v *resource.View, sc store.Scope) (s Set, err error) {
	if s.usage, err = resource.LoadAll(ctx, v, sc, ledger.KindUsagePolicy, decode); err != nil {
		return s, err
	}
	s.rates, err = resource.LoadAll(ctx, v, sc, ledger.KindRatePolicy, decode)
	return s, err
}

// Empty reports whether there are no policies.
func (s Set) Empty() bool { return len(s.usage)+len(s.rates) == 0 }

// ForRequest returns the counters of the policies that the request's own facts decide.
func (s Set) ForRequest(facts Facts) []*ledger.Subject { return s.pick(false, facts) }

// ForTarget returns those of the policies that a target decides.
func (s Set) ForTarget(facts Facts) []*ledger.Subject { return s.pick(true, facts) }

// Tools returns those of the policies that count tool calls.
func (s Set) Tools(facts Facts) (out []*ledger.Subject) {
	for _, r := range s.rates {
		if r.Target != ledger.TargetMCPTools {
			continue
		}
		if sub := r.subject(facts); sub != nil {
			out = append(out, sub)
		}
	}
	return out
}

func (s Set) pick(late bool, facts Facts) (out []*ledger.Subject) {
	for _, list := range [...][]*rule{s.usage, s.rates} {
		for _, r := range list {
			if r.late != late || r.Target == ledger.TargetMCPTools {
				continue
			}
			if sub := r.subject(facts); sub != nil {
				out = append(out, sub)
			}
		}
	}
	return out
}

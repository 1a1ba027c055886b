// Package replay computes what would have happened to recorded requests under another config,
// other limits, prices, or guardrails. It gets records in the order in which they arrived, and
// maintains sums, the counters of limits and a few examples. Nothing is sent, stored or
// counted.
//
// Decisions are made by the same code as for requests, from the data in the records: the random
// draws, the states of breakers, the responses of targets, and the usage. Without changes,
// every decision is the same. Data that the records lack is named, and counts as it was
// recorded.
package replay

import (
	"cmp"
	"context"
	"maps"
	"math"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/basic"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/scan"
	"gateway/shared/pricing"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// Changes contains the changes to simulate. The zero value changes nothing.
type Changes struct {
	Prices *Prices  // nil: as charged
	Config *Config  // nil: as routed
	Limits []*Limit // beside those that rejected requests; see Limit.Replaces
	Checks *Checks  // nil: no guardrails
}

// Config is the config by which all requests are routed.
type Config struct {
	Tree    *route.Tree
	Slug    string // of a saved config; empty: the config is part of the query
	ID      string // the same
	Version int64  // the same
}

// Target is a provider and a model that are called.
type Target struct {
	Slug     string // of the saved provider; empty: the request contained the credential
	Provider string // such as openai
	Model    string
}

// Deps look up saved providers and present prices.
type Deps interface {
	// Saved finds a saved provider of a workspace by its slug or id.
	Saved(ctx context.Context, workspace, name string) (slug, provider string, ok bool, err error)
	// Price is the price of a target in a workspace; false: it has no price.
	Price(ctx context.Context, workspace string, of Target, o pricing.Options) (pricing.Price, bool, error)
}

// Reasons why a request, or a part of it, could not be judged.
const (
	NotRouted       = "not_routed"         // it reached no target
	Cached          = "cached"             // the cache answered
	Parameters      = "parameters"         // a condition reads a field of the body that records do not have
	NoTarget        = "no_target"          // the config gives it no target
	MissingProvider = "unknown_provider"   // the config names a saved provider that does not exist
	NotReproduced   = "not_reproduced"     // it was routed by this very config, but the record lacks data to find the same target
	UsageUnknown    = "usage_unknown"      // it is not known what it would have used
	PriceUnknown    = "unknown_price"      // the model has no price, or not for everything that was used
	PriceFacts      = "price_facts"        // the price depends on something that the record does not have, or on several models
	LimitUnknown    = "limit_not_recorded" // the record does not contain which limit rejected it, or how much it needed
	BodyUnknown     = "no_body"            // guardrails need a body that was not stored, or cannot be read
)

// Run is one simulation. It must not be used by several goroutines at once.
type Run struct {
	q       Changes
	means   Deps
	sums    sums
	buckets int // counters of all limits
	figures figures
}

// New begins a simulation.
func New(q Changes, m Deps) *Run {
	r := &Run{q: q, means: m}
	r.figures.begin()
	r.sums.begin(&q)
	return r
}

// call is one call of a target, and its cost.
type call struct {
	Target
	path  string
	usage pricing.Usage
	cost  pricing.NanoDollars
}

// course is what happened to a request, and what would have happened.
type course struct {
	rec    *usage.Record
	bodies Bodies

	was, is  Target
	calls    []call              // calls that would have been made
	rest     pricing.NanoDollars // part of the cost that belongs to no call
	restIn   int64               // part of the tokens that belongs to no call
	restOut  int64
	cost     pricing.NanoDollars
	rejected bool          // a limit rejected it when it was recorded
	by       *Limit        // the limit that rejects it now
	released bool          // it was rejected then, but not now
	exceeded []*Limit      // limits that it exceeds, and that let it pass
	denied   bool          // guardrails denied it
	barred   bool          // guardrails before the call denied it
	tripped  []string      // guardrails that fail
	before   time.Duration // latency as recorded; 0: unknown
	after    time.Duration // the same, of the target that would have answered
	open     []string      // reasons why parts could not be judged
}

func (c *course) unjudged(why string) {
	for _, have := range c.open {
		if have == why {
			return
		}
	}
	c.open = append(c.open, why)
}

// Simulate simulates one request, with its bodies if they are needed. Errors come from means,
// or are a 400 if limits have too many counters.
func (r *Run) Simulate(ctx context.Context, rec *usage.Record, bodies Bodies) error {
	c := &course{rec: rec, bodies: bodies}
	c.recorded()
	r.figures.until(rec.Start)
	if r.q.Config != nil {
		if err := r.reroute(ctx, c); err != nil {
			return err
		}
	}
	r.charge(c)
	if err := r.compare(ctx, c); err != nil {
		return err
	}
	if r.q.Checks.Any() {
		r.check(ctx, c)
	}
	if err := r.limit(c); err != nil {
		return err
	}
	r.sums.add(c)
	return nil
}

// recorded initializes the course from the record.
func (c *course) recorded() {
	rec := c.rec
	c.was = Target{rec.ProviderSlug, rec.Provider, cmp.Or(rec.Model, rec.RequestModel)}
	c.rest = rec.Cost
	for i := range rec.Attempts {
		a := &rec.Attempts[i]
		c.calls = append(c.calls, call{Target{a.ProviderSlug, a.Provider, a.Model}, a.OptionIndex, a.Usage, a.Cost})
		c.rest -= a.Cost
	}
	switch n := len(c.calls); {
	case n > 0:
		if last := &c.calls[n-1]; last.path == rec.OptionIndex {
			c.was = last.Target
		}
	case rec.Usage.IsReported() && !hit(rec): // a client reported it
		c.was.Model = rec.AnsweringModel()
		c.calls, c.rest = []call{{c.was, rec.OptionIndex, rec.Usage, rec.Cost}}, 0
	}
	was, out := c.tokens()
	c.restIn, c.restOut = rec.Usage.InputTokens()-was, rec.Usage.OutputTokens()-out
	c.is = c.was
	c.rejected = len(rec.Attempts) == 0 && ofLimit(rec.ErrorCode)
}

func hit(rec *usage.Record) bool { return strings.HasSuffix(rec.CacheStatus, "HIT") }

// ofLimit reports whether a limit rejected the request.
func ofLimit(code string) bool {
	switch fault.Code(code) {
	case fault.RateLimited, fault.BudgetExhausted, fault.UnpricedModel, fault.UnboundedRequest:
		return true
	}
	return false
}

// tokens are the tokens of all calls, and those that belong to no call.
func (c *course) tokens() (in, out int64) {
	in, out = c.restIn, c.restOut
	for i := range c.calls {
		u := &c.calls[i].usage
		in, out = in+u.InputTokens(), out+u.OutputTokens()
	}
	return in, out
}

// plus adds amounts; the result does not exceed the largest amount.
func plus(a, b pricing.NanoDollars) pricing.NanoDollars {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Bodies are a request's bodies as its client saw them; nil if they are not stored.
type Bodies struct {
	Request, Response []byte
}

// Checks are guardrails that evaluate all requests. Only local checks are run.
type Checks struct {
	kit *chain.CheckRegistry
	all []*checked
	now func() time.Time
}

type checked struct {
	hooks chain.Hooks // one hook with the checks that are run; empty: none
	phase guard.Phase
	sum   CheckSum
}

// NewChecks gives Checks without any guardrail yet.
func NewChecks(now func() time.Time) *Checks {
	makers := map[string]judge.Maker{}
	maps.Copy(makers, basic.Makers())
	maps.Copy(makers, scan.Makers())
	return &Checks{kit: chain.NewCheckRegistry(makers), now: now}
}

// Kit prepares guardrails.
func (k *Checks) Kit() *chain.CheckRegistry { return k.kit }

// Add adds a guardrail that judges requests (guard.Before) or answers (guard.After).
func (k *Checks) Add(name string, h *chain.Hook, phase guard.Phase) {
	one := &checked{hooks: chain.Hooks{h}, phase: phase, sum: CheckSum{Name: name}}
	if !one.hooks.Local() {
		one.sum.Not = "it has checks that call other services, which are not run"
		one.hooks = one.hooks.LocalOnly()
	}
	k.all = append(k.all, one)
}

// Any reports whether there are checks to run.
func (k *Checks) Any() bool { return k != nil && len(k.all) > 0 }

func (k *Checks) sums() []CheckSum {
	out := make([]CheckSum, len(k.all))
	for i, one := range k.all {
		out[i] = one.sum
	}
	return out
}

// check judges a request and its response.
func (r *Run) check(ctx context.Context, c *course) {
	rec := c.rec
	if c.rejected || !c.counted() {
		return
	}
	call := chain.Call{
		Kind: rec.Endpoint, Provider: c.is.Provider, Model: c.is.Model, TraceID: rec.TraceID, Stream: rec.Stream, Metadata: rec.Metadata,
		Request: c.bodies.Request, Now: r.q.Checks.now,
	}
	for _, phase := range [...]guard.Phase{guard.Before, guard.After} {
		if phase == guard.After {
			if c.barred || !rec.Success() {
				return
			}
			call.Response, call.Status = c.bodies.Response, rec.ClientStatus
		}
		for _, one := range r.q.Checks.all {
			if one.phase != phase || len(one.hooks) == 0 {
				continue
			}
			if len(call.Request) == 0 || phase == guard.After && (rec.Stream || len(call.Response) == 0) {
				c.unjudged(BodyUnknown)
				continue
			}
			out := one.hooks.Run(ctx, phase, &call)
			c.judged(one, &out)
		}
		c.barred = c.denied && phase == guard.Before
	}
}

func (c *course) judged(one *checked, out *chain.Outcome) {
	for i := range out.Results {
		one.sum.Run++
		if v := &out.Results[i]; !v.Verdict {
			one.sum.Failed++
			c.tripped = append(c.tripped, one.sum.Name)
			c.denied = c.denied || v.Deny
		}
	}
}

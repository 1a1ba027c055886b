package replay

import (
	"container/heap"
	"context"
	"encoding/json"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/route"
	"gateway/shared/route/measure"
	"gateway/shared/usage"
)

// maxAlternatives bounds the targets of a config that are summed up.
const maxAlternatives = 100

// Alternative is a target of the config: what became of the requests, and what would have
// become of them if all had gone there.
type Alternative struct {
	Path     string      `json:"path"`
	Slug     *string     `json:"virtual_key"`
	Provider *string     `json:"provider"`
	Model    *string     `json:"model" doc:"null: that of each request."`
	Routed   int64       `json:"chosen" doc:"Requests routed to it."`
	Priced   int64       `json:"priced_requests" doc:"Requests with a known cost at this target."`
	Cost     float64     `json:"cost" doc:"Total of all of these, in US cents."`
	Unit     string      `json:"cost_unit" enum:"cents"`
	USD      json.Number `json:"cost_usd" doc:"Exact value of cost in US dollars."`
	Observed int64       `json:"observations" doc:"Number of its successful calls in this time range."`
	Latency  *float64    `json:"latency_ms" doc:"Mean; null: there are none."`
	P95      *float64    `json:"latency_p95_ms" doc:"Their 95th percentile, within 10 %."`

	cost pricing.NanoDollars
	key  measure.Key
}

// figures are the figures of targets at the time of each request.
type figures struct {
	now       time.Time
	workspace *measure.Workspace
	ends      endings
	seen      map[measure.Key]*seen
	paths     []*Alternative
	found     map[string]*Alternative
}

// seen are the latencies of a target.
type seen struct {
	n       int64
	sum     time.Duration
	buckets [160]int32 // 8 for each doubling from 1 ms / 4
}

// ending is when something is known that began earlier.
type ending struct {
	at      time.Time
	key     measure.Key
	class   measure.Class
	status  int
	latency time.Duration
	busy    bool // the target has a request less; else a response is known
}

func (f *figures) begin() {
	f.workspace = measure.NewWorkspace(func() time.Time { return f.now })
	f.seen, f.found = map[measure.Key]*seen{}, map[string]*Alternative{}
}

// maxEndings bounds the requests that are under way at one time.
const maxEndings = 100_000

// until lets time pass.
func (f *figures) until(now time.Time) {
	for len(f.ends) > 0 && (!f.ends[0].at.After(now) || len(f.ends) > maxEndings) {
		e := heap.Pop(&f.ends).(ending)
		if f.now = e.at; e.busy {
			f.workspace.End(e.key)
		} else {
			f.workspace.Observe(e.key, e.class, e.status, e.latency)
		}
	}
	f.now = now
}

// keyOf identifies a target.
func keyOf(t Target) measure.Key {
	h := uint64(14695981039346656037) // FNV-1a
	for _, s := range [...]string{t.Slug, t.Provider, t.Model} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * 1099511628211
		}
		h = (h ^ 0xff) * 1099511628211
	}
	return measure.Key(h)
}

func classOf(rec *usage.Record) measure.Class { return measure.ClassOf(rec.RequestBytes, rec.Stream) }

// measures are the figures for a request.
func (r *Run) measures(ctx context.Context, c *course) *route.Measures {
	if !r.q.Config.Tree.Measured() {
		return nil
	}
	used := c.responseUsage()
	target := func(l *route.Leaf) Target {
		t, _, _ := r.target(ctx, c, l)
		return t
	}
	return &route.Measures{
		Workspace: r.figures.workspace, Class: classOf(c.rec), Model: c.rec.RequestModel, DryRun: true,
		Key: func(l *route.Leaf) measure.Key { return keyOf(target(l)) },
		Cost: func(l *route.Leaf) (pricing.NanoDollars, bool) {
			cost, ok, err := r.costAt(ctx, c, target(l), used)
			return cost, ok && err == nil
		},
	}
}

// costAt is what the request costs at a target.
func (r *Run) costAt(ctx context.Context, c *course, t Target, used pricing.Usage) (pricing.NanoDollars, bool, error) {
	if !used.IsReported() {
		return 0, false, nil
	}
	price, ok, err := r.means.Price(ctx, c.rec.Workspace, t, pricing.Options{ContextTokens: used.InputTokens(), Mode: pricing.ModeOfLine(c.rec.Tariff), At: c.rec.Start})
	if err != nil || !ok || !price.Covers(used) {
		return 0, false, err
	}
	return min(price.Cost(used), maxCharge), true, nil
}

// compare learns the latencies of the request, and what it would have cost at each target
// of the config.
func (r *Run) compare(ctx context.Context, c *course) error {
	f := &r.figures
	for i := range c.rec.Attempts {
		a := &c.rec.Attempts[i]
		key := keyOf(Target{a.ProviderSlug, a.Provider, a.Model})
		status := statusOf(a)
		heap.Push(&f.ends, ending{at: c.rec.Start.Add(a.Start + a.Latency), key: key, class: classOf(c.rec), status: status, latency: a.Latency})
		if measure.Success(status) && a.Latency > 0 {
			f.see(key).add(a.Latency)
			c.before = a.Latency
		}
	}
	if c.after = c.before; c.is != c.was {
		c.after = f.seen[keyOf(c.is)].mean()
	}
	if r.q.Config == nil || hit(c.rec) || c.rec.OptionIndex == "" {
		return nil
	}
	if r.q.Config.Tree.Measured() && !c.rejected {
		key := keyOf(c.is)
		f.workspace.Begin(key)
		heap.Push(&f.ends, ending{at: c.rec.Start.Add(c.rec.Duration), key: key, busy: true})
	}
	used := c.responseUsage()
	for i, leaf := range r.q.Config.Tree.Leaves() {
		if i == maxAlternatives {
			break
		}
		t, _, err := r.target(ctx, c, leaf)
		if err != nil {
			return err
		}
		alt := f.found[leaf.Path]
		if alt == nil {
			alt = &Alternative{Path: leaf.Path, Unit: pricing.CostUnit, Slug: textOf(t.Slug), Provider: textOf(t.Provider), Model: textOf(leaf.Model)}
			f.found[leaf.Path], f.paths = alt, append(f.paths, alt)
		}
		alt.key = keyOf(t)
		if c.is == t {
			alt.Routed++
		}
		cost, ok, err := r.costAt(ctx, c, t, used)
		if err != nil {
			return err
		}
		if ok {
			alt.Priced, alt.cost = alt.Priced+1, plus(alt.cost, cost)
		}
	}
	return nil
}

func (f *figures) see(k measure.Key) *seen {
	s := f.seen[k]
	if s == nil {
		if len(f.seen) >= mostModels {
			return new(seen)
		}
		s = new(seen)
		f.seen[k] = s
	}
	return s
}

func (s *seen) add(d time.Duration) {
	s.n++
	s.sum += d
	at := int(8 * math.Log2(float64(d)/float64(time.Millisecond/4)))
	s.buckets[min(max(at, 0), len(s.buckets)-1)]++
}

// mean is 0 if there are none.
func (s *seen) mean() time.Duration {
	if s == nil || s.n == 0 {
		return 0
	}
	return s.sum / time.Duration(s.n)
}

// p95 is the upper bound of the bucket with the 95th percentile.
func (s *seen) p95() time.Duration {
	left := s.n * 95 / 100
	for i, n := range s.buckets {
		if left -= int64(n); left < 0 {
			return time.Duration(math.Exp2(float64(i+1)/8) * float64(time.Millisecond/4))
		}
	}
	return 0
}

// alternatives are the targets of the config so far.
func (f *figures) alternatives() []Alternative {
	out := make([]Alternative, len(f.paths))
	for i, alt := range f.paths {
		out[i] = *alt
		out[i].Cost, out[i].USD = cents(alt.cost), alt.cost.USD()
		if s := f.seen[alt.key]; s != nil && s.n > 0 {
			out[i].Observed, out[i].Latency, out[i].P95 = s.n, milliseconds(s.mean()), milliseconds(s.p95())
		}
	}
	return out
}

func textOf(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func milliseconds(d time.Duration) *float64 {
	v := float64(d.Microseconds()) / 1000
	return &v
}

// time counts a latency, if it is known.
func (t *Total) time(d time.Duration) {
	if d > 0 {
		t.latency, t.timed = t.latency+d, t.timed+1
	}
}

// endings is a heap by time.
type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// Prices are the prices of calls. A multiplier applies to a call's cost by these prices, or
// otherwise to the recorded charge.
type Prices struct {
	models map[string]*pricing.Custom // by provider/model
	by     map[string]int64           // millionths, by provider/model, provider/* or *
}

// Bounds of prices.
const (
	million        = 1_000_000
	maxMultipliers = 500
	// maxCharge bounds one call in the same way as real charges.
	maxCharge = 10_000_000 * pricing.Dollar
)

// ParsePrices reads {"provider/model": pricing_config} and {"provider/model", "provider/*"
// or "*": number}; either may be absent. Errors name fields below them.
func ParsePrices(models, multipliers json.RawMessage) (*Prices, []fault.Detail) {
	p := &Prices{by: map[string]int64{}}
	var bad []fault.Detail
	p.models, bad = pricing.ParseModelPrices(models)
	for i := range bad {
		bad[i].Field = strings.TrimSuffix("models."+bad[i].Field, ".")
	}
	if len(multipliers) == 0 || string(multipliers) == "null" {
		return p, bad
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(multipliers, &all) != nil || len(all) > maxMultipliers {
		return nil, append(bad, fault.Detail{Field: "multipliers", Message: "must be an object of at most 500 numbers"})
	}
	for name, raw := range all {
		if provider, model, ok := strings.Cut(name, "/"); name != "*" && (!ok || provider == "" || model == "" || len(name) > 300) {
			bad = append(bad, fault.Detail{Field: "multipliers." + fault.Clip(name, 300), Message: "must be named provider/model, provider/* or *"})
			continue
		}
		n, ok := pricing.ParseMillionths(raw)
		if !ok {
			bad = append(bad, fault.Detail{Field: "multipliers." + name, Message: "must be a number from 0 to 1000000; 1 leaves the price as it is"})
		}
		p.by[name] = n
	}
	slices.SortFunc(bad, func(a, b fault.Detail) int { return strings.Compare(a.Field, b.Field) })
	return p, bad
}

// charge adds up what the calls cost.
func (r *Run) charge(c *course) {
	c.cost = c.rest
	tariffs := 1 + strings.Count(c.rec.Tariff, "; ")
	for i := range c.calls {
		call := &c.calls[i]
		if r.q.Prices != nil && call.usage.IsReported() {
			cost, known := r.q.Prices.cost(call, tariffs > len(c.calls), c.rec.Start)
			if !known {
				c.unjudged(PriceFacts)
			}
			call.cost = cost
		}
		c.cost = plus(c.cost, call.cost)
	}
}

// cost returns the cost of a call. known is false if the record lacks data that the price
// depends on; the cost is then the recorded charge. several: one call was charged as several
// models.
func (p *Prices) cost(c *call, several bool, at time.Time) (cost pricing.NanoDollars, known bool) {
	cost, known = c.cost, true
	o := pricing.Options{ContextTokens: c.usage.InputTokens(), At: at}
	if own := p.models[c.Provider+"/"+c.Model]; own != nil && own.Applies(o) {
		if several || own.Depends(c.usage) {
			return c.cost, false
		}
		cost = min(own.Price(o).Cost(c.usage), maxCharge)
	}
	for _, name := range [...]string{c.Provider + "/" + c.Model, c.Provider + "/*", "*"} {
		if by, ok := p.by[name]; ok {
			return min(times(cost, by), maxCharge), known
		}
	}
	return cost, known
}

// times multiplies by millionths, rounded half up.
func times(cost pricing.NanoDollars, by int64) pricing.NanoDollars {
	if cost <= 0 {
		return cost
	}
	hi, lo := bits.Mul64(uint64(cost), uint64(by))
	lo, carry := bits.Add64(lo, million/2, 0)
	if hi += carry; hi >= million {
		return maxCharge
	}
	q, _ := bits.Div64(hi, lo, million)
	return pricing.NanoDollars(min(q, uint64(maxCharge)))
}

package replay

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// Bounds of a result.
const (
	maxExamples = 10
	maxModels   = 200 // each; further ones are summed up
)

// Result is the result of a simulation. Money is in US cents.
type Result struct {
	From         *time.Time    `json:"from" doc:"Time of the first request that was read; null: there was none."`
	To           *time.Time    `json:"to" doc:"Of the last one."`
	Before       Total         `json:"before" doc:"As recorded."`
	After        Total         `json:"after" doc:"As it would have been."`
	Alternatives []Alternative `json:"alternatives" doc:"The targets of the config, in order, up to 100: the cost of all requests at this target, and its latency in the time range."`
	Models       []ModelSum    `json:"models" doc:"Models, most expensive first: up to 200; the rest is summed up with null for both names."`
	Differences  []Difference  `json:"differences" doc:"Kinds of differences."`
	Limits       []LimitSum    `json:"limits" doc:"The simulated limits, in order."`
	Guardrails   []CheckSum    `json:"guardrails" doc:"The simulated checks, in order."`
	Unjudged     []Undecided   `json:"unjudged" doc:"Parts that could not be simulated, which count as recorded."`
}

// Total sums up requests.
type Total struct {
	Requests int64       `json:"requests"`
	Refused  int64       `json:"refused" doc:"By limits."`
	Denied   int64       `json:"denied" doc:"By guardrails."`
	Input    int64       `json:"input_tokens"`
	Output   int64       `json:"output_tokens"`
	Cost     float64     `json:"cost" doc:"US cents."`
	Unit     string      `json:"cost_unit" enum:"cents"`
	USD      json.Number `json:"cost_usd" doc:"Exact value of cost in US dollars."`
	Latency  *float64    `json:"latency_ms" doc:"Mean time to the response of the target, over the requests with a known time; for a target other than the recorded one, its mean until then. null: none is known."`

	cost    pricing.NanoDollars
	latency time.Duration
	timed   int64
}

// ModelSum is the sum of the calls to a provider's model, before and after.
type ModelSum struct {
	Provider *string `json:"provider"`
	Model    *string `json:"model"`
	Before   Part    `json:"before"`
	After    Part    `json:"after"`
}

// Part is a part of the requests.
type Part struct {
	Calls int64       `json:"calls"`
	Cost  float64     `json:"cost" doc:"US cents."`
	Unit  string      `json:"cost_unit" enum:"cents"`
	USD   json.Number `json:"cost_usd" doc:"Exact value of cost in US dollars."`

	cost pricing.NanoDollars
}

// Difference is a kind of difference.
type Difference struct {
	Kind     string    `json:"kind" enum:"moved,repriced,refused,released,exceeded,tripped,denied" doc:"moved: another target responds. repriced: the cost differs. refused: a simulated limit rejects it. released: no limit rejects it any more. exceeded: it exceeds a limit that admits or reroutes it. tripped: a guardrail fails. denied: a guardrail denies it."`
	Requests int64     `json:"requests"`
	Examples []Example `json:"examples" doc:"The first 10 of them."`
}

// Example is a request.
type Example struct {
	LogID  string `json:"log_id"`
	Before Side   `json:"before"`
	After  Side   `json:"after"`
}

// Side is what became of a request.
type Side struct {
	Slug     *string     `json:"virtual_key"`
	Provider *string     `json:"provider"`
	Model    *string     `json:"model"`
	Cost     float64     `json:"cost" doc:"US cents."`
	Unit     string      `json:"cost_unit" enum:"cents"`
	USD      json.Number `json:"cost_usd" doc:"Exact value of cost in US dollars."`
	Stopped  *string     `json:"stopped_by" doc:"The limit or guardrail that would reject it."`
}

// LimitSum is the effect of a limit.
type LimitSum struct {
	Name     string     `json:"name"`
	Counted  int64      `json:"counted" doc:"Number of evaluations."`
	Refused  int64      `json:"refused" doc:"Requests that it rejects."`
	Exceeded int64      `json:"exceeded" doc:"Requests over the limit that it admits, or sends to fallback_model; their target and cost are unchanged in this simulation."`
	Counters int64      `json:"counters" doc:"Number of its counters that are exhausted."`
	First    *time.Time `json:"first_refused_at"`
	FirstID  *string    `json:"first_refused_log_id"`
}

func (s *LimitSum) reject(rec *usage.Record) {
	if s.Refused++; s.First == nil {
		at, id := rec.Start.UTC(), rec.ID
		s.First, s.FirstID = &at, &id
	}
}

// CheckSum is the effect of a guardrail.
type CheckSum struct {
	Name   string `json:"name"`
	Run    int64  `json:"run" doc:"Requests that it evaluated."`
	Failed int64  `json:"failed"`
	Not    string `json:"not_run" doc:"Why it was not run; empty: it was run."`
}

// Undecided is why something could not be judged.
type Undecided struct {
	Reason   string   `json:"reason" enum:"not_routed,cached,parameters,no_target,unknown_provider,not_reproduced,usage_unknown,unknown_price,price_facts,limit_not_recorded,no_body"`
	Requests int64    `json:"requests"`
	Logs     []string `json:"log_ids" doc:"The first 10 of them."`
}

// sums collects a result.
type sums struct {
	from, to      time.Time
	before, after Total
	models        map[[2]string]*ModelSum
	differences   map[string]*Difference
	open          map[string]*Undecided
	limits        []*Limit
	checks        *Checks
}

func (s *sums) begin(q *Changes) {
	*s = sums{models: map[[2]string]*ModelSum{}, differences: map[string]*Difference{}, open: map[string]*Undecided{}, limits: q.Limits, checks: q.Checks}
}

// kinds are the differences, in the order of the result.
var kinds = [...]string{"moved", "repriced", "refused", "released", "exceeded", "tripped", "denied"}

func (s *sums) add(c *course) {
	rec := c.rec
	if s.before.Requests == 0 {
		s.from = rec.Start
	}
	s.to = rec.Start
	s.before.time(c.before)
	s.before.add(c.rejected, denied(rec), rec.Usage.InputTokens(), rec.Usage.OutputTokens(), rec.Cost)
	cost := c.cost
	in, out := c.tokens()
	if c.by != nil || c.barred {
		cost, in, out = 0, 0, 0
	} else {
		s.after.time(c.after)
	}
	refused := c.by != nil || c.rejected && !c.released
	s.after.add(refused, c.denied || denied(rec) && !refused, in, out, cost)
	s.calls(c)
	for i, is := range [...]bool{c.is != c.was, c.cost != rec.Cost && c.is == c.was, c.by != nil && !c.rejected, c.released, len(c.exceeded) > 0, len(c.tripped) > 0, c.denied} {
		if is {
			s.differ(kinds[i], c, cost)
		}
	}
	for _, why := range c.open {
		o := s.open[why]
		if o == nil {
			o = &Undecided{Reason: why, Logs: []string{}}
			s.open[why] = o
		}
		if o.Requests++; len(o.Logs) < maxExamples {
			o.Logs = append(o.Logs, rec.ID)
		}
	}
}

// denied reports whether guardrails denied the request.
func denied(rec *usage.Record) bool { return rec.ClientStatus == statusDenied }

// statusDenied is the status of responses that guardrails reject.
const statusDenied = 446

func (t *Total) add(refused, denied bool, in, out int64, cost pricing.NanoDollars) {
	t.Requests++
	if refused {
		t.Refused++
	}
	if denied {
		t.Denied++
	}
	t.Input, t.Output, t.cost = t.Input+in, t.Output+out, plus(t.cost, cost)
}

// calls counts by the target that was called.
func (s *sums) calls(c *course) {
	before := course{rec: c.rec}
	before.recorded()
	for i := range before.calls {
		k := &before.calls[i]
		s.model(k.Target).Before.add(k.cost)
	}
	if c.by != nil || c.barred {
		return
	}
	for i := range c.calls {
		k := &c.calls[i]
		s.model(k.Target).After.add(k.cost)
	}
}

func (p *Part) add(cost pricing.NanoDollars) { p.Calls, p.cost = p.Calls+1, plus(p.cost, cost) }

// mostModels bounds the models that are counted separately while records are read.
const mostModels = 10_000

func (s *sums) model(t Target) *ModelSum {
	key := [2]string{t.Provider, t.Model}
	m := s.models[key]
	if m == nil && len(s.models) >= mostModels {
		key = [2]string{}
		m = s.models[key]
	}
	if m == nil {
		key = [2]string{strings.Clone(key[0]), strings.Clone(key[1])}
		m = &ModelSum{}
		if key != [2]string{} {
			m.Provider, m.Model = &key[0], &key[1]
		}
		s.models[key] = m
	}
	return m
}

func (s *sums) differ(kind string, c *course, cost pricing.NanoDollars) {
	d := s.differences[kind]
	if d == nil {
		d = &Difference{Kind: kind, Examples: []Example{}}
		s.differences[kind] = d
	}
	if d.Requests++; len(d.Examples) >= maxExamples {
		return
	}
	e := Example{LogID: c.rec.ID, Before: side(c.was, c.rec.Cost), After: side(c.is, cost)}
	if f := c.rec.Refusal; f != nil && c.rejected {
		e.Before.Stopped = &f.ID
	}
	switch {
	case c.denied && len(c.tripped) > 0:
		e.After.Stopped = &c.tripped[0]
	case c.by != nil:
		e.After.Stopped = &c.by.Name
	case c.rejected && !c.released:
		e.After.Stopped = e.Before.Stopped
	}
	d.Examples = append(d.Examples, e)
}

func side(t Target, cost pricing.NanoDollars) Side {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return Side{Slug: text(t.Slug), Provider: text(t.Provider), Model: text(t.Model), Cost: cents(cost), Unit: pricing.CostUnit, USD: cost.USD()}
}

func cents(n pricing.NanoDollars) float64 { return float64(n) / float64(pricing.Dollar/100) }

// Result is the result so far.
func (r *Run) Result() *Result {
	s := &r.sums
	out := &Result{Before: s.before, After: s.after, Models: s.byModel(), Differences: []Difference{}, Limits: []LimitSum{}, Guardrails: []CheckSum{}, Unjudged: []Undecided{}}
	for _, t := range []*Total{&out.Before, &out.After} {
		t.Cost, t.Unit, t.USD = cents(t.cost), pricing.CostUnit, t.cost.USD()
		if t.timed > 0 {
			t.Latency = milliseconds(t.latency / time.Duration(t.timed))
		}
	}
	out.Alternatives = r.figures.alternatives()
	if s.before.Requests > 0 {
		from, to := s.from.UTC(), s.to.UTC()
		out.From, out.To = &from, &to
	}
	for _, kind := range kinds {
		if d := s.differences[kind]; d != nil {
			out.Differences = append(out.Differences, *d)
		}
	}
	for _, l := range s.limits {
		l.sum.Name = l.Name
		out.Limits = append(out.Limits, l.sum)
	}
	if s.checks != nil {
		out.Guardrails = s.checks.sums()
	}
	for _, why := range slices.Sorted(maps.Keys(s.open)) {
		out.Unjudged = append(out.Unjudged, *s.open[why])
	}
	return out
}

func (s *sums) byModel() []ModelSum {
	rest := ModelSum{}
	out := []ModelSum{}
	for _, m := range s.models {
		out = append(out, *m)
	}
	slices.SortFunc(out, func(a, b ModelSum) int {
		return cmp.Or(cmp.Compare(max(b.Before.cost, b.After.cost), max(a.Before.cost, a.After.cost)), cmp.Compare(b.Before.Calls, a.Before.Calls),
			strings.Compare(nameOf(a.Provider), nameOf(b.Provider)), strings.Compare(nameOf(a.Model), nameOf(b.Model)))
	})
	for len(out) > maxModels {
		last := &out[len(out)-1]
		for _, p := range [...][2]*Part{{&rest.Before, &last.Before}, {&rest.After, &last.After}} {
			p[0].Calls, p[0].cost = p[0].Calls+p[1].Calls, plus(p[0].cost, p[1].cost)
		}
		if out = out[:len(out)-1]; len(out) == maxModels {
			out = append(out, rest)
			break
		}
	}
	for i := range out {
		for _, p := range []*Part{&out[i].Before, &out[i].After} {
			p.Cost, p.Unit, p.USD = cents(p.cost), pricing.CostUnit, p.cost.USD()
		}
	}
	return out
}

func nameOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

package analytics

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/prompt"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
)

// Results are what became of the versions of an experiment.
type Results struct {
	ExperimentID string         `json:"experiment_id"`
	PromptID     string         `json:"prompt_id"`
	Status       string         `json:"status"`
	From         *admin.Instant `json:"from" doc:"null before the experiment is started."`
	To           *admin.Instant `json:"to"`
	Confidence   float64        `json:"confidence" doc:"Of all intervals."`
	Methods      Methods        `json:"methods"`
	Partial      bool           `json:"feedback_is_partial" doc:"The time range has more ratings than one query reads; only the first are counted."`
	Variants     []VariantOf    `json:"variants"`
	Object       string         `json:"object" enum:"prompt-experiment-results"`
}

// Methods name how the intervals are made.
type Methods struct {
	Rates           string `json:"rates"`
	Means           string `json:"means"`
	RateDifferences string `json:"rate_differences"`
	MeanDifferences string `json:"mean_differences"`
}

var methods = Methods{"Wilson score", "normal approximation", "Newcombe", "Welch, normal approximation"}

// Measures are the measurements of one version, or its differences from the first version.
type Measures struct {
	ErrorRate    Estimate `json:"error_rate" doc:"Percentage of failed requests, without those denied by guardrails."`
	DeniedRate   Estimate `json:"denied_rate" doc:"Percentage denied by guardrails."`
	FailedRate   Estimate `json:"failed_check_rate" doc:"Percentage admitted although a guardrail failed."`
	Cost         Estimate `json:"cost" doc:"Per request, in cost_unit."`
	CostUnit     string   `json:"cost_unit" enum:"cents" doc:"The unit of cost: US cents."`
	CostUSD      Estimate `json:"cost_usd" doc:"cost in US dollars."`
	Latency      Estimate `json:"latency" doc:"Milliseconds per request."`
	InputTokens  Estimate `json:"input_tokens"`
	OutputTokens Estimate `json:"output_tokens"`
	Feedback     Estimate `json:"feedback" doc:"Weighted value by rating."`
}

// VariantOf is one version.
type VariantOf struct {
	Version     int64       `json:"prompt_version"`
	Weight      int64       `json:"weight"`
	Requests    int64       `json:"requests"`
	Share       float64     `json:"share" doc:"Percentage of the experiment's requests."`
	TotalCost   float64     `json:"total_cost" doc:"In cost_unit."`
	CostUnit    string      `json:"cost_unit" enum:"cents" doc:"The unit of total_cost: US cents."`
	TotalUSD    json.Number `json:"total_cost_usd" doc:"Exact value of total_cost in US dollars."`
	Ratings     int64       `json:"feedback_count"`
	Measures    Measures    `json:"measures"`
	VersusFirst *Measures   `json:"versus_first" doc:"Difference from the first version; an interval that contains 0 is not significant."`
}

// experiments is the route of results.
func (f *family) experiments() admin.Route {
	return admin.Route{
		Method: "GET", Path: "/prompts/{promptId}/experiments/{experimentId}/results", Name: "getPromptExperimentResults",
		Doc:    "Compare the versions of an experiment: requests, cost, latency, tokens, errors, feedback and verdicts of guardrails, with confidence intervals.",
		Scopes: scopes, Level: admin.InWorkspace, OrgKeyWithoutWorkspace: true, ResponseOf: admin.SchemaOf[Results], Do: f.results,
	}
}

func (f *family) results(c *admin.Call) (any, error) {
	missing := func(what, name string) error {
		return fault.Newf(fault.NotFound, name, "This %s does not exist", what)
	}
	name := prompt.ParseReference(c.Param("promptId")).Name
	if err := admin.MoveByName(c, prompt.KindPrompt, name, "prompt"); err != nil {
		return nil, err
	}
	of, ok, err := c.Resources.Get(c.Context, c.Scope, prompt.KindPrompt, name)
	if err != nil {
		return nil, err
	}
	if !ok || of.Archived() {
		return nil, missing("prompt", "promptId")
	}
	id := c.Param("experimentId")
	if !admin.IsUUID(id) {
		return nil, missing("prompt experiment", "experimentId")
	}
	rec, ok, err := c.Resources.Get(c.Context, c.Scope, prompt.KindExperiment.Of(of.ID), id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, missing("prompt experiment", "experimentId")
	}
	var e prompt.Experiment
	if err := json.Unmarshal(rec.Body, &e); err != nil {
		return nil, fmt.Errorf("analytics: stored experiment %s: %w", rec.ID, err)
	}
	out := &Results{
		ExperimentID: rec.ID, PromptID: of.ID, Status: rec.Status, Confidence: 0.95, Methods: methods, Variants: make([]VariantOf, len(e.Variants)), Object: "prompt-experiment-results",
	}
	found := map[string]*report.Variant{}
	if e.Started != nil {
		if found, err = f.variants(c, &e, out); err != nil {
			return nil, err
		}
	}
	out.compare(&e, found)
	return out, nil
}

// variants reads what became of the experiment's requests, up to now or its end.
func (f *family) variants(c *admin.Call, e *prompt.Experiment, out *Results) (map[string]*report.Variant, error) {
	filter := report.Filter{From: *e.Started, To: c.Now, Experiments: []string{out.ExperimentID}, Endpoints: []string{"chatComplete", "complete"}}
	if e.Ended != nil {
		// Requests that began before the end was known everywhere are among them.
		filter.To = e.Ended.Add(time.Minute)
	}
	from, to := admin.Instant(filter.From), admin.Instant(filter.To)
	out.From, out.To = &from, &to
	if err := usagequery.Restrict(c, &filter); err != nil {
		return nil, err
	}
	rated := map[string]report.Sample{}
	n := 0
	err := f.feedback.Between(c.Context, c.Scope, filter.From, c.Now.Add(time.Second), func(r *feedback.Feedback) bool {
		if n++; n > usagequery.MaxFeedback {
			out.Partial = true
			return false
		}
		s := rated[r.Trace]
		s.Add(r.Weighted())
		rated[r.Trace] = s
		return true
	})
	if err != nil {
		return nil, err
	}
	found, err := f.reader.Variants(c.Context, c.Scope, &filter, rated)
	return found, usagequery.Failed(err)
}

const (
	cents  = 1e-7 // of a nano-dollar
	usd    = 1e-9 // of a nano-dollar
	itself = 1.0
)

// compare makes the entries of the versions, in the order of the experiment.
func (r *Results) compare(e *prompt.Experiment, found map[string]*report.Variant) {
	all := make([]report.Variant, len(e.Variants))
	total := int64(0)
	for i, v := range e.Variants {
		if got := found[strconv.FormatInt(v.Version, 10)]; got != nil {
			all[i] = *got
		}
		total += all[i].Requests
	}
	for i, v := range e.Variants {
		s := &all[i]
		out := VariantOf{Version: v.Version, Weight: v.Weight, Requests: s.Requests, TotalCost: s.Cost.Sum * cents, CostUnit: pricing.CostUnit, TotalUSD: pricing.NanoDollars(s.Cost.Sum).USD(), Ratings: s.Feedback.N, Measures: measure(s)}
		if total > 0 {
			out.Share = 100 * float64(s.Requests) / float64(total)
		}
		if i > 0 {
			d := differ(s, &all[0])
			out.VersusFirst = &d
		}
		r.Variants[i] = out
	}
}

func measure(s *report.Variant) Measures {
	return Measures{
		ErrorRate: rate(s.Errors, s.Requests), DeniedRate: rate(s.Denied, s.Requests), FailedRate: rate(s.Failed, s.Requests),
		Cost: mean(s.Cost, cents), CostUnit: pricing.CostUnit, CostUSD: mean(s.Cost, usd), Latency: mean(s.Duration, itself), InputTokens: mean(s.TokensIn, itself), OutputTokens: mean(s.TokensOut, itself), Feedback: mean(s.Feedback, itself),
	}
}

func differ(s, first *report.Variant) Measures {
	rates := func(k, k0 int64) Estimate { return rateDifference(k, s.Requests, k0, first.Requests) }
	return Measures{
		ErrorRate: rates(s.Errors, first.Errors), DeniedRate: rates(s.Denied, first.Denied), FailedRate: rates(s.Failed, first.Failed),
		Cost: meanDifference(s.Cost, first.Cost, cents), CostUnit: pricing.CostUnit, CostUSD: meanDifference(s.Cost, first.Cost, usd), Latency: meanDifference(s.Duration, first.Duration, itself),
		InputTokens: meanDifference(s.TokensIn, first.TokensIn, itself), OutputTokens: meanDifference(s.TokensOut, first.TokensOut, itself), Feedback: meanDifference(s.Feedback, first.Feedback, itself),
	}
}

// z is the two-sided 95% quantile of the normal distribution.
const z = 1.959963984540054

// Estimate is a number with the interval that holds the true one in 95 of 100 cases;
// both ends are null where there is too little to say.
type Estimate struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// between is an estimate with its interval.
func between(value, low, high float64) Estimate { return Estimate{value, &low, &high} }

// rate is k of n in per cent, with the interval of Wilson's score: it stays within 0 and
// 100, and says something also where k is 0 or n is small.
func rate(k, n int64) Estimate {
	if n == 0 {
		return Estimate{}
	}
	low, high := wilson(k, n)
	return between(100*float64(k)/float64(n), 100*low, 100*high)
}

func wilson(k, n int64) (low, high float64) {
	p, m := float64(k)/float64(n), float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return math.Max(0, middle-half), math.Min(1, middle+half)
}

// rateDifference is by how many percentage points k of n is above k0 of n0, with an
// interval by Newcombe's method, which combines two intervals of Wilson.
func rateDifference(k, n, k0, n0 int64) Estimate {
	if n == 0 || n0 == 0 {
		return Estimate{}
	}
	p, p0 := float64(k)/float64(n), float64(k0)/float64(n0)
	low, high := wilson(k, n)
	low0, high0 := wilson(k0, n0)
	d := p - p0
	return between(100*d, 100*(d-math.Hypot(p-low, high0-p0)), 100*(d+math.Hypot(high-p, p0-low0)))
}

// mean is the mean of a sample in another unit, with the interval of the normal
// approximation.
func mean(s report.Sample, unit float64) Estimate {
	m := s.Mean() * unit
	if s.N < 2 {
		return Estimate{Value: m}
	}
	half := z * unit * math.Sqrt(s.Variance()/float64(s.N))
	return between(m, m-half, m+half)
}

// meanDifference is by how much a mean is above another, by Welch's method: the
// variances need not be equal.
func meanDifference(s, s0 report.Sample, unit float64) Estimate {
	if s.N == 0 || s0.N == 0 {
		return Estimate{}
	}
	d := (s.Mean() - s0.Mean()) * unit
	if s.N < 2 || s0.N < 2 {
		return Estimate{Value: d}
	}
	half := z * unit * math.Sqrt(s.Variance()/float64(s.N)+s0.Variance()/float64(s0.N))
	return between(d, d-half, d+half)
}

package report

import (
	"context"
	"math"
	"strings"

	"github.com/axiomhq/hyperloglog"

	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// Sample aggregates measurements: it yields a mean and its interval.
type Sample struct {
	N           int64
	Sum, square float64
}

// Add adds a number.
func (s *Sample) Add(v float64) {
	s.N++
	s.Sum += v
	s.square += v * v
}

func (s *Sample) merge(o *Sample) {
	s.N += o.N
	s.Sum += o.Sum
	s.square += o.square
}

// Mean returns the mean; 0 without values.
func (s *Sample) Mean() float64 { return ratio(s.Sum, s.N) }

// Variance returns the sample variance (divided by N-1); 0 for fewer than two values.
func (s *Sample) Variance() float64 {
	if s.N < 2 {
		return 0
	}
	return math.Max(0, (s.square-s.Sum*s.Sum/float64(s.N))/float64(s.N-1))
}

// Variant aggregates the requests that an experiment assigned to one version.
type Variant struct {
	Requests, Errors int64 // errors: status outside 200-299, except for failed guardrails
	Denied, Failed   int64 // by guardrails: denied (446), and admitted although one failed (246)
	Cost             Sample
	Duration         Sample // milliseconds
	TokensIn         Sample
	TokensOut        Sample
	Feedback         Sample // weighted values

	rated map[string]struct{} // traces with counted feedback
}

func (v *Variant) merge(o *Variant, feedback map[string]Sample) {
	v.Requests += o.Requests
	v.Errors += o.Errors
	v.Denied += o.Denied
	v.Failed += o.Failed
	for _, p := range [][2]*Sample{{&v.Cost, &o.Cost}, {&v.Duration, &o.Duration}, {&v.TokensIn, &o.TokensIn}, {&v.TokensOut, &o.TokensOut}} {
		p[0].merge(p[1])
	}
	for trace := range o.rated {
		v.rate(trace, feedback)
	}
}

// rate counts the feedback of a trace, once for any number of requests.
func (v *Variant) rate(trace string, feedback map[string]Sample) {
	s, rated := feedback[trace]
	if _, counted := v.rated[trace]; !rated || counted {
		return
	}
	if v.rated == nil {
		v.rated = map[string]struct{}{}
	}
	v.rated[strings.Clone(trace)] = struct{}{} // a clone, to release the page
	v.Feedback.merge(&s)
}

// variantWeight estimates the memory in bytes of the collectors of an experiment.
const variantWeight = 64 << 10

// Variants returns the aggregates of each version of an experiment, by the version's
// number in decimal. feedback is the feedback in the time, by trace.
func (r *Reader) Variants(ctx context.Context, sc store.Scope, f *Filter, feedback map[string]Sample) (map[string]*Variant, error) {
	leave, err := r.src.budget.admit(ctx, variantWeight+128*int64(len(feedback)))
	if err != nil {
		return nil, err
	}
	defer leave()
	var sum *variants
	err = retryMerged(func() error {
		sum = &variants{feedback: feedback, of: map[string]*Variant{}}
		q := &query{bucket: func(int64) int { return 0 }, collect: func() collector { return &variants{feedback: feedback, of: map[string]*Variant{}} }, merge: sum.merge}
		for _, d := range []segment.Dim{segment.PromptVersion, segment.Status, segment.TraceID} {
			q.need.dims[d] = true
		}
		for _, i := range []segment.Int{segment.Cost, segment.Duration, segment.TokensIn, segment.TokensOut} {
			q.need.ints[i] = true
		}
		return r.run(ctx, sc, f, q)
	})
	if err != nil {
		return nil, err
	}
	return sum.of, nil
}

// variants is the collector of Variants.
type variants struct {
	feedback map[string]Sample
	of       map[string]*Variant
	t        *view
}

func (c *variants) begin(t *view)                          { c.t = t }
func (c *variants) users(*hyperloglog.Sketch, string, int) {}

func (c *variants) row(i, _ int) {
	t := c.t
	v := c.get(t.Dims[segment.PromptVersion].At(i))
	v.Requests++
	switch status := t.Dims[segment.Status].At(i); {
	case status == "446":
		v.Denied++
	case status == "246":
		v.Failed++
	case !strings.HasPrefix(status, "2") && status != "101":
		v.Errors++
	}
	v.Cost.Add(float64(t.Ints[segment.Cost][i]))
	v.Duration.Add(float64(t.Ints[segment.Duration][i]) / 1000)
	v.TokensIn.Add(float64(t.Ints[segment.TokensIn][i]))
	v.TokensOut.Add(float64(t.Ints[segment.TokensOut][i]))
	if len(c.feedback) > 0 {
		v.rate(t.Dims[segment.TraceID].At(i), c.feedback)
	}
}

func (c *variants) get(version string) *Variant {
	v := c.of[version]
	if v == nil {
		v = new(Variant)
		c.of[strings.Clone(version)] = v
	}
	return v
}

func (c *variants) merge(o collector) {
	for version, v := range o.(*variants).of {
		c.get(version).merge(v, c.feedback)
	}
}

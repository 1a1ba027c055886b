package meter

import (
	"cmp"
	"math"
	"slices"
	"time"

	"gateway/shared/host/metric"
	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// Maximum numbers of distinct pairs of provider and model: in one line, which is written
// when it is full, and in total; further pairs count as Other.
const (
	maxInLine = 30
	maxInAll  = 300
	maxName   = 100 // bytes of a model's name
	// maxNamed limits the names per source if callers can invent them: the tools of MCP
	// servers, the methods of agents.
	maxNamed = 50
)

// pair is the provider and model of a sum.
type pair struct{ provider, model string }

// pairOf returns the pair of a record. A model without a price may be invented by the
// caller.
func pairOf(r *usage.Record) pair {
	p := pair{r.Provider, r.Model}
	if p.provider == "" {
		return pair{metric.Other, metric.Other} // it was not forwarded
	}
	unknown := r.Call != nil && (r.Call.Code != 0 || r.Call.Decision != usage.CallAllowed) // a name that no server lists
	if unknown || !r.Priced || p.model == "" || len(p.model) > maxName || !plain(p.model) {
		p.model = metric.Other
	}
	return p
}

// plain reports whether a name consists of visible ASCII characters.
func plain(name string) bool {
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return false
		}
	}
	return true
}

// bounds are those of the histogram of latencies, in milliseconds.
var bounds = [...]float64{100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 120_000, 300_000}

// sums are the totals of a pair.
type sums struct {
	requests, errors, input, output int64
	cost                            pricing.NanoDollars
	latency                         time.Duration // total
	longest, shortest               time.Duration
	buckets                         [len(bounds) + 1]int64 // by bounds; the last is above them
}

// series are sums by provider and model, of at most most pairs.
type series struct {
	most  int
	of    map[pair]*sums
	named map[string]int // number of pairs of each source with invented names, by provider
}

func (s *series) full() bool { return len(s.of) >= s.most }

func (s *series) add(r *usage.Record) {
	p := pairOf(r)
	at := s.of[p]
	if at == nil && r.Call != nil && s.named[p.provider] >= maxNamed {
		p.model = metric.Other
		at = s.of[p]
	}
	if at == nil && s.full() {
		p = pair{metric.Other, metric.Other}
		at = s.of[p]
	}
	if at == nil {
		if s.of == nil {
			s.of, s.named = map[pair]*sums{}, map[string]int{}
		}
		if r.Call != nil {
			s.named[p.provider]++
		}
		at = &sums{shortest: math.MaxInt64}
		s.of[p] = at
	}
	at.add(r)
}

func (s *sums) add(r *usage.Record) {
	s.requests++
	if !r.Success() {
		s.errors++
	}
	s.input += r.Usage.InputTokens()
	s.output += r.Usage.OutputTokens()
	s.cost += r.Cost
	s.latency += r.Duration
	s.longest, s.shortest = max(s.longest, r.Duration), min(s.shortest, r.Duration)
	at, _ := slices.BinarySearch(bounds[:], milliseconds(r.Duration))
	s.buckets[at]++
}

// each calls do with the pairs, in order.
func (s *series) each(do func(pair, *sums)) {
	pairs := make([]pair, 0, len(s.of))
	for p := range s.of {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.provider, b.provider), cmp.Compare(a.model, b.model))
	})
	for _, p := range pairs {
		do(p, s.of[p])
	}
}

// usd converts an amount to dollars.
func usd(n pricing.NanoDollars) float64 { return float64(n) / float64(pricing.Dollar) }

// list returns the pairs as data of a log line, which are not metrics.
func (s *series) list() (out []map[string]any) {
	s.each(func(p pair, s *sums) {
		out = append(out, map[string]any{
			metric.Provider: p.provider, metric.Model: p.model, metric.Requests: s.requests, metric.Errors: s.errors,
			metric.Latency: math.Round(milliseconds(s.latency) / float64(s.requests)), metric.InputTokens: s.input, metric.OutputTokens: s.output, metric.Cost: usd(s.cost),
		})
	})
	return out
}

// ofModels are the metrics of a pair.
var ofModels = []named{
	{metric.Requests, "Count"}, {metric.Errors, "Count"}, {metric.Latency, "Milliseconds"}, {metric.InputTokens, "Count"}, {metric.OutputTokens, "Count"}, {metric.Cost, "None"},
}

// modelLine returns the line of a pair.
func (m *Meter) modelLine(p pair, s *sums, now time.Time) map[string]any {
	return map[string]any{
		"Installation": m.name, metric.Provider: p.provider, metric.Model: p.model, "level": "INFO", "message": "metrics of a model", "timestamp": now.UTC().Format(time.RFC3339Nano),
		metric.Requests: s.requests, metric.Errors: s.errors, metric.InputTokens: s.input, metric.OutputTokens: s.output, metric.Cost: usd(s.cost),
		metric.Latency: s.distribution(),
	}
}

// distribution returns the latencies as values with their counts: the latencies of a
// bucket count as the middle of the bucket's part between the minimum and the maximum.
func (s *sums) distribution() (d distribution) {
	least, most := milliseconds(s.shortest), milliseconds(s.longest)
	for i, n := range s.buckets {
		if n == 0 {
			continue
		}
		from, to := 0.0, most
		if i > 0 {
			from = bounds[i-1]
		}
		if i < len(bounds) {
			to = bounds[i]
		}
		from, to = max(from, least), min(to, most)
		d.Values, d.Counts = append(d.Values, math.Round((from+to)*500)/1000), append(d.Counts, n)
	}
	return d
}

package report

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// Graph is a time series as the administration API gives it. Money is in US
// cents, latencies are in milliseconds, rates in per cent.
type Graph struct {
	Summary any    `json:"summary"`
	Points  []any  `json:"data_points"`
	Object  string `json:"object"`
}

// Shapes of summaries and points. Timestamps are the starts of buckets.
type (
	Total struct {
		Total int64 `json:"total"`
	}
	TotalPoint struct {
		Timestamp time.Time `json:"timestamp"`
		Total
	}
	Money struct {
		Total float64 `json:"total"`
		Avg   float64 `json:"avg"`
	}
	MoneyPoint struct {
		Timestamp time.Time `json:"timestamp"`
		Money
	}
	Tokens struct {
		Total int64   `json:"total"`
		Avg   float64 `json:"avg"`
	}
	TokensPoint struct {
		Timestamp time.Time `json:"timestamp"`
		Tokens
	}
	Latency struct {
		Avg float64 `json:"avg"`
		P50 float64 `json:"p50"`
		P90 float64 `json:"p90"`
		P99 float64 `json:"p99"`
	}
	LatencyPoint struct {
		Timestamp time.Time `json:"timestamp"`
		Latency
	}
	UserRequests struct {
		Total  int64   `json:"total"`
		Unique int64   `json:"unique"`
		Avg    float64 `json:"avg"`
	}
	AvgPoint struct {
		Timestamp time.Time `json:"timestamp"`
		Avg       float64   `json:"avg"`
	}
	Rate struct {
		Rate float64 `json:"rate"`
	}
	RatePoint struct {
		Timestamp time.Time `json:"timestamp"`
		Rate
	}
	StatusCount struct {
		Status int   `json:"response_status_code"`
		Count  int64 `json:"count"`
	}
	StackPoint struct {
		Timestamp time.Time     `json:"timestamp"`
		Stats     []StatusCount `json:"stats"`
	}
	StatusCodes struct {
		Errors int64 `json:"total_errors"`
		Codes  int   `json:"unique_error_codes"`
	}
	StatusCode struct {
		Status int   `json:"status_code"`
		Count  int64 `json:"count"`
	}
	Rescued struct {
		Retry    int64 `json:"retry"`
		Fallback int64 `json:"fallback"`
	}
	RetryCount struct {
		Retries int   `json:"retry_success_count"`
		Count   int64 `json:"count"`
	}
	RescuedPoint struct {
		Timestamp time.Time    `json:"timestamp"`
		Retry     []RetryCount `json:"retry"`
		Fallback  int64        `json:"fallback"`
	}
	HitRate struct {
		Total int64   `json:"total"`
		Rate  float64 `json:"rate"`
	}
	HitRatePoint struct {
		Timestamp     time.Time `json:"timestamp"`
		SimpleHits    int64     `json:"simple_hits"`
		SemanticHits  int64     `json:"semantic_hits"`
		Rate          float64   `json:"rate"`
		SimpleSaved   float64   `json:"cumulative_simple_cache_savings"`
		SemanticSaved float64   `json:"cumulative_semantic_cache_savings"`
	}
	Empty struct{}
)

// drawing makes one graph.
type drawing struct {
	aspect
	// draw gets the whole and the buckets.
	draw func(sum *Stats, list []Stats, b *buckets) Graph
	// own draws from the groups instead.
	own func(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (Graph, error)
}

var plain = aspect{by: segment.NumDims}

// graphs by the end of their path.
var graphs = map[string]drawing{
	"requests": {aspect: plain, draw: func(sum *Stats, list []Stats, b *buckets) Graph {
		return points(Total{sum.Requests}, list, b, func(s *Stats, at time.Time) any { return TotalPoint{at, Total{s.Requests}} })
	}},
	"cost": {aspect: plain, draw: func(sum *Stats, list []Stats, b *buckets) Graph {
		return points(money(sum), list, b, func(s *Stats, at time.Time) any { return MoneyPoint{at, money(s)} })
	}},
	"tokens": {aspect: plain, draw: func(sum *Stats, list []Stats, b *buckets) Graph {
		return points(tokens(sum), list, b, func(s *Stats, at time.Time) any { return TokensPoint{at, tokens(s)} })
	}},
	"latency": {aspect: aspect{by: segment.NumDims, latencies: true}, draw: func(sum *Stats, list []Stats, b *buckets) Graph {
		return points(latency(sum), list, b, func(s *Stats, at time.Time) any { return LatencyPoint{at, latency(s)} })
	}},
	"users": {aspect: aspect{by: segment.NumDims, users: true}, draw: func(sum *Stats, list []Stats, b *buckets) Graph {
		return points(Total{sum.Users()}, list, b, func(s *Stats, at time.Time) any { return TotalPoint{at, Total{s.Users()}} })
	}},
	"users/requests": {aspect: aspect{by: segment.NumDims, users: true}, draw: func(sum *Stats, list []Stats, b *buckets) Graph {
		avg := func(s *Stats) float64 { return ratio(float64(s.WithUser), s.Users()) }
		return points(UserRequests{sum.WithUser, sum.Users(), avg(sum)}, list, b, func(s *Stats, at time.Time) any { return AvgPoint{at, avg(s)} })
	}},
	"errors": {aspect: plain, draw: func(sum *Stats, list []Stats, b *buckets) Graph {
		return points(Total{sum.Errors}, list, b, func(s *Stats, at time.Time) any { return TotalPoint{at, Total{s.Errors}} })
	}},
	"errors/rate": {aspect: plain, draw: func(sum *Stats, list []Stats, b *buckets) Graph {
		rate := func(s *Stats) Rate { return Rate{ratio(100*float64(s.Errors), s.Requests)} }
		return points(rate(sum), list, b, func(s *Stats, at time.Time) any { return RatePoint{at, rate(s)} })
	}},
	"cache/hit-rate": {aspect: plain, draw: hitRate},
	"cache/latency": {aspect: plain, draw: func(_ *Stats, list []Stats, b *buckets) Graph {
		return points(Empty{}, list, b, func(s *Stats, at time.Time) any {
			return AvgPoint{at, milliseconds(s.hitTime, s.Hits+s.Semantic)}
		})
	}},
	"errors/stacks":       {own: stacks},
	"errors/status-codes": {own: statusCodes},
	"requests/rescued":    {own: rescued},
}

// GraphNames lists the graphs there are, as the ends of their paths.
func GraphNames() []string {
	names := make([]string, 0, len(graphs))
	for name := range graphs {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Graph draws a graph of GraphNames; ok is false for another name. f is valid.
func (r *Reader) Graph(ctx context.Context, sc store.Scope, name string, f *Filter) (g Graph, ok bool, err error) {
	d, ok := graphs[name]
	if !ok {
		return Graph{}, false, nil
	}
	if d.own != nil {
		g, err = d.own(ctx, r, sc, f)
		return g, true, err
	}
	b, groups, err := r.series(ctx, sc, f, d.aspect)
	if err != nil {
		return Graph{}, true, err
	}
	list := groups[""]
	if list == nil {
		list = make([]Stats, b.n)
	}
	return d.draw(total(list), list, &b), true, nil
}

func points(summary any, list []Stats, b *buckets, point func(*Stats, time.Time) any) Graph {
	g := Graph{Summary: summary, Points: make([]any, len(list)), Object: "analytics-graph"}
	for i := range list {
		g.Points[i] = point(&list[i], b.at(i))
	}
	return g
}

func money(s *Stats) Money { return Money{Cents(s.Cost), ratio(Cents(s.Cost), s.Requests)} }

func tokens(s *Stats) Tokens {
	n := s.TokensIn + s.TokensOut
	return Tokens{n, ratio(float64(n), s.Requests)}
}

func latency(s *Stats) Latency {
	return Latency{s.AvgLatency(), s.Latency(0.5), s.Latency(0.9), s.Latency(0.99)}
}

func hitRate(sum *Stats, list []Stats, b *buckets) Graph {
	rate := func(s *Stats) float64 { return ratio(100*float64(s.Hits+s.Semantic), s.Requests) }
	var run Stats
	return points(HitRate{sum.Hits + sum.Semantic, rate(sum)}, list, b, func(s *Stats, at time.Time) any {
		run.Saved += s.Saved
		run.simpleSaved += s.simpleSaved
		return HitRatePoint{at, s.Hits, s.Semantic, rate(s), Cents(run.simpleSaved), Cents(run.Saved - run.simpleSaved)}
	})
}

// byNumber gives the groups of a dimension that is a number, in its order.
func byNumber(groups map[string][]Stats) []int {
	var numbers []int
	for name := range groups {
		if n, err := strconv.Atoi(name); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

func stacks(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (Graph, error) {
	b, groups, err := r.series(ctx, sc, f, aspect{by: segment.Status})
	if err != nil {
		return Graph{}, err
	}
	var all int64
	g := Graph{Points: make([]any, b.n), Object: "analytics-graph"}
	codes := byNumber(groups)
	for i := range g.Points {
		p := StackPoint{Timestamp: b.at(i), Stats: []StatusCount{}}
		for _, code := range codes {
			if n := groups[strconv.Itoa(code)][i].Errors; n > 0 {
				p.Stats = append(p.Stats, StatusCount{code, n})
				all += n
			}
		}
		g.Points[i] = p
	}
	g.Summary = Total{all}
	return g, nil
}

func statusCodes(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (Graph, error) {
	groups, err := r.tally(ctx, sc, f, aspect{by: segment.Status}, 1, func(int64) int { return 0 })
	if err != nil {
		return Graph{}, err
	}
	var summary StatusCodes
	var list []StatusCode
	for _, code := range byNumber(groups) {
		if n := groups[strconv.Itoa(code)][0].Errors; n > 0 {
			list = append(list, StatusCode{code, n})
			summary.Errors += n
			summary.Codes++
		}
	}
	slices.SortStableFunc(list, func(x, y StatusCode) int { return cmp.Compare(y.Count, x.Count) })
	g := Graph{Summary: summary, Points: make([]any, len(list)), Object: "analytics-graph"}
	for i := range list {
		g.Points[i] = list[i]
	}
	return g, nil
}

// rescued counts the requests that a retry or a later target saved.
func rescued(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (Graph, error) {
	b, retries, err := r.series(ctx, sc, f, aspect{by: segment.Retries})
	if err != nil {
		return Graph{}, err
	}
	_, fallbacks, err := r.series(ctx, sc, f, aspect{by: segment.Fallback})
	if err != nil {
		return Graph{}, err
	}
	var summary Rescued
	g := Graph{Points: make([]any, b.n), Object: "analytics-graph"}
	counts := byNumber(retries)
	for i := range g.Points {
		p := RescuedPoint{Timestamp: b.at(i), Retry: []RetryCount{}}
		for _, n := range counts {
			if s := &retries[strconv.Itoa(n)][i]; n > 0 && s.Requests > s.Errors {
				p.Retry = append(p.Retry, RetryCount{n, s.Requests - s.Errors})
				summary.Retry += s.Requests - s.Errors
			}
		}
		if list := fallbacks["1"]; list != nil {
			p.Fallback = list[i].Requests
			summary.Fallback += p.Fallback
		}
		g.Points[i] = p
	}
	g.Summary = summary
	return g, nil
}

// CacheSummary is the answer about all cache hits of a time.
type CacheSummary struct {
	Hits          int64   `json:"hits"`
	AvgLatency    float64 `json:"avg_latency"` // of hits, milliseconds
	TotalRequests int64   `json:"total_requests"`
	Speedup       float64 `json:"cache_speedup"` // by how many per cent hits are faster than the other requests
}

// Cache gives the cache summary. f is valid.
func (r *Reader) Cache(ctx context.Context, sc store.Scope, f *Filter) (CacheSummary, error) {
	groups, err := r.tally(ctx, sc, f, plain, 1, func(int64) int { return 0 })
	if err != nil {
		return CacheSummary{}, err
	}
	sum := total(groups[""])
	hits := sum.Hits + sum.Semantic
	c := CacheSummary{Hits: hits, AvgLatency: milliseconds(sum.hitTime, hits), TotalRequests: sum.Requests}
	if others := milliseconds(sum.Duration-sum.hitTime, sum.Requests-hits); hits > 0 && others > 0 {
		c.Speedup = 100 * (others - c.AvgLatency) / others
	}
	return c, nil
}

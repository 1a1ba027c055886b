package report

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// Graph is a time series in the format of the administration API. Money is in US cents,
// latencies are in milliseconds, rates in percent.
type Graph struct {
	Summary any    `json:"summary"`
	Points  []any  `json:"data_points"`
	Object  string `json:"object" enum:"analytics-graph"`
}

// Types of summaries and points. Timestamps are the starts of buckets.
type (
	Sum struct {
		Total int64 `json:"total"`
	}
	TotalPoint struct {
		Bucket
		Sum
	}
	Money struct {
		Total      float64     `json:"total" doc:"In cost_unit."`
		Avg        float64     `json:"avg" doc:"Per request, in cost_unit."`
		Gateway    float64     `json:"gateway_total" doc:"Cost of the gateway itself, in cost_unit."`
		Unit       string      `json:"cost_unit" enum:"cents" doc:"The unit of total, avg and gateway_total: US cents."`
		USD        json.Number `json:"cost_usd" doc:"Exact value of total in US dollars."`
		GatewayUSD json.Number `json:"gateway_total_usd" doc:"Exact value of gateway_total in US dollars."`
	}
	MoneyPoint struct {
		Bucket
		Money
	}
	Tokens struct {
		Total int64   `json:"total"`
		Avg   float64 `json:"avg"`
	}
	TokensPoint struct {
		Bucket
		Tokens
	}
	Latency struct {
		Avg float64 `json:"avg"`
		P50 float64 `json:"p50"`
		P90 float64 `json:"p90"`
		P95 float64 `json:"p95"`
		P99 float64 `json:"p99"`
	}
	LatencyPoint struct {
		Bucket
		Latency
	}
	UserRequests struct {
		Total  int64   `json:"total"`
		Unique int64   `json:"unique"`
		Avg    float64 `json:"avg"`
	}
	AvgPoint struct {
		Bucket
		Avg float64 `json:"avg"`
	}
	Share struct {
		Rate float64 `json:"rate"`
	}
	RatePoint struct {
		Bucket
		Share
	}
	StatusCount struct {
		Status int   `json:"response_status_code"`
		Count  int64 `json:"count"`
	}
	StackPoint struct {
		Bucket
		Stats []StatusCount `json:"stats"`
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
		Bucket
		Retry    []RetryCount `json:"retry"`
		Fallback int64        `json:"fallback"`
	}
	HitRate struct {
		Total int64   `json:"total"`
		Rate  float64 `json:"rate"`
	}
	HitRatePoint struct {
		Bucket
		SimpleHits    int64   `json:"simple_hits"`
		SemanticHits  int64   `json:"semantic_hits"`
		Rate          float64 `json:"rate"`
		SimpleSaved   float64 `json:"cumulative_simple_cache_savings" doc:"In cost_unit."`
		SemanticSaved float64 `json:"cumulative_semantic_cache_savings" doc:"In cost_unit."`
		Unit          string  `json:"cost_unit" enum:"cents" doc:"The unit of the savings: US cents."`

		SimpleUSD   json.Number `json:"cumulative_simple_cache_savings_usd" doc:"The exact value in US dollars."`
		SemanticUSD json.Number `json:"cumulative_semantic_cache_savings_usd" doc:"The exact value in US dollars."`
	}
	Empty struct{}

	// Bucket is the time of a point, and its first field.
	Bucket struct {
		Timestamp time.Time `json:"timestamp" doc:"Start of the bucket: a minute, an hour, a day or a week, depending on the length of the time range."`
	}
)

// drawing draws one graph with the given types of summary and points.
type drawing struct {
	summary, point reflect.Type
	draw           func(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (Graph, error)
}

var plain = aspect{by: segment.NumDims}

// drawRunning draws the buckets of a time: start begins a graph and returns the function
// that computes each of its points.
func drawRunning[S, P any](a aspect, sum func(*Stats) S, start func() func(Bucket, *Stats) P) drawing {
	return drawing{reflect.TypeFor[S](), reflect.TypeFor[P](), func(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (Graph, error) {
		b, groups, err := r.series(ctx, sc, f, a)
		if err != nil {
			return Graph{}, err
		}
		list := groups[""]
		if list == nil {
			list = make([]Stats, b.n)
		}
		point, points := start(), make([]P, len(list))
		for i := range list {
			points[i] = point(Bucket{b.at(i)}, &list[i])
		}
		return graph(sum(total(list)), points), nil
	}}
}

// drawEach is drawRunning for points that do not depend on earlier points.
func drawEach[S, P any](a aspect, sum func(*Stats) S, point func(Bucket, *Stats) P) drawing {
	return drawRunning(a, sum, func() func(Bucket, *Stats) P { return point })
}

// drawCustom draws a graph with a separate function.
func drawCustom[S, P any](draw func(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (S, []P, error)) drawing {
	return drawing{reflect.TypeFor[S](), reflect.TypeFor[P](), func(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (Graph, error) {
		summary, points, err := draw(ctx, r, sc, f)
		if err != nil {
			return Graph{}, err
		}
		return graph(summary, points), nil
	}}
}

func graph[P any](summary any, points []P) Graph {
	g := Graph{Summary: summary, Points: make([]any, len(points)), Object: "analytics-graph"}
	for i := range points {
		g.Points[i] = points[i]
	}
	return g
}

// graphs are the graphs, by the end of their path.
var graphs = map[string]drawing{
	"requests": drawEach(plain, requests, func(b Bucket, s *Stats) TotalPoint { return TotalPoint{b, requests(s)} }),
	"cost":     drawEach(plain, money, func(b Bucket, s *Stats) MoneyPoint { return MoneyPoint{b, money(s)} }),
	"tokens":   drawEach(plain, tokens, func(b Bucket, s *Stats) TokensPoint { return TokensPoint{b, tokens(s)} }),
	"latency": drawEach(aspect{by: segment.NumDims, latencies: true}, latency, func(b Bucket, s *Stats) LatencyPoint {
		return LatencyPoint{b, latency(s)}
	}),
	"users": drawEach(aspect{by: segment.NumDims, users: true}, users, func(b Bucket, s *Stats) TotalPoint { return TotalPoint{b, users(s)} }),
	"users/requests": drawEach(aspect{by: segment.NumDims, users: true}, userRequests, func(b Bucket, s *Stats) AvgPoint {
		return AvgPoint{b, userRequests(s).Avg}
	}),
	"errors":         drawEach(plain, failures, func(b Bucket, s *Stats) TotalPoint { return TotalPoint{b, failures(s)} }),
	"errors/rate":    drawEach(plain, rate, func(b Bucket, s *Stats) RatePoint { return RatePoint{b, rate(s)} }),
	"cache/hit-rate": drawRunning(plain, hitRate, hitRates),
	"cache/latency": drawEach(plain, func(*Stats) Empty { return Empty{} }, func(b Bucket, s *Stats) AvgPoint {
		return AvgPoint{b, milliseconds(s.hitTime, s.Hits+s.Semantic)}
	}),
	"errors/stacks":       drawCustom(stacks),
	"errors/status-codes": drawCustom(statusCodes),
	"requests/rescued":    drawCustom(rescued),
}

func requests(s *Stats) Sum { return Sum{s.Requests} }

func users(s *Stats) Sum { return Sum{s.Users()} }

func failures(s *Stats) Sum { return Sum{s.Errors} }

func userRequests(s *Stats) UserRequests {
	return UserRequests{s.WithUser, s.Users(), ratio(float64(s.WithUser), s.Users())}
}

func rate(s *Stats) Share { return Share{ratio(100*float64(s.Errors), s.Requests)} }

// GraphTypes returns the types of the summary and of a point of a graph of GraphNames; they
// serve to describe it.
func GraphTypes(name string) (summary, point reflect.Type) {
	return graphs[name].summary, graphs[name].point
}

// GraphNames lists the graphs, as the ends of their paths.
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
	g, err = d.draw(ctx, r, sc, f)
	return g, true, err
}

func money(s *Stats) Money {
	return Money{Cents(s.Cost), ratio(Cents(s.Cost), s.Requests), Cents(s.Running), pricing.CostUnit, s.Cost.USD(), s.Running.USD()}
}

func tokens(s *Stats) Tokens {
	n := s.TokensIn + s.TokensOut
	return Tokens{n, ratio(float64(n), s.Requests)}
}

func latency(s *Stats) Latency {
	return Latency{s.AvgLatency(), s.Latency(0.5), s.Latency(0.9), s.Latency(0.95), s.Latency(0.99)}
}

func hitRate(s *Stats) HitRate {
	hits := s.Hits + s.Semantic
	return HitRate{hits, ratio(100*float64(hits), s.Requests)}
}

// hitRates returns the points of one graph; savings are running totals.
func hitRates() func(Bucket, *Stats) HitRatePoint {
	var run Stats
	return func(b Bucket, s *Stats) HitRatePoint {
		run.Saved += s.Saved
		run.simpleSaved += s.simpleSaved
		return HitRatePoint{b, s.Hits, s.Semantic, hitRate(s).Rate, Cents(run.simpleSaved), Cents(run.Saved - run.simpleSaved), pricing.CostUnit, run.simpleSaved.USD(), (run.Saved - run.simpleSaved).USD()}
	}
}

// byNumber returns the groups of a dimension that is a number, ordered by the number.
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

func stacks(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (Sum, []StackPoint, error) {
	b, groups, err := r.series(ctx, sc, f, aspect{by: segment.Status})
	if err != nil {
		return Sum{}, nil, err
	}
	var all Sum
	list := make([]StackPoint, b.n)
	codes := byNumber(groups)
	for i := range list {
		list[i] = StackPoint{Bucket{b.at(i)}, []StatusCount{}}
		for _, code := range codes {
			if n := groups[strconv.Itoa(code)][i].Errors; n > 0 {
				list[i].Stats = append(list[i].Stats, StatusCount{code, n})
				all.Total += n
			}
		}
	}
	return all, list, nil
}

func statusCodes(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (summary StatusCodes, list []StatusCode, err error) {
	groups, err := r.tally(ctx, sc, f, aspect{by: segment.Status}, allTime)
	if err != nil {
		return summary, nil, err
	}
	for _, code := range byNumber(groups) {
		if n := groups[strconv.Itoa(code)][0].Errors; n > 0 {
			list = append(list, StatusCode{code, n})
			summary.Errors += n
			summary.Codes++
		}
	}
	slices.SortStableFunc(list, func(x, y StatusCode) int { return cmp.Compare(y.Count, x.Count) })
	return summary, list, nil
}

// rescued counts the requests that succeeded by a retry or a later target.
func rescued(ctx context.Context, r *Reader, sc store.Scope, f *Filter) (summary Rescued, list []RescuedPoint, err error) {
	b, retries, err := r.series(ctx, sc, f, aspect{by: segment.Retries})
	if err != nil {
		return summary, nil, err
	}
	_, fallbacks, err := r.series(ctx, sc, f, aspect{by: segment.Fallback})
	if err != nil {
		return summary, nil, err
	}
	list = make([]RescuedPoint, b.n)
	counts := byNumber(retries)
	for i := range list {
		p := RescuedPoint{Bucket: Bucket{b.at(i)}, Retry: []RetryCount{}}
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
		list[i] = p
	}
	return summary, list, nil
}

// CacheSummary sums up all cache hits of a time.
type CacheSummary struct {
	Hits          int64   `json:"hits"`
	AvgLatency    float64 `json:"avg_latency"` // of hits, milliseconds
	TotalRequests int64   `json:"total_requests"`
	Speedup       float64 `json:"cache_speedup"` // by how many per cent hits are faster than other requests
}

// Cache returns the cache summary. f is valid.
func (r *Reader) Cache(ctx context.Context, sc store.Scope, f *Filter) (CacheSummary, error) {
	groups, err := r.tally(ctx, sc, f, plain, allTime)
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

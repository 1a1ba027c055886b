package observe

import (
	"fmt"
	"time"

	"gateway/shared/observe/otlp"
	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// sums collects the metrics of many records. Start and End of a point are the arrival of
// the first and the end of the last request in it.
type sums struct {
	latest  bool
	metrics []otlp.Metric
	at      map[string]int            // of metrics, by name
	points  map[string]map[string]int // of a metric's points, by their attributes
}

func newSums(latest bool) *sums {
	return &sums{latest: latest, at: map[string]int{}, points: map[string]map[string]int{}}
}

func (s *sums) point(name, unit, doc string, bounds []float64, r *usage.Record, a attrs) *otlp.Point {
	at, ok := s.at[name]
	if !ok {
		at = len(s.metrics)
		s.at[name], s.points[name] = at, map[string]int{}
		s.metrics = append(s.metrics, otlp.Metric{Name: name, Unit: unit, Doc: doc, Bounds: bounds})
	}
	m := &s.metrics[at]
	key := fmt.Sprint(a)
	n, ok := s.points[name][key]
	end := r.Start.Add(max(r.Duration, time.Nanosecond))
	if !ok {
		n = len(m.Points)
		s.points[name][key] = n
		m.Points = append(m.Points, otlp.Point{Attrs: a, Start: r.Start, End: end})
	}
	p := &m.Points[n]
	if r.Start.Before(p.Start) {
		p.Start = r.Start
	}
	if end.After(p.End) {
		p.End = end
	}
	return p
}

func (s *sums) observe(name, unit, doc string, bounds []float64, r *usage.Record, a attrs, x float64) {
	s.point(name, unit, doc, bounds, r, a).Observe(x, bounds)
}

// with returns a copy with one more attribute.
func (a attrs) with(key, value string) attrs {
	return append(a[:len(a):len(a)], otlp.Attr{Key: key, Value: value})
}

// add adds a record.
func (s *sums) add(r *usage.Record) {
	a := common(r, s.latest)
	timed := a
	if why := failure(r); why != "" {
		timed = a.with(attrErrorType, why)
	}
	if r.Call != nil {
		s.observe(durationOf(r), "s", "Time of calls, to the last byte.", callBounds, r, timed, r.Duration.Seconds())
		return
	}
	s.observe(metricDuration, "s", "Time of requests, to the last byte.", durationBounds, r, timed, r.Duration.Seconds())
	if s.latest {
		s.addLatest(r, a)
		return
	}
	if r.Usage.TotalTokens() == 0 {
		return
	}
	s.observe(metricTokens, "{token}", "Tokens of requests.", tokenBounds, r, a.with(attrTokenType, "input"), float64(r.Usage.InputTokens()))
	s.observe(metricTokens, "{token}", "Tokens of requests.", tokenBounds, r, a.with(attrTokenType, "output"), float64(r.Usage.OutputTokens()))
}

// split is a count of tokens by their modality.
type split struct {
	name     string
	modality string
	of       []pricing.Class
}

// splits are the counters of the newer names. In those names cached and reasoning tokens
// are part of input and output, and not classes of their own.
var splits = []split{
	{"input", "text", []pricing.Class{pricing.Input, pricing.CacheRead, pricing.CacheWrite5m, pricing.CacheWrite30m, pricing.CacheWrite1h, pricing.CacheWrite12h}},
	{"input", "audio", []pricing.Class{pricing.AudioIn, pricing.AudioCacheRead}},
	{"input", "image", []pricing.Class{pricing.ImageIn, pricing.ImageCacheRead}},
	{"output", "text", []pricing.Class{pricing.Output, pricing.Reasoning}},
	{"output", "audio", []pricing.Class{pricing.AudioOut}},
	{"output", "image", []pricing.Class{pricing.ImageOut}},
	{"output", "unknown", []pricing.Class{pricing.VideoOut}},
	{"cache_read.input", "text", []pricing.Class{pricing.CacheRead}},
	{"cache_read.input", "audio", []pricing.Class{pricing.AudioCacheRead}},
	{"cache_read.input", "image", []pricing.Class{pricing.ImageCacheRead}},
	{"cache_write.input", "text", []pricing.Class{pricing.CacheWrite5m, pricing.CacheWrite30m, pricing.CacheWrite1h, pricing.CacheWrite12h}},
	{"reasoning.output", "text", []pricing.Class{pricing.Reasoning}},
}

// addLatest adds a record's usage under the newer names. If nothing is known about it, it
// counts 0 tokens of an unknown modality.
func (s *sums) addLatest(r *usage.Record, a attrs) {
	count := func(name, modality string, n int64) {
		p := s.point(metricSpentBefore+name+"_tokens", "{token}", "Tokens of requests that are paid for.", nil, r, a.with(attrModality, modality))
		p.Sum += float64(n)
	}
	if r.Usage.TotalTokens() == 0 {
		count("input", "unknown", 0)
		count("output", "unknown", 0)
		return
	}
	for i := range splits {
		n := int64(0)
		for _, c := range splits[i].of {
			n += r.Usage.N(c)
		}
		if n > 0 {
			count(splits[i].name, splits[i].modality, n)
		}
	}
	for name, n := range map[string]int64{"input": r.Usage.InputTokens(), "output": r.Usage.OutputTokens()} {
		s.observe(metricSpreadBefore+name+"_tokens", "{token}", "Tokens of a request.", tokenBounds, r, a, float64(n))
	}
}

func reasoning(r *usage.Record) int64 { return r.Usage.N(pricing.Reasoning) }

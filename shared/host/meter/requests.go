package meter

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gateway/shared/host/metric"
	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// maxRequests limits the series of requests by their labels. Further ones count under the
// label values "other".
const maxRequests = 1000

// requestLabels are the labels of the metrics that dashboards of other gateways read. All
// values are from fixed sets, except those of additional labels, which are limited in
// number.
type requestLabels struct {
	method, endpoint, provider, cache string
	code                              int
	stream                            bool
	extra                             string // formatted labels, each after a comma
}

func labelsOf(r *usage.Record) requestLabels {
	return requestLabels{method: cmp.Or(r.Method, missing), endpoint: cmp.Or(r.Endpoint, missing), provider: cmp.Or(r.Provider, missing), cache: cmp.Or(r.CacheStatus, missing), code: r.ClientStatus, stream: r.Stream}
}

// missing is the value of a label that does not apply.
const missing = "N/A"

func (l *requestLabels) text() string {
	return fmt.Sprintf(`app="gateway",env="%s",method="%s",endpoint="%s",code="%d",provider="%s",source="%s",stream="%t",cacheStatus="%s"%s`,
		missing, escaped.Replace(l.method), escaped.Replace(l.endpoint), l.code, escaped.Replace(l.provider), missing, l.stream, escaped.Replace(l.cache), l.extra)
}

// histogram counts values by bounds.
type histogram struct {
	buckets []int64 // one more than bounds
	sum     float64
	count   int64
}

func (h *histogram) add(bounds []float64, v float64) {
	if h.buckets == nil {
		h.buckets = make([]int64, len(bounds)+1)
	}
	at, _ := slices.BinarySearch(bounds, v)
	h.buckets[at]++
	h.sum += v
	h.count++
}

// Bounds of the histograms, in their units.
var (
	inSeconds      = []float64{0.1, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 240, 500, 1000, 3000}
	inMilliseconds = []float64{0.1, 1, 2, 5, 10, 30, 50, 75, 100, 150, 200, 350, 500, 1000, 2500, 5000, 10_000, 50_000, 100_000, 300_000, 500_000, 10_000_000}
)

// timings are the histograms of requests. ok is false if there is no value.
var timings = [...]struct {
	name, help string
	bounds     []float64
	of         func(r *usage.Record) (v float64, ok bool)
}{
	{"http_request_duration_seconds", "From a request's arrival to its last byte, in seconds.", inSeconds, func(r *usage.Record) (float64, bool) { return r.Duration.Seconds(), true }},
	{"gateway_request_duration_milliseconds", "From a request's arrival to its last byte, in milliseconds.", inMilliseconds, func(r *usage.Record) (float64, bool) { return milliseconds(r.Duration), true }},
	{"llm_request_duration_milliseconds", "The provider's part of a request, in milliseconds.", inMilliseconds, func(r *usage.Record) (float64, bool) { return milliseconds(r.UpstreamLatency), r.UpstreamLatency > 0 }},
	{"gateway_processing_time_excluding_last_byte_ms", "The gateway's own part of a request, in milliseconds.", inMilliseconds, func(r *usage.Record) (float64, bool) { return milliseconds(r.GatewayTime), true }},
	{"llm_last_byte_diff_duration_milliseconds", "From the first to the last byte of a response, in milliseconds.", inMilliseconds, func(r *usage.Record) (float64, bool) {
		return milliseconds(max(r.Duration-r.TimeToFirstByte, 0)), r.TimeToFirstByte > 0
	}},
}

// requestSums are the numbers of one series of requests.
type requestSums struct {
	requests, tokens int64
	cost             pricing.NanoDollars
	timings          [len(timings)]histogram
}

// requests are sums by labels.
type requests struct {
	of      map[requestLabels]*requestSums
	further []*extraLabel
}

func (q *requests) add(r *usage.Record) {
	l := labelsOf(r)
	for _, f := range q.further {
		l.extra += "," + f.name + `="` + escaped.Replace(f.value(r)) + `"`
	}
	at := q.of[l]
	if at == nil && len(q.of) >= maxRequests {
		l = requestLabels{method: "other", endpoint: "other", provider: "other", cache: "other"}
		for _, f := range q.further {
			l.extra += "," + f.name + `="` + metric.Other + `"`
		}
		at = q.of[l]
	}
	if at == nil {
		if q.of == nil {
			q.of = map[requestLabels]*requestSums{}
		}
		at = new(requestSums)
		q.of[l] = at
	}
	at.requests++
	at.tokens += r.Usage.InputTokens() + r.Usage.OutputTokens()
	at.cost += r.Cost
	for i := range timings {
		if v, ok := timings[i].of(r); ok {
			at.timings[i].add(timings[i].bounds, v)
		}
	}
}

// write appends the series in Prometheus's text format.
func (q *requests) write(b *bytes.Buffer) {
	all := make([]requestLabels, 0, len(q.of))
	for l := range q.of {
		all = append(all, l)
	}
	slices.SortFunc(all, func(x, y requestLabels) int { return cmp.Compare(x.text(), y.text()) })
	for _, m := range [...]struct {
		name, kind, help string
		of               func(s *requestSums) string
	}{
		{"request_count", "counter", "Requests of authenticated callers.", func(s *requestSums) string { return strconv.FormatInt(s.requests, 10) }},
		{"llm_cost_sum", "gauge", "US cents as recorded, accumulated.", func(s *requestSums) string { return number(100 * usd(s.cost)) }},
		{"llm_token_sum", "gauge", "Input and output tokens as recorded, accumulated.", func(s *requestSums) string { return strconv.FormatInt(s.tokens, 10) }},
	} {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		for _, l := range all {
			fmt.Fprintf(b, "%s{%s} %s\n", m.name, l.text(), m.of(q.of[l]))
		}
	}
	for i, m := range timings {
		fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s histogram\n", m.name, m.help, m.name)
		for _, l := range all {
			q.of[l].timings[i].write(b, m.name, l.text(), m.bounds)
		}
	}
}

// write appends a histogram unless it is empty.
func (h *histogram) write(b *bytes.Buffer, name, labels string, bounds []float64) {
	if h.count == 0 {
		return
	}
	sum := int64(0)
	for i, bound := range bounds {
		sum += h.buckets[i]
		fmt.Fprintf(b, "%s_bucket{%s,le=\"%s\"} %d\n", name, labels, number(bound), sum)
	}
	fmt.Fprintf(b, "%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %s\n%s_count{%s} %d\n", name, labels, h.count, name, labels, number(h.sum), name, labels, h.count)
}

// EnvLabels is the variable with additional labels of the metrics that dashboards of
// other gateways read, separated by commas: model, config_name (its slug), api_key_id,
// api_key_name, and metadata_<key> for a key of the request's metadata. None by default.
const EnvLabels = "GATEWAY_METRICS_LABELS"

const (
	maxLabels   = 8   // additional labels
	maxDistinct = 100 // values of one additional label; further ones become "other"
)

// extraLabel is one of the additional labels.
type extraLabel struct {
	name string
	of   func(r *usage.Record) string
	seen map[string]bool
}

// extraLabels parses the value of EnvLabels. It ignores unknown labels and duplicates.
func extraLabels(value string) (out []*extraLabel) {
	for name := range strings.SplitSeq(value, ",") {
		f := &extraLabel{name: strings.TrimSpace(name), seen: map[string]bool{}}
		switch key, metadata := strings.CutPrefix(f.name, "metadata_"); {
		case f.name == "model":
			f.of = func(r *usage.Record) string { return pairOf(r).model }
		case f.name == "config_name":
			f.of = func(r *usage.Record) string { return r.ConfigSlug }
		case f.name == "api_key_id":
			f.of = func(r *usage.Record) string { return r.KeyID }
		case f.name == "api_key_name":
			f.of = func(r *usage.Record) string { return r.KeyName }
		case metadata && key != "":
			f.name = "metadata_" + labelName(key)
			f.of = func(r *usage.Record) string { return r.Metadata[key] }
		default:
			continue
		}
		if len(out) < maxLabels && !slices.ContainsFunc(out, func(o *extraLabel) bool { return o.name == f.name }) {
			out = append(out, f)
		}
	}
	return out
}

// labelName replaces the characters that are not allowed in label names.
func labelName(key string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
			return c
		}
		return '_'
	}, key)
}

// value returns the label's value for a record. Callers can invent values, so only the
// first ones are distinguished.
func (f *extraLabel) value(r *usage.Record) string {
	v := f.of(r)
	switch {
	case v == "":
		return missing
	case f.seen[v]:
		return v
	case len(f.seen) >= maxDistinct || len(v) > maxName || !printable(v):
		return metric.Other
	}
	f.seen[v] = true
	return v
}

// printable reports whether a value is UTF-8 text without control characters.
func printable(v string) bool {
	return utf8.ValidString(v) && !strings.ContainsFunc(v, func(c rune) bool { return c != ' ' && !unicode.IsPrint(c) })
}

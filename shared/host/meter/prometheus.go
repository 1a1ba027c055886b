package meter

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gateway/shared/fault"
	"gateway/shared/host"
	"gateway/shared/host/metric"
	"gateway/shared/usage"
)

// EnvMetricsAddr is the variable with the address at which a long-running process serves
// its totals to Prometheus; "" disables that. It requires no key, so it must not be
// reachable from outside.
const EnvMetricsAddr = "GATEWAY_METRICS_ADDR"

// Totals are sums since the start of a process, for Prometheus. They are safe for
// concurrent use.
type Totals struct {
	mu       sync.Mutex
	counts   map[string]int64
	others   map[string]func() int64 // counters of other packages
	models   series
	requests requests
}

// AddCounter adds a counter, which is read for each response.
func (t *Totals) AddCounter(name string, count func() int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.others == nil {
		t.others = map[string]func() int64{}
	}
	t.others[name] = count
}

// NewTotals returns empty totals, with the additional labels in EnvLabels.
func NewTotals() *Totals {
	return &Totals{counts: map[string]int64{metric.Failures: 0}, models: series{most: maxInAll}, requests: requests{further: extraLabels(os.Getenv(EnvLabels))}}
}

// Sink counts the records sent to a sink.
func (t *Totals) Sink(to usage.Sink) usage.Sink { return watchedSink{to, t.request} }

func (t *Totals) request(r *usage.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.models.add(r)
	t.requests.add(r)
	if gatewayFailure(r) {
		t.counts[metric.Failures]++
	}
}

func (t *Totals) count(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[name]++
}

// ServeHTTP serves GET /metrics in Prometheus's text format, version 0.0.4.
func (t *Totals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(t.text()) // the client has disconnected
}

// counterMetrics are the counters per pair, by name.
var counterMetrics = []struct {
	name, help string
	of         func(*sums) string
}{
	{metric.Requests, "Completed requests of authenticated callers.", func(s *sums) string { return strconv.FormatInt(s.requests, 10) }},
	{metric.Errors, "Responses with status 400 or above, from any origin.", func(s *sums) string { return strconv.FormatInt(s.errors, 10) }},
	{metric.InputTokens, "Input tokens as recorded.", func(s *sums) string { return strconv.FormatInt(s.input, 10) }},
	{metric.OutputTokens, "Output tokens as recorded.", func(s *sums) string { return strconv.FormatInt(s.output, 10) }},
	{metric.Cost, "US dollars as recorded.", func(s *sums) string { return number(usd(s.cost)) }},
}

// counted are the help texts of the counters without labels.
var counted = map[string]string{
	metric.Failures:      "Responses with status 500 or above that the gateway caused.",
	metric.StoreFailures: "Failures of a store, queue or key service.",
	metric.BypassedEdge:  "Requests that did not come through the edge.",
	metric.LoggedErrors:  "Log lines of level ERROR.",
	metric.Dropped:       "Records that were not exported to a telemetry destination, once for each destination and signal.",
}

// latency writes the histogram of latencies. unit is the length of its unit in milliseconds.
func (t *Totals) latency(b *bytes.Buffer, suffix, help string, unit float64) {
	name := prometheusName(metric.Latency) + suffix
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name)
	t.models.each(func(p pair, s *sums) {
		sum := int64(0)
		for i, bound := range bounds {
			sum += s.buckets[i]
			fmt.Fprintf(b, "%s_bucket{%s,le=\"%s\"} %d\n", name, labels(p), number(bound/unit), sum)
		}
		fmt.Fprintf(b, "%s_bucket{%s,le=\"+Inf\"} %d\n%s_sum{%s} %s\n%s_count{%s} %d\n", name, labels(p), s.requests, name, labels(p), number(milliseconds(s.latency)/unit), name, labels(p), s.requests)
	})
}

// text returns the metrics: names are those of CloudWatch in Prometheus's spelling.
func (t *Totals) text() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	for _, m := range counterMetrics {
		name := prometheusName(m.name) + "_total"
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s counter\n", name, m.help, name)
		t.models.each(func(p pair, s *sums) { fmt.Fprintf(&b, "%s{%s} %s\n", name, labels(p), m.of(s)) })
	}
	t.latency(&b, "_seconds", "From a request's arrival to its last byte.", 1000)
	t.latency(&b, "_milliseconds", "The same in milliseconds, for dashboards that read this name.", 1)
	counts := maps.Clone(t.counts)
	for n, count := range t.others {
		counts[n] = count()
	}
	for _, n := range slices.Sorted(maps.Keys(counts)) {
		name := prometheusName(n) + "_total"
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s counter\n%s %d\n", name, counted[n], name, name, counts[n])
	}
	t.requests.write(&b)
	return b.Bytes()
}

// prometheusName converts a metric's name: InputTokens becomes gateway_input_tokens.
func prometheusName(name string) string {
	var b strings.Builder
	b.WriteString(strings.ToLower(metric.Namespace))
	for _, c := range name {
		if c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// escaped escapes label values; a plain name has no line break.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func labels(p pair) string {
	return `provider="` + escaped.Replace(p.provider) + `",model="` + escaped.Replace(p.model) + `"`
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// ListenTotals returns totals and the server that serves them at the address of
// EnvMetricsAddr; without an address the server is nil.
func ListenTotals() (*Totals, *host.Server, error) {
	addr := os.Getenv(EnvMetricsAddr)
	t := NewTotals()
	if addr == "" {
		return t, nil, nil
	}
	s, err := host.Listen(addr, t, host.DefaultOptions())
	if err != nil {
		return nil, nil, fmt.Errorf("%s=%s: %w", EnvMetricsAddr, addr, err)
	}
	return t, s, nil
}

// EnvMetrics is the variable that disables /metrics at the gateway's address: "off".
const EnvMetrics = "GATEWAY_METRICS"

// pagePath is the path of the metrics.
const pagePath = "/metrics"

// Page serves /metrics at the gateway's address before next: to programs on this machine,
// and to callers that allowed admits. With EnvMetrics "off" it is next.
func Page(t *Totals, allowed func(*http.Request) error, next http.Handler) http.Handler {
	if os.Getenv(EnvMetrics) == "off" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pagePath {
			next.ServeHTTP(w, r)
			return
		}
		if !local(r) {
			if err := allowed(r); err != nil {
				f := fault.From(err)
				f.SetHeaders(w.Header())
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(f.Status())
				_, _ = w.Write(f.AdminBody("")) // the client may have disconnected
				return
			}
		}
		t.ServeHTTP(w, r)
	})
}

// local reports whether a request comes from a program on this machine: neither through a
// proxy nor from a browser page on a domain that resolves to it.
func local(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range [...]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Forwarded", "Via", "Origin"} {
		if len(r.Header[name]) > 0 {
			return false
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Package meter reports the state of a process to operators. It writes metrics as a line
// of CloudWatch's embedded metric format, at most one per minute and immediately after a
// failure, and a line for each failed request and for one percent of the others. All
// lines are JSON. They contain ids, names of routes, statuses and times, and no text of
// callers or providers except names of models with a price. A long-running process also
// serves its totals to Prometheus.
package meter

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/host/metric"
	"gateway/shared/usage"
)

const (
	every       = time.Minute
	whenFailing = 10 * time.Second
	maxValues   = 100 // of one metric per line, a limit of the format
	sampled     = 100 // one of this many successful requests is logged
)

// EnvModelMetrics is the variable that enables metrics per provider and model: "true".
const EnvModelMetrics = "GATEWAY_MODEL_METRICS"

// Meter counts requests and failures. It is safe for concurrent use.
type Meter struct {
	out  io.Writer
	name string
	now  func() time.Time

	mu     sync.Mutex
	since  time.Time // of the last line
	counts map[string]int64
	times  map[float64]int64 // occurrences of each GatewayTime
	models series            // since the last line
	served int64

	byModel bool // also write separate metrics per model
	totals  *Totals
}

// New returns a meter of an installation that writes to out. now is time.Now if nil.
func New(out io.Writer, installation string, now func() time.Time) *Meter {
	if now == nil {
		now = time.Now
	}
	return &Meter{out: out, name: installation, now: now, counts: map[string]int64{}, times: map[float64]int64{}, models: series{most: maxInLine}}
}

// ByModel also writes metrics for each pair of provider and model, for which CloudWatch
// charges; otherwise these numbers are only in the line.
func (m *Meter) ByModel() { m.byModel = true }

// AddTo also counts everything in t.
func (m *Meter) AddTo(t *Totals) { m.totals = t }

// Sink observes the records sent to a sink.
func (m *Meter) Sink(to usage.Sink) usage.Sink { return watchedSink{to, m.request} }

// watchedSink is a sink with observed records.
type watchedSink struct {
	usage.Sink
	notify func(*usage.Record)
}

// Emit implements usage.Sink.
func (w watchedSink) Emit(ctx context.Context, r *usage.Record) error {
	if !r.Unconfirmed { // a record without a request
		w.notify(r)
	}
	return w.Sink.Emit(ctx, r)
}

func (m *Meter) request(r *usage.Record) {
	own := gatewayFailure(r)
	if m.totals != nil {
		m.totals.request(r)
	}
	m.mu.Lock()
	m.counts[metric.Requests]++
	m.times[rounded(r.GatewayTime)]++
	m.models.add(r)
	if own {
		m.counts[metric.Failures]++
	}
	m.served++
	line := r.ClientStatus >= 500 || m.served%sampled == 1
	m.flushIfDue(own)
	m.mu.Unlock()
	if line {
		logRequest(r)
	}
}

// gatewayFailure reports whether a 5xx is not a provider's.
func gatewayFailure(r *usage.Record) bool {
	switch fault.Code(r.ErrorCode) {
	case fault.InternalError, fault.ServiceUnavailable:
		return r.ClientStatus >= 500
	}
	return false
}

// logRequest logs a request, without text of callers.
func logRequest(r *usage.Record) {
	level := slog.LevelInfo
	if r.ClientStatus >= 500 {
		level = slog.LevelWarn
	}
	slog.Log(context.Background(), level, "request", "request_id", r.ID, "workspace", r.Workspace, "key", r.KeyID, "route", r.Endpoint,
		"status", r.ClientStatus, "code", knownCode(r.ErrorCode), "provider", r.Provider, "cache", r.CacheStatus, "stream", r.Stream,
		"attempts", len(r.Attempts), "ms", r.Duration.Milliseconds(), "gateway_ms", milliseconds(r.GatewayTime))
}

// knownCode returns code if it is one of the gateway's; a provider's code is arbitrary.
func knownCode(code string) string {
	if code == "" || fault.IsKnown(fault.Code(code)) {
		return code
	}
	return "provider"
}

// Handler counts the responses of a family of the administration.
func (m *Meter) Handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &status{ResponseWriter: w, code: http.StatusOK}
		h.ServeHTTP(s, r)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.counts[metric.Requests]++
		if s.code >= 500 {
			m.counts[metric.Failures]++
		}
		m.flushIfDue(s.code >= 500)
	})
}

// status records the response's status.
type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// Unwrap serves http.ResponseController.
func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// Count increments a metric that nothing else counts.
func (m *Meter) Count(name string) {
	if m.totals != nil {
		m.totals.count(name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts[name]++
	m.flushIfDue(true)
}

// CountBypass counts a request that did not come through the edge.
func (m *Meter) CountBypass() { m.Count(metric.BypassedEdge) }

// Flush writes the metrics since the last line.
func (m *Meter) Flush() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flush()
}

func (m *Meter) flushIfDue(failing bool) {
	since := m.now().Sub(m.since)
	if since >= every || failing && since >= whenFailing || len(m.times) >= maxValues || m.models.full() {
		m.flush()
	}
}

// named is the name of a metric in the format.
type named struct {
	Name string
	Unit string
}

// distribution is a metric with many values.
type distribution struct {
	Values []float64
	Counts []int64
}

func (m *Meter) flush() {
	if len(m.counts) == 0 && len(m.times) == 0 {
		return
	}
	now := m.now()
	line := map[string]any{"Installation": m.name, "level": "INFO", "message": "metrics", "timestamp": now.UTC().Format(time.RFC3339Nano)}
	var names []named
	for _, name := range []string{metric.Requests, metric.Failures, metric.StoreFailures, metric.BypassedEdge, metric.LoggedErrors} {
		if n := m.counts[name]; n > 0 {
			names, line[name] = append(names, named{name, "Count"}), n
		}
	}
	if len(m.times) > 0 {
		var d distribution
		for v, n := range m.times {
			d.Values, d.Counts = append(d.Values, v), append(d.Counts, n)
		}
		names, line[metric.GatewayTime] = append(names, named{metric.GatewayTime, "Milliseconds"}), d
	}
	if len(m.models.of) > 0 && !m.byModel {
		line["models"] = m.models.list()
	}
	m.write(line, now, []string{"Installation"}, names)
	if m.byModel {
		m.models.each(func(p pair, s *sums) {
			m.write(m.modelLine(p, s, now), now, []string{"Installation", metric.Provider, metric.Model}, ofModels)
		})
	}
	clear(m.counts)
	clear(m.times)
	m.models = series{most: m.models.most}
	m.since = now
}

// write writes one line of the embedded metric format.
func (m *Meter) write(line map[string]any, now time.Time, dimensions []string, names []named) {
	line["_aws"] = map[string]any{"Timestamp": now.UnixMilli(), "CloudWatchMetrics": []any{map[string]any{
		"Namespace": metric.Namespace, "Dimensions": [][]string{dimensions}, "Metrics": names,
	}}}
	if text, err := json.Marshal(line); err == nil { // numbers and names always encode
		_, _ = m.out.Write(append(text, '\n')) // an error of the log cannot be logged
	}
}

// rounded returns milliseconds with two significant digits, so that many requests share
// few values.
func rounded(d time.Duration) float64 {
	ms := milliseconds(d)
	if ms <= 0.1 {
		return 0.1
	}
	unit := math.Pow(10, math.Floor(math.Log10(ms))-1)
	return math.Round(math.Round(ms/unit)*unit*1000) / 1000
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Process returns the meter of a deployed process. It also counts the errors in its log
// and the failures of its dependencies.
func Process(installation string) *Meter {
	m := New(os.Stderr, installation, nil)
	if os.Getenv(EnvModelMetrics) == "true" {
		m.ByModel()
	}
	slog.SetDefault(slog.New(counting{slog.Default().Handler(), m}))
	fault.OnUnavailable(func() { m.Count(metric.StoreFailures) })
	return m
}

// counting is a log handler that counts errors.
type counting struct {
	slog.Handler
	m *Meter
}

// Handle implements slog.Handler.
func (c counting) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		c.m.Count(metric.LoggedErrors)
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c counting) WithAttrs(a []slog.Attr) slog.Handler { return counting{c.Handler.WithAttrs(a), c.m} }

// WithGroup implements slog.Handler.
func (c counting) WithGroup(name string) slog.Handler {
	return counting{c.Handler.WithGroup(name), c.m}
}

package meter_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/host/meter"
	"gateway/shared/host/metric"
	"gateway/shared/pricing"
	"gateway/shared/usage"
)

var update = flag.Bool("update", false, "write the golden file")

// requestRecord is a record of a request to a model.
func requestRecord(provider, model string, status int, latency time.Duration, priced bool) *usage.Record {
	r := &usage.Record{ID: "01J", Provider: provider, Model: model, ClientStatus: status, Duration: latency, Priced: priced, Cost: 1_500_000}
	r.Usage.Set(pricing.Input, 100)
	r.Usage.Set(pricing.Output, 20)
	return r
}

// several are requests of every kind.
func several() []*usage.Record {
	return []*usage.Record{
		requestRecord("openai", "gpt-4o", 200, 900*time.Millisecond, true),
		requestRecord("openai", "gpt-4o", 429, 90*time.Millisecond, true),
		requestRecord("openai", "gpt-4o", 200, 400*time.Second, true),
		requestRecord("anthropic", "claude-sonnet-4-5", 200, 2*time.Second, true),
		requestRecord("openai", "my-secret-model", 200, time.Second, false),
		requestRecord("openai", "gpt 4o\n# x", 200, time.Second, true),
		requestRecord("openai", strings.Repeat("m", 101), 200, time.Second, true),
		requestRecord("openai", "", 500, time.Second, true),
		requestRecord("bedrock", `arn"\of`, 200, time.Second, true),
		{ID: "01J", ClientStatus: 503, ErrorCode: string(fault.ServiceUnavailable), Duration: time.Millisecond},
	}
}

func TestTheLineContainsModels(t *testing.T) {
	quiet(t)
	m, out, c := newMeter()
	s := m.Sink(&countingSink{})
	m.Flush()
	for _, r := range several()[:9] {
		if err := s.Emit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	c.at = c.at.Add(time.Hour)
	m.Flush()
	var modelList []any
	for _, l := range lines(t, out.String()) {
		if models, ok := l.rest["models"].([]any); ok {
			modelList = append(modelList, models...)
		}
	}
	raw, err := json.Marshal(modelList)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, want := range []string{
		`{"Cost":0.0015,"Errors":0,"InputTokens":100,"Latency":2000,"Model":"claude-sonnet-4-5","OutputTokens":20,"Provider":"anthropic","Requests":1}`,
		`"Model":"other","OutputTokens":80,"Provider":"openai","Requests":4`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if strings.Contains(out.String(), "my-secret-model") || strings.Contains(out.String(), "gpt 4o") {
		t.Errorf("a name that a caller made up stands in the log: %s", out)
	}
}

// TestModelsAsMetrics: each pair is a separate line, with its dimensions.
func TestModelsAsMetrics(t *testing.T) {
	quiet(t)
	m, out, c := newMeter()
	m.ByModel()
	s := m.Sink(&countingSink{})
	for _, r := range several() {
		if err := s.Emit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	c.at = c.at.Add(time.Hour)
	m.Flush()
	requests, pairs := 0.0, map[string]bool{}
	for text := range strings.Lines(out.String()) {
		var l struct {
			line
			Provider, Model  string
			Requests, Errors float64
			Latency          struct{ Values, Counts []float64 }
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Provider == "" {
			if strings.Contains(text, "models") {
				t.Errorf("told twice: %s", text)
			}
			continue
		}
		d := l.AWS.CloudWatchMetrics[0]
		if strings.Join(d.Dimensions[0], " ") != "Installation Provider Model" || len(d.Metrics) != 6 || l.Errors > l.Requests {
			t.Errorf("%s", text)
		}
		sum := 0.0
		for i, n := range l.Latency.Counts {
			sum += n
			if v := l.Latency.Values[i]; v < 1 || v > 400_000 {
				t.Errorf("a latency of %v: %s", v, text)
			}
		}
		if sum != l.Requests {
			t.Errorf("%v latencies: %s", sum, text)
		}
		requests += l.Requests
		pairs[l.Provider+" "+l.Model] = true
	}
	if requests != 10 || len(pairs) != 5 {
		t.Errorf("%v requests of %v", requests, pairs)
	}
}

// TestManyModelsStayFewLines: callers cannot make a line, or the totals, grow.
func TestManyModelsStayFewLines(t *testing.T) {
	quiet(t)
	m, out, _ := newMeter()
	totals := meter.NewTotals()
	m.AddTo(totals)
	s := m.Sink(&countingSink{})
	const each = 2000
	for i := range each {
		if err := s.Emit(t.Context(), requestRecord("openai", fmt.Sprintf("model-%d", i), 200, time.Second, true)); err != nil {
			t.Fatal(err)
		}
	}
	m.Flush()
	requests := 0
	for _, l := range lines(t, out.String()) {
		models, _ := l.rest["models"].([]any)
		if len(models) == 0 || len(models) > 30 {
			t.Errorf("%d pairs in a line", len(models))
		}
		requests += l.count(metric.Requests)
	}
	if requests != each {
		t.Errorf("%d of %d requests", requests, each)
	}
	text := scraped(t, totals)
	if n := strings.Count(text, "gateway_requests_total{"); n > 301 {
		t.Errorf("%d pairs in all", n)
	}
	if !strings.Contains(text, fmt.Sprintf(`gateway_requests_total{provider="other",model="other"} %d`, each-300)) {
		t.Error("what is beyond is not counted as other")
	}
}

// scraped is what Prometheus fetches.
func scraped(t *testing.T, totals *meter.Totals) string {
	t.Helper()
	w := httptest.NewRecorder()
	totals.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	return w.Body.String()
}

// sample is a line of the text format, version 0.0.4.
var sample = regexp.MustCompile(`^[a-z_]+(\{([a-zA-Z]+="(\\["\\n]|[^"\\\n])*"(,[a-zA-Z]+="(\\["\\n]|[^"\\\n])*")*)\})? [0-9.]+$`)

func TestPrometheusReadsTheTotals(t *testing.T) {
	quiet(t)
	totals := meter.NewTotals()
	k := &countingSink{}
	s := totals.Sink(k)
	all := several()
	all = append(all, &usage.Record{ID: "01J", Unconfirmed: true, ClientStatus: 500}) // no request
	for _, r := range all {
		if err := s.Emit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	text := scraped(t, totals)
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, "# HELP ") && !strings.HasPrefix(line, "# TYPE ") && !sample.MatchString(line) {
			t.Errorf("%q is no sample", line)
		}
	}
	golden := filepath.Join("testdata", "metrics.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, []byte(text)) {
		t.Errorf("%s differs:\n%s", golden, text)
	}
	if k.n != len(all) {
		t.Errorf("%d of %d records passed on", k.n, len(all))
	}
}

func TestMetricsAreReadAlone(t *testing.T) {
	totals := meter.NewTotals()
	for _, c := range []struct {
		method, path string
		want         int
	}{{"GET", "/metrics", 200}, {"HEAD", "/metrics", 200}, {"POST", "/metrics", 405}, {"GET", "/", 404}, {"GET", "/v1/metrics", 404}, {"DELETE", "/x", 404}} {
		w := httptest.NewRecorder()
		totals.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, w.Code, c.want)
		}
	}
}

func TestMetricsHaveAnAddressOfTheirOwn(t *testing.T) {
	t.Setenv(meter.EnvMetricsAddr, "")
	if totals, s, err := meter.ListenTotals(); totals == nil || s != nil || err != nil {
		t.Errorf("%v %v %v", totals, s, err)
	}
	t.Setenv(meter.EnvMetricsAddr, "nowhere at all")
	if _, _, err := meter.ListenTotals(); err == nil || !strings.Contains(err.Error(), meter.EnvMetricsAddr+"=nowhere at all") {
		t.Errorf("%v", err)
	}
	t.Setenv(meter.EnvMetricsAddr, "127.0.0.1:0")
	totals, s, err := meter.ListenTotals()
	if err != nil {
		t.Fatal(err)
	}
	ctx, ended := t.Context(), make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() { // the context is over by then
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := totals.Sink(&countingSink{}).Emit(ctx, requestRecord("openai", "gpt-4o", 200, time.Second, true)); err != nil {
		t.Fatal(err)
	}
	res, err := http.Get("http://" + s.Addr().String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(raw), `gateway_cost_total{provider="openai",model="gpt-4o"} 0.0015`) {
		t.Errorf("%s %v", raw, err)
	}
}

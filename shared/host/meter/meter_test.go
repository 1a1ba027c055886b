package meter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/host/meter"
	"gateway/shared/host/metric"
	"gateway/shared/usage"
)

// line is a line of the embedded metric format, as CloudWatch reads it.
type line struct {
	AWS struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name, Unit string }
		}
	} `json:"_aws"`
	rest map[string]any
}

// lines parses the output and checks it by the format's rules.
func lines(t *testing.T, out string) (all []line) {
	t.Helper()
	for _, text := range strings.Split(strings.TrimSpace(out), "\n") {
		if text == "" {
			continue
		}
		var l line
		if err := errors.Join(json.Unmarshal([]byte(text), &l), json.Unmarshal([]byte(text), &l.rest)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if len(l.AWS.CloudWatchMetrics) != 1 || l.AWS.Timestamp == 0 || l.rest["level"] != "INFO" {
			t.Fatalf("%s", text)
		}
		d := l.AWS.CloudWatchMetrics[0]
		if d.Namespace != metric.Namespace || !reflect.DeepEqual(d.Dimensions, [][]string{{"Installation"}}) || l.rest["Installation"] != "gateway" {
			t.Errorf("%s", text)
		}
		if len(d.Metrics) == 0 || len(text) > 8<<10 {
			t.Errorf("%d metrics in %d bytes", len(d.Metrics), len(text))
		}
		for _, m := range d.Metrics {
			if m.Unit == "Count" {
				if n, ok := l.rest[m.Name].(float64); !ok || n < 1 {
					t.Errorf("%s: %v", m.Name, l.rest[m.Name])
				}
				continue
			}
			v := l.rest[m.Name].(map[string]any)
			values, counts := v["Values"].([]any), v["Counts"].([]any)
			if len(values) == 0 || len(values) != len(counts) || len(values) > 100 {
				t.Errorf("%s: %d values, %d counts", m.Name, len(values), len(counts))
			}
		}
		all = append(all, l)
	}
	return all
}

func (l *line) count(name string) int {
	n, _ := l.rest[name].(float64)
	return int(n)
}

// countingSink is a sink that accepts everything.
type countingSink struct{ n int }

func (k *countingSink) Emit(context.Context, *usage.Record) error { k.n++; return nil }

// clock is moved by the test.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newMeter() (*meter.Meter, *bytes.Buffer, *clock) {
	c := &clock{time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}
	var out bytes.Buffer
	return meter.New(&out, "gateway", c.now), &out, c
}

func record(status int, code fault.Code, own time.Duration) *usage.Record {
	return &usage.Record{ID: "01J", ClientStatus: status, ErrorCode: string(code), GatewayTime: own}
}

func TestNumbersGoOutOnceAMinute(t *testing.T) {
	quiet(t)
	m, out, c := newMeter()
	k := &countingSink{}
	s := m.Sink(k)
	for range 6000 { // ten minutes
		c.at = c.at.Add(100 * time.Millisecond)
		if err := s.Emit(t.Context(), record(200, "", 3*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	all := lines(t, out.String())
	if len(all) < 10 || len(all) > 11 {
		t.Errorf("%d lines in ten minutes", len(all))
	}
	m.Flush()
	m.Flush()
	total := 0
	for _, l := range lines(t, out.String()) {
		total += l.count(metric.Requests)
		if l.count(metric.Failures) > 0 {
			t.Error("failures of requests that went well")
		}
	}
	if total != 6000 || k.n != 6000 {
		t.Errorf("%d of 6000 counted, %d passed on", total, k.n)
	}
}

func TestFailuresGoOutSoon(t *testing.T) {
	quiet(t)
	for name, c := range map[string]struct {
		record *usage.Record
		want   int
	}{
		"a store that does not answer":    {record(503, fault.ServiceUnavailable, 0), 1},
		"a fault of ours":                 {record(500, fault.InternalError, 0), 1},
		"a provider's":                    {record(503, "overloaded_error", 0), 0},
		"a provider that is not there":    {record(503, fault.ProviderUnreachable, 0), 0},
		"a stream that broke after a 200": {record(200, fault.InternalError, 0), 0},
		"a refusal":                       {record(429, fault.RateLimited, 0), 0},
	} {
		m, out, clock := newMeter()
		s := m.Sink(&countingSink{})
		_ = s.Emit(t.Context(), record(200, "", 0)) // the first line
		clock.at = clock.at.Add(11 * time.Second)
		_ = s.Emit(t.Context(), c.record)
		all := lines(t, out.String())
		if len(all) != 1+c.want || c.want == 1 && all[1].count(metric.Failures) != 1 {
			t.Errorf("%s: %s", name, out)
		}
	}
}

func TestManyTimesFitTheFormat(t *testing.T) {
	quiet(t)
	m, out, _ := newMeter()
	s := m.Sink(&countingSink{})
	for i := range 100_000 {
		_ = s.Emit(t.Context(), record(200, "", time.Duration(i)*37*time.Microsecond))
	}
	m.Flush()
	total := 0
	all := lines(t, out.String())
	for _, l := range all {
		for _, n := range l.rest[metric.GatewayTime].(map[string]any)["Counts"].([]any) {
			total += int(n.(float64))
		}
	}
	if total != 100_000 {
		t.Errorf("%d times of 100000", total)
	}
}

func TestTheAdministrationIsCounted(t *testing.T) {
	m, out, _ := newMeter()
	h := m.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(500)
		}
	}))
	for _, path := range []string{"/good", "/bad", "/good"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	m.CountBypass()
	m.Flush()
	sum := map[string]int{}
	for _, l := range lines(t, out.String()) {
		for _, name := range []string{metric.Requests, metric.Failures, metric.BypassedEdge} {
			sum[name] += l.count(name)
		}
	}
	if sum[metric.Requests] != 3 || sum[metric.Failures] != 1 || sum[metric.BypassedEdge] != 1 {
		t.Errorf("%v", sum)
	}
}

// canary is in every value that a caller or a provider may write.
const canary = "CANARY-of-a-prompt-or-key"

// TestLinesHoldNothingOfCallers fills every text of a record that is not an id or a
// name of ours.
func TestLinesHoldNothingOfCallers(t *testing.T) {
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	defer slog.SetDefault(old)
	m, out, _ := newMeter()
	r := &usage.Record{}
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.String {
			v.Field(i).SetString(canary)
		}
	}
	r.ID, r.Workspace, r.KeyID, r.Endpoint, r.Provider, r.CacheStatus = "01JREQUEST", "ws", "key-id", "chatComplete", "openai", "MISS"
	r.Metadata = map[string]string{canary: canary}
	r.Attempts = []usage.Attempt{{Model: canary, RequestID: canary, ErrorCode: canary}}
	r.Bodies = []byte(canary)
	for _, status := range []int{200, 400, 502} {
		r.ClientStatus = status
		if err := m.Sink(&countingSink{}).Emit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	m.Flush()
	if text := log.String() + out.String(); strings.Contains(text, canary) {
		t.Errorf("%s", text)
	}
	if n := strings.Count(log.String(), `"request_id":"01JREQUEST"`); n != 2 { // the first, and the failure
		t.Errorf("%d lines: %s", n, log.String())
	}
}

func TestFewRequestsHaveLines(t *testing.T) {
	var log bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&log, nil)))
	defer slog.SetDefault(old)
	m, _, _ := newMeter()
	s := m.Sink(&countingSink{})
	for i := range 1000 {
		status := 200
		if i%50 == 25 {
			status = 502
		}
		_ = s.Emit(t.Context(), record(status, "", 0))
	}
	if n := strings.Count(log.String(), "\n"); n != 10+20 {
		t.Errorf("%d lines of 1000 requests with 20 failures", n)
	}
}

func TestManyAtATime(t *testing.T) {
	quiet(t)
	m, out, _ := newMeter()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s := m.Sink(&countingSink{})
			for range 500 {
				_ = s.Emit(t.Context(), record(200, "", time.Millisecond))
			}
			m.CountBypass()
		})
	}
	wg.Wait()
	m.Flush()
	total := 0
	for _, l := range lines(t, out.String()) {
		total += l.count(metric.Requests)
	}
	if total != 4000 {
		t.Errorf("%d of 4000", total)
	}
}

// quiet discards log lines of requests.
func quiet(t *testing.T) {
	t.Helper()
	old := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	t.Cleanup(func() { slog.SetDefault(old) })
}

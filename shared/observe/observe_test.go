package observe

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"gateway/shared/observe/instrumentation"
	"gateway/shared/observe/otlp"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func record() usage.Record {
	r := usage.Record{
		ID: "01K", Start: at, Duration: 2 * time.Second, TimeToFirstByte: 250 * time.Millisecond, Org: "o", Workspace: "w", Endpoint: "chatComplete", Stream: true, ClientStatus: 200,
		RequestModel: "gpt-4o", Model: "gpt-4o-2024", Provider: "azure-openai", FinishReason: "stop", Priced: true, Cost: 1234,
		TraceID: "0123456789abcdef0123456789abcdef", SpanID: "0123456789abcdef", ParentSpanID: "fedcba9876543210", Metadata: map[string]string{"team": "red"},
	}
	r.Usage.Set(pricing.Input, 10)
	r.Usage.Set(pricing.CacheRead, 30)
	r.Usage.Set(pricing.CacheWrite1h, 5)
	r.Usage.Set(pricing.AudioIn, 2)
	r.Usage.Set(pricing.Output, 7)
	r.Usage.Set(pricing.Reasoning, 4)
	r.Agent.Session = "session-1"
	r.Attempts = []usage.Attempt{{Server: "fails.example.com"}, {Server: "answers.example.com:8443"}}
	r.Guards = []usage.Guard{{Hook: "no-secrets", Phase: usage.GuardAfter, Denied: true, LatencyMS: 500, Failed: []string{"default.contains"}}}
	return r
}

// collector keeps what it is sent.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	status  int
	headers []http.Header
	paths   []string
	bodies  [][]byte
}

func newCollector(t *testing.T) *collector {
	c := &collector{status: 200}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.headers, c.paths, c.bodies = append(c.headers, r.Header), append(c.paths, r.URL.Path), append(c.bodies, raw)
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

// spans are those that came.
func (c *collector) spans(t *testing.T) (out []*tracepb.Span) {
	t.Helper()
	for i, p := range c.paths {
		if p != "/base/v1/traces" {
			continue
		}
		var d tracepb.TracesData
		if err := proto.Unmarshal(c.bodies[i], &d); err != nil {
			t.Fatal(err)
		}
		out = append(out, d.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	return out
}

func (c *collector) metrics(t *testing.T) map[string]*metricspb.Metric {
	t.Helper()
	out := map[string]*metricspb.Metric{}
	for i, p := range c.paths {
		if p != "/base/v1/metrics" {
			continue
		}
		var d metricspb.MetricsData
		if err := proto.Unmarshal(c.bodies[i], &d); err != nil {
			t.Fatal(err)
		}
		for _, m := range d.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			out[m.Name] = m
		}
	}
	return out
}

// only is a directory of one workspace's destinations.
type only struct {
	sc      store.Scope
	targets []Target
	err     error
}

func (o *only) Targets(_ context.Context, sc store.Scope) ([]Target, error) {
	if sc != o.sc {
		return nil, o.err
	}
	return o.targets, o.err
}

func exporter(c *collector, d Destination) *Exporter {
	d.Endpoint = c.URL + "/base/"
	t := Target{Scope: store.Scope{Org: "o", Workspace: "w"}, ID: "d", Headers: [][2]string{{"authorization", "Bearer x"}}, Destination: d}
	return &Exporter{Directory: &only{sc: t.Scope, targets: []Target{t}}, Transport: http.DefaultTransport, Now: func() time.Time { return at }}
}

func values(list []*commonpb.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range list {
		switch v := kv.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			out[kv.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			out[kv.Key] = v.IntValue
		case *commonpb.AnyValue_DoubleValue:
			out[kv.Key] = v.DoubleValue
		case *commonpb.AnyValue_BoolValue:
			out[kv.Key] = v.BoolValue
		default:
			out[kv.Key] = kv.Value.String()
		}
	}
	return out
}

func holds(t *testing.T, got, want map[string]any) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %v (%T), want %v", k, got[k], got[k], v)
		}
	}
}

func TestARequestIsASpanWithTodaysNames(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	e := exporter(c, Destination{})
	failed := record()
	failed.ID, failed.ClientStatus, failed.TraceID, failed.SpanID, failed.ParentSpanID, failed.Guards = "02K", 429, "mine", "", "not hex", nil
	foreign := record()
	foreign.Workspace = "another"
	e.Export(t.Context(), []usage.Record{record(), failed, foreign})
	all := c.spans(t)
	if len(all) != 3 || e.Dropped() != 0 {
		t.Fatalf("%d spans, %d dropped", len(all), e.Dropped())
	}
	s := all[0]
	if s.Name != "chat gpt-4o" || s.Kind != tracepb.Span_SPAN_KIND_CLIENT || s.Status.Code != tracepb.Status_STATUS_CODE_OK || s.EndTimeUnixNano-s.StartTimeUnixNano != 2e9 {
		t.Errorf("%v", s)
	}
	if traceOf(&usage.Record{TraceID: "0123456789abcdef0123456789abcdef"}) != [16]byte(s.TraceId) || len(s.ParentSpanId) != 8 || s.SpanId[0] != 1 {
		t.Errorf("ids %x %x %x", s.TraceId, s.SpanId, s.ParentSpanId)
	}
	got := values(s.Attributes)
	holds(t, got, map[string]any{
		attrOperation: "chat", attrProvider: "azure.ai.openai", attrSystem: "azure.ai.openai", attrRequestModel: "gpt-4o", attrResponseModel: "gpt-4o-2024",
		attrInputTokens: int64(47), attrOutputTokens: int64(11), attrCacheReadTokens: int64(30), attrCacheMadeTokens: int64(5), attrCost: int64(1234), attrCostUSD: 0.000001234,
		attrReasoningTokens: int64(4), attrStream: true, attrFirstChunk: 0.25, attrUsageCost: 0.000001234,
		attrConversation: "session-1", attrMetadataBefore + "team": "red", attrWorkspace: "w", attrServerAddress: "answers.example.com", attrServerPort: int64(8443),
	})
	for _, absent := range []string{attrCacheWriteTokens, attrErrorType, attrInputMessages, attrEstimated} {
		if v, ok := got[absent]; ok {
			t.Errorf("%s is there: %v", absent, v)
		}
	}
	guard := all[1]
	holds(t, values(guard.Attributes), map[string]any{attrGuard: "no-secrets", attrGuardVerdict: false, attrGuardAction: "deny", attrGuardPhase: "after"})
	if [8]byte(guard.ParentSpanId) != [8]byte(s.SpanId) || len(guard.Events) != 1 || guard.EndTimeUnixNano-guard.StartTimeUnixNano != 5e8 {
		t.Errorf("%v", guard)
	}
	bad := all[2]
	if bad.Status.Code != tracepb.Status_STATUS_CODE_ERROR || bad.Status.Message != "429" || values(bad.Attributes)[attrErrorType] != "429" || len(bad.ParentSpanId) != 0 || [8]byte(bad.SpanId) == [8]byte{} {
		t.Errorf("%v", bad)
	}
	for _, h := range c.headers {
		if h.Get("Authorization") != "Bearer x" || h.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%v", h)
		}
	}
	m := c.metrics(t)
	if len(m) != 2 || len(m[metricTokens].GetHistogram().DataPoints) != 2 {
		t.Errorf("%v", m)
	}
	for _, p := range m[metricTokens].GetHistogram().DataPoints {
		want := map[any]float64{"input": 94, "output": 22}[values(p.Attributes)[attrTokenType]]
		if *p.Sum != want || p.Count != 2 {
			t.Errorf("%v, want %v", p, want)
		}
	}
	if n := len(m[metricDuration].GetHistogram().DataPoints); n != 2 { // one of errors
		t.Errorf("%d points of durations", n)
	}
}

func TestTheNewerNamesAreUsedAlone(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Exporter, *Destination){
		"destination":  func(_ *Exporter, d *Destination) { d.OptIn = "http, " + Newest },
		"installation": func(e *Exporter, _ *Destination) { e.OptIn = Newest },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCollector(t)
			e := exporter(c, Destination{})
			set(e, &e.Directory.(*only).targets[0].Destination)
			nothing := record()
			nothing.Usage, nothing.ID = pricing.Usage{}, "02K"
			e.Export(t.Context(), []usage.Record{record(), nothing})
			got := values(c.spans(t)[0].Attributes)
			holds(t, got, map[string]any{attrProvider: "azure.ai.openai", attrCacheWriteTokens: int64(5), attrReasoningTokens: int64(4), attrStream: true, attrFirstChunk: 0.25})
			for _, old := range []string{attrSystem, attrCacheMadeTokens} {
				if _, ok := got[old]; ok {
					t.Errorf("%s is there", old)
				}
			}
			m := c.metrics(t)
			if m[metricTokens] != nil || m[metricDuration] == nil {
				t.Error("the older metric of tokens is there, or that of durations is not")
			}
			for counter, want := range map[string]map[string]int64{
				"input": {"text": 45, "audio": 2, "unknown": 0}, "output": {"text": 11, "unknown": 0}, "cache_read.input": {"text": 30}, "cache_write.input": {"text": 5}, "reasoning.output": {"text": 4},
			} {
				sum := m[metricSpentBefore+counter+"_tokens"].GetSum()
				if sum == nil || !sum.IsMonotonic || len(sum.DataPoints) != len(want) {
					t.Errorf("%s: %v", counter, sum)
					continue
				}
				for _, p := range sum.DataPoints {
					modality, _ := values(p.Attributes)[attrModality].(string)
					if n, ok := want[modality]; !ok || p.GetAsInt() != n {
						t.Errorf("%s of %s is %d", counter, modality, p.GetAsInt())
					}
				}
			}
			if h := m[metricSpreadBefore+"input_tokens"].GetHistogram(); h == nil || *h.DataPoints[0].Sum != 47 {
				t.Errorf("%v", h)
			}
		})
	}
}

func TestNamesAreInOneFile(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f == "names.go" || strings.HasSuffix(f, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(raw), `"gen_ai.`) {
			t.Errorf("%s spells a name of the conventions; names.go is the place", f)
		}
	}
}

func TestWhatIsNotTakenIsCountedAndTheDestinationRests(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	c.status = 503
	e := exporter(c, Destination{Signals: []string{Traces}})
	now := at
	e.Now = func() time.Time { return now }
	for range 3 {
		e.Export(t.Context(), []usage.Record{record()})
	}
	if e.Dropped() != 3 || len(c.paths) != 1 {
		t.Fatalf("%d dropped, %d calls", e.Dropped(), len(c.paths))
	}
	c.status, now = 200, now.Add(pauseAfterFailure)
	e.Export(t.Context(), []usage.Record{record()})
	if e.Dropped() != 3 || len(c.paths) != 2 {
		t.Errorf("%d dropped, %d calls", e.Dropped(), len(c.paths))
	}
	e.Directory.(*only).err = errors.New("down")
	e.Export(t.Context(), []usage.Record{record()})
	if e.Dropped() != 4 {
		t.Errorf("%d dropped where destinations cannot be read", e.Dropped())
	}
}

func TestTheQueueIsBoundedAndNeverWaits(t *testing.T) {
	t.Parallel()
	c := newCollector(t)
	e := exporter(c, Destination{Signals: []string{Traces}})
	q := NewQueue(e)
	for range maxWaiting + 5 { // nobody sends yet
		q.Offer(t.Context(), []usage.Record{record()})
	}
	if e.Dropped() != 5 {
		t.Errorf("%d dropped", e.Dropped())
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx) }()
	for deadline := time.Now().Add(30 * time.Second); ; {
		c.mu.Lock()
		n := len(c.paths)
		c.mu.Unlock()
		if n == maxWaiting {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d were sent", n)
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestHeadersAreReadAsTheVariableHasThem(t *testing.T) {
	t.Parallel()
	got, bad := ParseHeaders(" Authorization=Bearer%20a%2Cb , x-team = red,")
	if len(bad) > 0 || !slices.Equal(got, [][2]string{{"authorization", "Bearer a,b"}, {"x-team", "red"}}) {
		t.Errorf("%v %v", got, bad)
	}
	for _, list := range []string{"novalue", "=x", "a b=c", "a=%zz", "a=%0d%0ax:y", "a=\u00fc", "content-type=x", "Host=x", strings.Repeat("a=b,", 33)} {
		if _, bad := ParseHeaders(list); len(bad) != 1 || strings.Contains(bad[0].Message, "\n") {
			t.Errorf("%q is taken: %v", list, bad)
		}
	}
}

// What the gateway exported itself is known as its own, so that two of them that export
// to each other keep no log twice.
func TestOurOwnSpansAreKnown(t *testing.T) {
	t.Parallel()
	for _, latest := range []bool{false, true} {
		made := spans(&usage.Record{ID: "01", TraceID: "t", Endpoint: "chatComplete", ClientStatus: 200}, latest, nil)
		all, err := otlp.ReadTraces(otlp.Traces(&otlp.Origin{}, made))
		if err != nil || len(all) != 1 || !instrumentation.Read(&all[0]).LoggedHere {
			t.Errorf("%+v, %v", all, err)
		}
	}
}

// TestReportedRecordsAreNotExported: a span of another sender is not sent on as another span
// under the same ids, and is not part of the gateway's metrics.
func TestReportedRecordsAreNotExported(t *testing.T) {
	t.Parallel()
	reported, own := record(), record()
	reported.Reported = true
	e := Exporter{Directory: nowhere{}, ProcessTarget: &Target{}, Now: time.Now}
	if got := e.Prepare(context.Background(), []usage.Record{reported}); len(got) != 0 {
		t.Errorf("%d requests", len(got))
	}
	if got := e.Prepare(context.Background(), []usage.Record{reported, own}); len(got) != 2 || got[0].records != 1 || got[1].records != 1 {
		t.Errorf("%+v", got)
	}
}

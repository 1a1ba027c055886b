package observe

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	r.Guards = []usage.Guard{{Hook: "no-secrets", Phase: usage.GuardAfter, Denied: true, TookMS: 500, Failed: []string{"default.contains"}}}
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
	return &Exporter{Directory: &only{sc: t.Scope, targets: []Target{t}}, Via: http.DefaultTransport, Now: func() time.Time { return at }}
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

func TestTheNewerNamesStandAlone(t *testing.T) {
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

func TestNamesStandInOneFile(t *testing.T) {
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
	c.status, now = 200, now.Add(rest)
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

func TestContentIsToldWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	bodies := usage.Bodies{
		Request:  []byte(`{"model":"m","max_tokens":9,"temperature":0.5,"stop":["a"],"messages":[{"role":"user","content":"what"}]}`),
		Response: []byte(`{"id":"r1","choices":[{"message":{"content":"that"},"finish_reason":"stop"}]}`),
	}
	for _, asked := range []bool{true, false} {
		c := newCollector(t)
		e := exporter(c, Destination{Content: asked})
		e.Bodies = func(context.Context, *usage.Record) (usage.Bodies, bool) { return bodies, true }
		e.Export(t.Context(), []usage.Record{record()})
		got := values(c.spans(t)[0].Attributes)
		if _, told := got[attrInputMessages]; told != asked {
			t.Errorf("asked for: %v, told: %v", asked, told)
		}
		if asked {
			holds(t, got, map[string]any{
				attrMaxTokens: int64(9), attrTemperature: 0.5, attrResponseID: "r1",
				attrInputMessages:  `[{"role":"user","parts":[{"type":"text","content":"what"}]}]`,
				attrOutputMessages: `[{"role":"assistant","parts":[{"type":"text","content":"that"}],"finish_reason":"stop"}]`,
			})
		}
		if !asked && strings.Contains(string(slices.Concat(c.bodies...)), "what") {
			t.Error("content is told that nobody asked for")
		}
	}
}

func TestContentOfEveryDialect(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct{ request, response, in, out string }{
		"messages with tools": {
			`{"system":"be kind","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"ok"}]}]}`,
			`{"id":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"yes"}],"stop_reason":"end_turn"}`,
			`[{"role":"assistant","parts":[{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}]},{"role":"user","parts":[{"type":"tool_call_response","id":"t","response":"ok"}]}]`,
			`[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"yes"}],"finish_reason":"stop"}]`,
		},
		"responses": {
			`{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]},{"type":"function_call_output","call_id":"c","output":"1"}]}`,
			`{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":1}"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x"}]}]}`,
			`[{"role":"user","parts":[{"type":"text","content":"hi"},{"type":"blob","modality":"image","mime_type":"image/png","content":""}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c","response":"1"}]}]`,
			`[{"role":"assistant","parts":[{"type":"tool_call","id":"c","name":"f","arguments":{"a":1}},{"type":"text","content":"x"}],"finish_reason":"tool_call"}]`,
		},
		"stream of a chat": {
			`{"messages":[{"role":"tool","tool_call_id":"t","content":"1"}]}`,
			"data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\",\"tool_calls\":[{\"index\":0,\"id\":\"t\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
			`[{"role":"tool","parts":[{"type":"tool_call_response","id":"t","response":"1"}]}]`,
			`[{"role":"assistant","parts":[{"type":"text","content":"ab"},{"type":"tool_call","id":"t","name":"f","arguments":{"a":1}}],"finish_reason":"tool_call"}]`,
		},
		"stream of messages": {
			`{"messages":[]}`,
			"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"yo\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"}}\n\n",
			"",
			`[{"role":"assistant","parts":[{"type":"text","content":"yo"}],"finish_reason":"length"}]`,
		},
		"stream of responses": {
			`{"input":"hi"}`,
			"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\"}]}]}}\n\n",
			`[{"role":"user","parts":[{"type":"text","content":"hi"}]}]`,
			`[{"role":"assistant","parts":[{"type":"text","content":"x"}],"finish_reason":"stop"}]`,
		},
		"nothing known": {"\xff", "data: {\"choices\":[{\"index\":-1},{\"index\":1e9},7]}\n", "", ""},
	} {
		c := ReadContent(&usage.Bodies{Request: []byte(of.request), Response: []byte(of.response)}, false)
		got := map[string]string{}
		for _, a := range c.texts {
			got[a.Key] = a.Value.(string)
		}
		if got[attrInputMessages] != of.in {
			t.Errorf("%s: asked\n%s, want\n%s", name, got[attrInputMessages], of.in)
		}
		if got[attrOutputMessages] != of.out {
			t.Errorf("%s: answered\n%s, want\n%s", name, got[attrOutputMessages], of.out)
		}
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

func FuzzContent(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text"}]}]}`), []byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":3}]}}]}\n"))
	f.Add([]byte(`{"input":[1,null,{"type":"reasoning","summary":[{}]}],"tools":[1]}`), []byte(`{"output":[{"type":"message","content":7}],"choices":[null]}`))
	f.Fuzz(func(t *testing.T, request, response []byte) {
		for _, a := range ReadContent(&usage.Bodies{Request: request, Response: response}, false).texts {
			if !json.Valid([]byte(a.Value.(string))) {
				t.Errorf("%s is not valid JSON: %s", a.Key, a.Value)
			}
		}
	})
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
	e := Exporter{Directory: nowhere{}, Own: &Target{}, Now: time.Now}
	if got := e.Prepare(context.Background(), []usage.Record{reported}); len(got) != 0 {
		t.Errorf("%d requests", len(got))
	}
	if got := e.Prepare(context.Background(), []usage.Record{reported, own}); len(got) != 2 || got[0].records != 1 || got[1].records != 1 {
		t.Errorf("%+v", got)
	}
}

// exported are the attributes of a record's span, and the span.
func exported(t *testing.T, r usage.Record, bodies *usage.Bodies) (map[string]any, *tracepb.Span) {
	t.Helper()
	c := newCollector(t)
	e := exporter(c, Destination{Content: bodies != nil, Signals: []string{Traces}})
	e.Bodies = func(context.Context, *usage.Record) (usage.Bodies, bool) { return *bodies, true }
	r.Guards = nil
	e.Export(t.Context(), []usage.Record{r})
	all := c.spans(t)
	if len(all) != 1 {
		t.Fatalf("%d spans", len(all))
	}
	return values(all[0].Attributes), all[0]
}

// TestTruncatedStreamsAreErrors: a stream that broke off or that the client left is an
// error, and its finish reason is not invented.
func TestTruncatedStreamsAreErrors(t *testing.T) {
	t.Parallel()
	part := usage.Bodies{Response: []byte("data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")}
	for name, c := range map[string]struct {
		change     func(*usage.Record)
		kind, text string
	}{
		"broke off":        {func(r *usage.Record) { r.ClientStatus, r.ErrorMessage = 502, "The provider closed the stream" }, "502", "The provider closed the stream"},
		"client left":      {func(r *usage.Record) { r.ClientGone = true }, clientGone, clientGone},
		"provider's error": {func(r *usage.Record) { r.ClientStatus, r.ErrorMessage = 429, "Rate limit reached" }, "429", "Rate limit reached"},
	} {
		r := record()
		r.FinishReason = ""
		c.change(&r)
		got, span := exported(t, r, &part)
		if got[attrErrorType] != c.kind || span.Status.Code != tracepb.Status_STATUS_CODE_ERROR || span.Status.Message != c.text || got[attrFinishReasons] != nil {
			t.Errorf("%s: %v %v", name, got[attrErrorType], span.Status)
		}
		if messages := got[attrOutputMessages]; messages != `[{"role":"assistant","parts":[{"type":"text","content":"a"}],"finish_reason":"error"}]` {
			t.Errorf("%s: %v", name, messages)
		}
	}
}

// TestFinishReasonsAreThoseOfTheConventions: a status is no finish reason.
func TestFinishReasonsAreThoseOfTheConventions(t *testing.T) {
	t.Parallel()
	for theirs, ours := range map[string]string{
		"stop": "stop", "end_turn": "stop", "STOP": "stop", "completed": "stop", "length": "length", "max_tokens": "length", "MAX_TOKENS": "length", "incomplete": "length",
		"tool_calls": "tool_call", "tool_use": "tool_call", "content_filter": "content_filter", "refusal": "content_filter", "SAFETY": "content_filter", "failed": "error",
	} {
		r := record()
		r.FinishReason = theirs
		if got, _ := exported(t, r, nil); !strings.Contains(got[attrFinishReasons].(string), `"`+ours+`"`) {
			t.Errorf("%s: %v, want %s", theirs, got[attrFinishReasons], ours)
		}
	}
	r := record()
	r.FinishReason = "completed"
	if got, _ := exported(t, r, &usage.Bodies{Response: []byte(`{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`)}); !strings.Contains(got[attrFinishReasons].(string), `"tool_call"`) {
		t.Errorf("%v", got[attrFinishReasons])
	}
	if got, _ := exported(t, r, &usage.Bodies{Response: []byte(`{"id":"r","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`)}); !strings.Contains(got[attrFinishReasons].(string), `"content_filter"`) {
		t.Errorf("%v", got[attrFinishReasons])
	}
}

// TestToolDefinitionsAreThoseOfTheConventions reads the tools of each client's format.
func TestToolDefinitionsAreThoseOfTheConventions(t *testing.T) {
	t.Parallel()
	const want = `[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]`
	for name, c := range map[string]struct{ tools, want string }{
		"chat":          {`[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}}]`, want},
		"messages":      {`[{"name":"f","description":"d","input_schema":{"type":"object"}}]`, want},
		"responses":     {`[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]`, want},
		"gemini":        {`[{"functionDeclarations":[{"name":"f","description":"d","parameters":{"type":"object"}}]}]`, want},
		"of a provider": {`[{"type":"web_search_20250305","name":"web_search"},{"type":"code_interpreter","container":{}},{"type":"mcp","server_label":"docs"}]`, `[{"type":"web_search_20250305","name":"web_search"},{"type":"code_interpreter","name":"code_interpreter"},{"type":"mcp","name":"docs"}]`},
		"nothing":       {`[7,{},"x",{"type":"function"}]`, ""},
	} {
		got := ""
		for _, a := range ReadContent(&usage.Bodies{Request: []byte(`{"tools":` + c.tools + `}`)}, false).texts {
			if a.Key == attrTools {
				got = a.Value.(string)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestWhoAndWhatOfARequest: user, session, cost, output type and model of the response.
func TestWhoAndWhatOfARequest(t *testing.T) {
	t.Parallel()
	r := record()
	r.Agent.Session, r.EndUser, r.Metadata = "", "ada", map[string]string{"session_id": "s"}
	r.Usage.Estimated = true
	got, span := exported(t, r, &usage.Bodies{Request: []byte(`{"response_format":{"type":"json_schema"}}`)})
	holds(t, got, map[string]any{attrUser: "ada", attrConversation: "s", attrUsageCost: 0.000001234, attrEstimated: true, attrOutputType: "json"})
	if span.Name != "chat gpt-4o" {
		t.Error(span.Name)
	}
	refused := record()
	refused.ClientStatus, refused.Usage = 401, pricing.Usage{}
	if got, _ := exported(t, refused, nil); got[attrResponseModel] != nil || got[attrFirstChunk] != nil {
		t.Errorf("%v answered nothing", got[attrResponseModel])
	}
	picture := record()
	picture.Endpoint = "imageGenerate"
	if got, _ := exported(t, picture, nil); got[attrOutputType] != "image" {
		t.Errorf("%v", got[attrOutputType])
	}
	c := newCollector(t)
	exporter(c, Destination{}).Export(t.Context(), []usage.Record{record()})
	for i, path := range c.paths {
		if !strings.Contains(string(c.bodies[i]), schemaOfToday) {
			t.Errorf("%s has no schema URL", path)
		}
	}
}

// TestCumulativeMetrics: each export has what was counted since the start of the process.
func TestCumulativeMetrics(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		temporality string
		sums        []float64
		kind        metricspb.AggregationTemporality
	}{
		"delta":      {"", []float64{47, 47}, metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA},
		"cumulative": {Cumulative, []float64{47, 94}, metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE},
	} {
		c := newCollector(t)
		e := exporter(c, Destination{Signals: []string{Metrics}, Temporality: want.temporality})
		for n, sum := range want.sums {
			r := record()
			r.Start = r.Start.Add(time.Duration(n) * time.Minute)
			e.Export(t.Context(), []usage.Record{r})
			h := c.metrics(t)[metricTokens].GetHistogram()
			for _, p := range h.DataPoints {
				buckets := uint64(0)
				for _, b := range p.BucketCounts {
					buckets += b
				}
				if values(p.Attributes)[attrTokenType] == "input" && (*p.Sum != sum || buckets != p.Count || want.temporality != "" && p.StartTimeUnixNano != uint64(at.UnixNano())) {
					t.Errorf("%s: export %d has %v", name, n, p)
				}
			}
			if h.AggregationTemporality != want.kind {
				t.Errorf("%s: %s", name, h.AggregationTemporality)
			}
		}
	}
	if bad := (&Destination{Endpoint: "https://x", Temporality: "sometimes"}).Validate(); len(bad) != 1 || bad[0].Field != "metrics_temporality" {
		t.Errorf("%v", bad)
	}
}

// TestTotalsAreBounded: the memory of cumulative metrics does not grow with the number of
// destinations and series.
func TestTotalsAreBounded(t *testing.T) {
	t.Parallel()
	var all totals
	for n := range 2 * maxTotals {
		all.add(strconv.Itoa(n), []otlp.Metric{{Name: "m", Points: []otlp.Point{{Sum: 1}}}})
	}
	for n := range maxSeries + 10 {
		all.add("one", []otlp.Metric{{Name: "m", Points: []otlp.Point{{Sum: 1, Attrs: []otlp.Attr{{Key: "n", Value: strconv.Itoa(n)}}}}}})
	}
	if len(all.of) > maxTotals || len(all.of["one"]) > maxSeries {
		t.Errorf("%d destinations, %d series", len(all.of), len(all.of["one"]))
	}
}

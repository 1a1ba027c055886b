package logs

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
)

// events encodes records as a journal does, and drops them.
type events struct{ b []byte }

func (e *events) Emit(_ context.Context, r *usage.Record) error {
	e.b = r.AppendEvent(e.b[:0])
	return nil
}

const benchSpans, benchTrace = 512, 16 // spans of a request, and of a trace in it

// batch is a request with new ids: calls of models below agents, of about 740 bytes each in
// JSON.
func batch(n int) *tracepb.TracesData {
	at := uint64(time.Now().Add(-time.Hour).UnixNano())
	text := func(k, v string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: v}}}
	}
	number := func(k string, v int64) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: k, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: v}}}
	}
	var spans []*tracepb.Span
	for i := range benchSpans {
		trace := []byte(fmt.Sprintf("%08d%08d", n, i/benchTrace))
		s := &tracepb.Span{TraceId: trace, SpanId: []byte(fmt.Sprintf("%08d", i+1)), Name: "chat gpt-4o-mini", StartTimeUnixNano: at, EndTimeUnixNano: at + 1e9, Attributes: []*commonpb.KeyValue{
			text("gen_ai.operation.name", "chat"), text("gen_ai.provider.name", "openai"), text("gen_ai.request.model", "gpt-4o-mini"), text("gen_ai.response.model", "gpt-4o-mini-2024-07-18"),
			text("gen_ai.response.id", fmt.Sprint("chatcmpl-", n, "-", i)), number("gen_ai.usage.input_tokens", 1000), number("gen_ai.usage.output_tokens", 100),
		}}
		if i%benchTrace > 0 {
			s.ParentSpanId = []byte(fmt.Sprintf("%08d", i/benchTrace*benchTrace+1))
		}
		spans = append(spans, s)
	}
	return &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "shop"}, Spans: spans}}}}}
}

// inJSON is the batch in OTLP's JSON.
func inJSON(d *tracepb.TracesData) []byte {
	var out []any
	for _, s := range d.ResourceSpans[0].ScopeSpans[0].Spans {
		var attrs []any
		for _, a := range s.Attributes {
			if v, ok := a.Value.Value.(*commonpb.AnyValue_IntValue); ok {
				attrs = append(attrs, count(a.Key, int(v.IntValue)))
			} else {
				attrs = append(attrs, pair(a.Key, a.Value.GetStringValue()))
			}
		}
		out = append(out, map[string]any{"traceId": hex.EncodeToString(s.TraceId), "spanId": hex.EncodeToString(s.SpanId), "parentSpanId": hex.EncodeToString(s.ParentSpanId), "name": s.Name, "kind": 3,
			"startTimeUnixNano": fmt.Sprint(s.StartTimeUnixNano), "endTimeUnixNano": fmt.Sprint(s.EndTimeUnixNano), "attributes": attrs})
	}
	raw, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{"scopeSpans": []any{map[string]any{"scope": map[string]any{"name": "shop"}, "spans": out}}}}})
	if err != nil {
		panic(err)
	}
	return raw
}

func processor() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkIngest measures the CPU time of a span, from the request to its event, with the
// rows of traces in SQLite.
func BenchmarkIngest(b *testing.B) {
	for _, form := range []string{"json", "protobuf"} {
		b.Run(form, func(b *testing.B) {
			in := install(b)
			in.options.Interval = time.Millisecond
			in.ingest.Sink = &events{}
			bodies := make([][]byte, b.N)
			header := map[string]string{"Content-Type": "application/json"}
			for i := range bodies {
				if d := batch(i); form == "json" {
					bodies[i] = inJSON(d)
				} else {
					bodies[i], _ = proto.Marshal(d)
					header["Content-Type"] = protobufType
				}
			}
			b.ReportAllocs()
			b.ResetTimer()
			from := processor()
			for _, body := range bodies {
				if got := in.sent(b, admintest.WorkspaceA, header, body); got.Status != 200 || strings.Contains(string(got.Body), "ejected") {
					b.Fatalf("%d %s", got.Status, got.Body)
				}
			}
			b.ReportMetric(float64((processor()-from).Microseconds())/float64(b.N*benchSpans), "cpu-us/span")
			b.ReportMetric(float64(len(bodies[0]))/benchSpans, "bytes/span")
		})
	}
}

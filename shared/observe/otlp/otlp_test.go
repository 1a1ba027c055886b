package otlp

import (
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

var (
	from   = time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	origin = &Origin{Resource: []Attr{{"service.name", "gateway"}}, Name: "gateway", Version: "1"}
)

// same holds what was encoded against a message of the official types.
func same(t *testing.T, raw []byte, into, want proto.Message) {
	t.Helper()
	if err := proto.Unmarshal(raw, into); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(into, want) {
		t.Errorf("got  %s\nwant %s", protojson.Format(into), protojson.Format(want))
	}
	if n := len(into.ProtoReflect().GetUnknown()); n > 0 {
		t.Errorf("%d bytes are of no field", n)
	}
}

func attr(key string, v *commonpb.AnyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: v}
}

func str(s string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: s}}
}

func TestSpansAreThoseOfTheOfficialTypes(t *testing.T) {
	t.Parallel()
	s := Span{
		Trace: [16]byte{1, 15: 2}, ID: [8]byte{3, 7: 4}, Parent: [8]byte{5}, Name: "chat gpt-4o", Kind: KindClient, Start: from, End: from.Add(time.Second),
		Attrs:  []Attr{{"s", "text"}, {"empty", ""}, {"t", true}, {"f", false}, {"n", int64(-7)}, {"zero", int64(0)}, {"x", 0.5}, {"list", []string{"a", ""}}},
		Events: []Event{{At: from, Name: "happened", Attrs: []Attr{{"k", "v"}}}}, Status: StatusError, Message: "503",
	}
	root := Span{Trace: [16]byte{9}, ID: [8]byte{9}, Name: "ö", Kind: KindInternal, Start: from, End: from, Status: StatusOK}
	value := func(v any) *commonpb.AnyValue {
		switch v := v.(type) {
		case bool:
			return &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: v}}
		case int:
			return &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(v)}}
		}
		return &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: v.(float64)}}
	}
	list := &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: []*commonpb.AnyValue{str("a"), str("")}}}}
	want := &tracepb.TracesData{}
	scope := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: "gateway", Version: "1"}}
	of := &tracepb.ResourceSpans{ScopeSpans: []*tracepb.ScopeSpans{scope}}
	want.ResourceSpans = append(want.ResourceSpans, of)
	scope.Spans = []*tracepb.Span{{
		TraceId: s.Trace[:], SpanId: s.ID[:], ParentSpanId: s.Parent[:], Name: "chat gpt-4o", Kind: tracepb.Span_SPAN_KIND_CLIENT, Flags: 1,
		StartTimeUnixNano: uint64(from.UnixNano()), EndTimeUnixNano: uint64(from.Add(time.Second).UnixNano()),
		Attributes: []*commonpb.KeyValue{attr("s", str("text")), attr("empty", str("")), attr("t", value(true)), attr("f", value(false)), attr("n", value(-7)), attr("zero", value(0)), attr("x", value(0.5)), attr("list", list)},
		Events:     []*tracepb.Span_Event{{TimeUnixNano: uint64(from.UnixNano()), Name: "happened", Attributes: []*commonpb.KeyValue{attr("k", str("v"))}}},
		Status:     &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "503"},
	}, {
		TraceId: root.Trace[:], SpanId: root.ID[:], Name: "ö", Kind: tracepb.Span_SPAN_KIND_INTERNAL, Flags: 1, StartTimeUnixNano: uint64(from.UnixNano()), EndTimeUnixNano: uint64(from.UnixNano()),
		Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_OK},
	}}
	got := &tracepb.TracesData{}
	raw := Traces(origin, []Span{s, root})
	if err := proto.Unmarshal(raw, got); err != nil {
		t.Fatal(err)
	}
	of.Resource = got.ResourceSpans[0].Resource
	if a := of.Resource.Attributes; len(a) != 1 || a[0].Key != "service.name" || a[0].Value.GetStringValue() != "gateway" {
		t.Errorf("resource %v", a)
	}
	same(t, raw, got, want)
}

func TestMetricsAreThoseOfTheOfficialTypes(t *testing.T) {
	t.Parallel()
	bounds := []float64{1, 10}
	spread := Point{Attrs: []Attr{{"k", "v"}}, Start: from, End: from.Add(time.Minute)}
	for _, x := range []float64{1, 0.5, 10, 11, 5} {
		spread.Observe(x, bounds)
	}
	counter := Point{Attrs: []Attr{{"k", "v"}}, Start: from, End: from.Add(time.Minute), Sum: 1 << 40}
	raw := Metrics(origin, []Metric{{Name: "h", Unit: "s", Doc: "d", Bounds: bounds, Points: []Point{spread}}, {Name: "c", Unit: "{token}", Points: []Point{counter}}})
	first, last := uint64(from.UnixNano()), uint64(from.Add(time.Minute).UnixNano())
	lowest, highest, sum := 0.5, 11.0, 27.5
	got := &metricspb.MetricsData{}
	if err := proto.Unmarshal(raw, got); err != nil {
		t.Fatal(err)
	}
	of := []*commonpb.KeyValue{attr("k", str("v"))}
	want := &metricspb.MetricsData{ResourceMetrics: []*metricspb.ResourceMetrics{{Resource: got.ResourceMetrics[0].Resource, ScopeMetrics: []*metricspb.ScopeMetrics{{
		Scope: &commonpb.InstrumentationScope{Name: "gateway", Version: "1"},
		Metrics: []*metricspb.Metric{
			{Name: "h", Unit: "s", Description: "d", Data: &metricspb.Metric_Histogram{Histogram: &metricspb.Histogram{AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, DataPoints: []*metricspb.HistogramDataPoint{{
				StartTimeUnixNano: first, TimeUnixNano: last, Count: 5, Sum: &sum, BucketCounts: []uint64{2, 2, 1}, ExplicitBounds: bounds, Attributes: of, Min: &lowest, Max: &highest,
			}}}}},
			{Name: "c", Unit: "{token}", Data: &metricspb.Metric_Sum{Sum: &metricspb.Sum{AggregationTemporality: metricspb.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA, IsMonotonic: true, DataPoints: []*metricspb.NumberDataPoint{{
				StartTimeUnixNano: first, TimeUnixNano: last, Value: &metricspb.NumberDataPoint_AsInt{AsInt: 1 << 40}, Attributes: of,
			}}}}},
		},
	}}}}}
	same(t, raw, got, want)
}

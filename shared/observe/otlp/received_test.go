package otlp

import (
	stdbytes "bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	logspb "go.opentelemetry.io/proto/otlp/logs/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

var (
	traceBytes = stdbytes.Repeat([]byte{0xab}, 16)
	spanBytes  = stdbytes.Repeat([]byte{0xcd}, 8)
)

func list(values ...*commonpb.AnyValue) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{Values: values}}}
}

// kinds are attributes of every kind, officially, in JSON and as they are read.
func kinds() (attrs []*commonpb.KeyValue, asJSON string, want []Attr) {
	attrs = []*commonpb.KeyValue{
		attr("s", str("text")), attr("b", &commonpb.AnyValue{Value: &commonpb.AnyValue_BoolValue{BoolValue: true}}),
		attr("i", &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: -7}}), attr("d", &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 1.5}}),
		attr("y", &commonpb.AnyValue{Value: &commonpb.AnyValue_BytesValue{BytesValue: []byte("abc")}}), attr("l", list(str("a"), str(""))),
		attr("m", &commonpb.AnyValue{Value: &commonpb.AnyValue_KvlistValue{KvlistValue: &commonpb.KeyValueList{Values: []*commonpb.KeyValue{attr("in", str("x"))}}}}),
		attr("n", &commonpb.AnyValue{}),
	}
	asJSON = `[{"key":"s","value":{"stringValue":"text"}},{"key":"b","value":{"boolValue":true}},{"key":"i","value":{"intValue":"-7"}},{"key":"d","value":{"doubleValue":1.5}},
		{"key":"y","value":{"bytesValue":"YWJj"}},{"key":"l","value":{"arrayValue":{"values":[{"stringValue":"a"},{"stringValue":""}]}}},
		{"key":"m","value":{"kvlistValue":{"values":[{"key":"in","value":{"stringValue":"x"}}]}}},{"key":"n","value":{}}]`
	want = []Attr{{"s", "text"}, {"b", true}, {"i", int64(-7)}, {"d", 1.5}, {"y", "YWJj"}, {"l", []any{"a", ""}}, {"m", map[string]any{"in": "x"}}, {"n", nil}}
	return attrs, asJSON, want
}

// Spans that the official library writes, and the same in OTLP's JSON, are read alike.
func TestSpansOfOthers(t *testing.T) {
	t.Parallel()
	attrs, asJSON, values := kinds()
	raw, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: &resourcepb.Resource{Attributes: []*commonpb.KeyValue{attr("service.name", str("shop"))}},
		ScopeSpans: []*tracepb.ScopeSpans{{Scope: &commonpb.InstrumentationScope{Name: "lib", Version: "1"}, Spans: []*tracepb.Span{{
			TraceId: traceBytes, SpanId: spanBytes, ParentSpanId: make([]byte, 8), TraceState: "a=b", Name: "chat m", Kind: tracepb.Span_SPAN_KIND_CLIENT, Flags: 0x101,
			StartTimeUnixNano: uint64(from.UnixNano()), EndTimeUnixNano: uint64(from.UnixNano()) + 5, Attributes: attrs, DroppedAttributesCount: 3,
			Events: []*tracepb.Span_Event{{TimeUnixNano: 1, Name: "said", Attributes: []*commonpb.KeyValue{attr("k", str("v"))}}},
			Links:  []*tracepb.Span_Link{{TraceId: traceBytes, SpanId: spanBytes}}, Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "429"},
		}}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []ReceivedSpan{{
		Origin: []Attr{{"service.name", "shop"}}, Scope: "lib", Version: "1", Trace: strings.Repeat("ab", 16), ID: strings.Repeat("cd", 8), Name: "chat m", Start: from, End: from.Add(5),
		Attrs: values, Events: []ReceivedEvent{{"said", []Attr{{"k", "v"}}}}, Status: StatusError, Message: "429",
	}}
	got, err := ReadTraces(raw)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	inJSON := fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"schemaUrl":"x","scopeSpans":[{"scope":{"name":"lib","version":"1"},"spans":[
		{"traceId":%q,"spanId":%q,"parentSpanId":"0000000000000000","name":"chat m","kind":3,"startTimeUnixNano":"%d","endTimeUnixNano":%d,"attributes":%s,
		"events":[{"timeUnixNano":"1","name":"said","attributes":[{"key":"k","value":{"stringValue":"v"}}]}],"status":{"code":"STATUS_CODE_ERROR","message":"429"},"new":{}}]}]}]}`,
		want[0].Trace, want[0].ID, from.UnixNano(), from.UnixNano()+5, asJSON)
	got, err = ReadJSONTraces([]byte("\n " + inJSON))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	// What we write is read, too.
	if got, err := ReadTraces(Traces(origin, []Span{{Trace: [16]byte(traceBytes), ID: [8]byte(spanBytes), Name: "n", Start: from, End: from, Attrs: []Attr{{"k", []string{"a"}}}}})); err != nil || len(got) != 1 || got[0].Name != "n" || !cmp.Equal(got[0].Attrs, []Attr{{"k", []any{"a"}}}) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range raw { // cut anywhere: an error or less, never a panic
		_, _ = ReadTraces(raw[:n])
	}
}

func TestLogRecordsOfOthers(t *testing.T) {
	t.Parallel()
	raw, err := proto.Marshal(&logspb.LogsData{ResourceLogs: []*logspb.ResourceLogs{{ScopeLogs: []*logspb.ScopeLogs{{Scope: &commonpb.InstrumentationScope{Name: "lib"}, LogRecords: []*logspb.LogRecord{{
		ObservedTimeUnixNano: uint64(from.UnixNano()), SeverityNumber: 9, SeverityText: "INFO", Body: str("said"), Flags: 1, TraceId: traceBytes, SpanId: spanBytes,
		EventName: "gen_ai.client.inference.operation.details", Attributes: []*commonpb.KeyValue{attr("k", str("v"))},
	}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []ReceivedSpan{{
		Scope: "lib", Trace: strings.Repeat("ab", 16), ID: strings.Repeat("cd", 8), Name: "gen_ai.client.inference.operation.details", Start: from, End: from,
		Attrs: []Attr{{"k", "v"}}, Body: "said",
	}}
	got, err := ReadLogs(raw)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	inJSON := fmt.Sprintf(`{"resourceLogs":[{"scopeLogs":[{"scope":{"name":"lib"},"logRecords":[{"observedTimeUnixNano":"%d","severityNumber":9,"body":{"stringValue":"said"},"traceId":%q,"spanId":%q,"eventName":%q,
		"attributes":[{"key":"k","value":{"stringValue":"v"}}]}]}]}]}`, from.UnixNano(), want[0].Trace, want[0].ID, want[0].Name)
	got, err = ReadJSONLogs([]byte(inJSON))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestRequestsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	deep, deepJSON := &commonpb.AnyValue{}, `{"stringValue":"x"}`
	for range 40 {
		deep, deepJSON = list(deep), `{"arrayValue":{"values":[`+deepJSON+`]}}`
	}
	many := &tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{}}}}}
	for range MaxRecords + 1 {
		many.ResourceSpans[0].ScopeSpans[0].Spans = append(many.ResourceSpans[0].ScopeSpans[0].Spans, &tracepb.Span{})
	}
	wide := &tracepb.Span{}
	for i := range maxAttrs + 1 {
		wide.Attributes = append(wide.Attributes, attr(fmt.Sprint(i), str("")))
	}
	one := func(s *tracepb.Span) []byte {
		raw, _ := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{s}}}}}})
		return raw
	}
	all, _ := proto.Marshal(many)
	for name, raw := range map[string][]byte{
		"cut": one(&tracepb.Span{Name: "n"})[:5], "no length": {0x0a, 0xff}, "field 0": {0x02, 0x00}, "group": {0x0b}, "long number": append([]byte{0x08}, stdbytes.Repeat([]byte{0xff}, 11)...),
		"length beyond": binary.AppendUvarint([]byte{0x0a}, 1<<63), "deep": one(&tracepb.Span{Attributes: []*commonpb.KeyValue{attr("k", deep)}}), "many": all, "wide": one(wide),
	} {
		if got, err := ReadTraces(raw); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, raw := range map[string]string{
		"nothing": ``, "text": `"x"`, "list": `[]`, "null": `null`, "type": `{"resourceSpans":{}}`, "number": `{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":"soon"}]}]}]}`,
		"deep":  `{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"k","value":` + deepJSON + `}]}]}]}]}`,
		"many":  `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Repeat(`{},`, MaxRecords) + `{}]}]}]}`,
		"twice": `{"resourceSpans":[],"resourceSpans":[]}`, "no UTF-8": "{\"resourceSpans\":[\"\xff\"]}",
	} {
		if got, err := ReadJSONTraces([]byte(raw)); err == nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The bytes are those that the official library reads: 1 {1: entries, 2: text}.
func TestAnswersOfOTLP(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want []byte }{
		{Rejected(2, "old"), []byte("\x0a\x07\x08\x02\x12\x03old")}, {Rejected(0, ""), []byte{}}, {RejectedStatus(3, "no"), []byte("\x08\x03\x12\x02no")},
	} {
		if !stdbytes.Equal(c.got, c.want) {
			t.Errorf("%x, want %x", c.got, c.want)
		}
	}
}

func FuzzReadRequests(f *testing.F) {
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"n","attributes":[{"key":"k","value":{"intValue":"7"}}]}]}]}]}`))
	f.Add(Traces(origin, []Span{{Name: "n", Start: from, End: from, Attrs: []Attr{{"k", "v"}}, Events: []Event{{At: from, Name: "e"}}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, read := range []func([]byte) ([]ReceivedSpan, error){ReadTraces, ReadLogs, ReadJSONTraces, ReadJSONLogs} {
			if got, err := read(b); err == nil && len(got) > MaxRecords {
				t.Errorf("%d entries", len(got))
			}
		}
	})
}

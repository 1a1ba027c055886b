package logs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/observe/otlp"
	"gateway/shared/testkit/admintest"
)

const traces, records = "/otel/v1/traces", "/otel/v1/logs"

// span is a span of a chat an hour ago in OTLP's JSON.
func span(id string, more string) string {
	at := time.Now().Add(-time.Hour).Truncate(time.Hour).UnixNano()
	return fmt.Sprintf(`{"traceId":"5b8efff798038103d269b633813fc60c","spanId":%q,"parentSpanId":"eee19b7ec3c1b173","name":"chat gpt-4o-mini","startTimeUnixNano":"%d","endTimeUnixNano":"%d",
		"attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o-mini"}},
		{"key":"gen_ai.usage.input_tokens","value":{"intValue":"1000"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"100"}},{"key":"enduser.id","value":{"stringValue":"ada"}}%s]}`, id, at, at+int64(time.Second), more)
}

func traced(spans ...string) string {
	return `{"resourceSpans":[{"scopeSpans":[{"spans":[` + strings.Join(spans, ",") + `]}]}]}`
}

func TestSpansAreLogs(t *testing.T) {
	in := install(t)
	own := span("aaaaaaaaaaaaaaaa", `,{"key":"gateway.log.id","value":{"stringValue":"01"}}`)
	body := traced(span("eee19b7ec3c1b174", ""), own)
	old := strings.ReplaceAll(span("bbbbbbbbbbbbbbbb", ""), `TimeUnixNano":"17`, `TimeUnixNano":"16`)
	if got := in.Do("POST", traces, admintest.WorkspaceA, traced(old)).OK(); !strings.Contains(got.Text("partialSuccess", "errorMessage"), "90 days") {
		t.Errorf("%s", got.Body)
	}
	for range 2 { // sent again it changes nothing
		got := in.Do("POST", traces, admintest.WorkspaceA, body).OK()
		if got.Text("partialSuccess", "rejectedSpans") != "1" || !strings.Contains(got.Text("partialSuccess", "errorMessage"), "its own spans") {
			t.Errorf("%s", got.Body)
		}
	}
	listed := in.Do("GET", "/logs?trace_id=5b8efff798038103d269b633813fc60c", admintest.WorkspaceA, nil).OK()
	if listed.At("total") != 1.0 {
		t.Fatalf("%s", listed.Body)
	}
	log := in.Do("GET", "/logs/"+listed.Text("data", "0", "id"), admintest.WorkspaceA, nil).OK()
	for want, path := range map[any][]string{
		"eee19b7ec3c1b174": {"metrics", "span_id"}, "eee19b7ec3c1b173": {"metrics", "parent_span_id"}, 0.021: {"metrics", "cost"}, "chatComplete": {"metrics", "endpoint"},
		1000.0: {"metrics", "response_time"}, "gpt-4o-mini": {"request", "body", "model"}, true: {"metrics", "is_priced"},
	} {
		if log.At(path...) != want {
			t.Errorf("%v is %v, want %v", path, log.At(path...), want)
		}
	}
	for _, who := range []string{admintest.WorkspaceB, admintest.OtherAdmin} {
		if got := in.Do("GET", "/logs?trace_id=5b8efff798038103d269b633813fc60c", who, nil); got.Status == 200 && got.At("total") != 0.0 {
			t.Errorf("%s: %s", who, got.Body)
		}
	}
}

// Usage of a log record that belongs to a span is not counted beside the span's.
func TestLogRecordsAreCountedOnce(t *testing.T) {
	in := install(t)
	record := func(span string) string {
		return strings.NewReplacer(`"name"`, `"eventName"`, `"startTimeUnixNano"`, `"timeUnixNano"`, `"endTimeUnixNano"`, `"observedTimeUnixNano"`).Replace(strings.Replace(traceless, "SPAN", span, 1))
	}
	body := fmt.Sprintf(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[%s,%s]}]}]}`, record("eee19b7ec3c1b174"), record(""))
	in.Do("POST", records, admintest.WorkspaceA, body).OK()
	listed := in.Do("GET", "/logs", admintest.WorkspaceA, nil).OK()
	if listed.At("total") != 2.0 {
		t.Fatalf("%s", listed.Body)
	}
	counted := 0
	for i := range 2 {
		if listed.At("data", fmt.Sprint(i), "cost") == 0.021 {
			counted++
		} else if listed.Text("data", fmt.Sprint(i), "parent_span_id") != "eee19b7ec3c1b174" {
			t.Errorf("%s", listed.Body)
		}
	}
	if counted != 1 {
		t.Errorf("%d are counted: %s", counted, listed.Body)
	}
}

// Ids in hexadecimal are one id in either case; spans with others are counted as rejected.
func TestIDsOfSpansAreHexadecimal(t *testing.T) {
	in := install(t)
	const trace = "5b8efff798038103d269b633813fc60c"
	for name, c := range map[string]struct{ trace, id, parent string }{
		"not hexadecimal": {strings.Repeat("z", 32), "", ""}, "base64": {"W47/95gDgQPSabYzgT/GDA==", "", ""}, "too short": {"5b8efff7", "", ""}, "zeros": {strings.Repeat("0", 32), "", ""}, "none": {" ", "", ""},
		"span too long": {"", trace, ""}, "span of zeros": {"", "0000000000000000", ""}, "parent not hexadecimal": {"", "", "here"},
	} {
		one := span("eee19b7ec3c1b174", "")
		for _, swap := range [][2]string{{trace, c.trace}, {"eee19b7ec3c1b174", c.id}, {"eee19b7ec3c1b173", c.parent}} {
			if swap[1] != "" {
				one = strings.Replace(one, swap[0], strings.TrimSpace(swap[1]), 1)
			}
		}
		got := in.Do("POST", traces, admintest.WorkspaceA, `{"resourceSpans":[{"scopeSpans":[{"spans":[`+one+`]}]}]}`).OK()
		if got.Text("partialSuccess", "rejectedSpans") != "1" || !strings.Contains(got.Text("partialSuccess", "errorMessage"), "hexadecimal") {
			t.Errorf("%s: %s", name, got.Body)
		}
	}
	if listed := in.Do("GET", "/logs", admintest.WorkspaceA, nil).OK(); listed.At("total") != 0.0 {
		t.Errorf("%s", listed.Body)
	}
	upper := strings.Replace(span("EEE19B7EC3C1B174", ""), trace, strings.ToUpper(trace), 1)
	in.Do("POST", traces, admintest.WorkspaceA, `{"resourceSpans":[{"scopeSpans":[{"spans":[`+upper+`]}]}]}`).OK()
	if listed := in.Do("GET", "/logs?trace_id="+trace, admintest.WorkspaceA, nil).OK(); listed.At("total") != 1.0 || listed.Text("data", "0", "span_id") != "eee19b7ec3c1b174" {
		t.Errorf("%s", listed.Body)
	}
}

const traceless = `{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"SPAN","name":"gen_ai.client.inference.operation.details","attributes":[{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},
	{"key":"gen_ai.provider.name","value":{"stringValue":"openai"}},{"key":"gen_ai.request.model","value":{"stringValue":"gpt-4o-mini"}},{"key":"gen_ai.usage.input_tokens","value":{"intValue":1000}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":100}}]}`

// sent is a request with a body of another kind than JSON.
func (in *installation) sent(t testing.TB, key string, h map[string]string, body []byte) admintest.Response {
	t.Helper()
	r := httptest.NewRequest("POST", "/v1"+traces, bytes.NewReader(body))
	r.Header.Set("X-Gateway-Api-Key", key)
	for name, value := range h {
		r.Header.Set(name, value)
	}
	return in.Send(r)
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func TestProtobufAndGzip(t *testing.T) {
	in := install(t)
	at := time.Now().Add(-time.Hour)
	plain := otlp.Traces(&otlp.Origin{}, []otlp.Span{{Trace: [16]byte{1}, ID: [8]byte{2}, Name: "n", Start: at, End: at, Attrs: []otlp.Attr{{Key: "gen_ai.operation.name", Value: "chat"}}}})
	pb, json := map[string]string{"Content-Type": protobufType}, map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}
	if got := in.sent(t, admintest.WorkspaceA, pb, plain); got.Status != 200 || got.Header.Get("Content-Type") != protobufType || len(got.Body) != 0 {
		t.Errorf("%d %v %x", got.Status, got.Header, got.Body)
	}
	if got := in.sent(t, admintest.WorkspaceA, map[string]string{"Content-Type": protobufType, "Content-Encoding": "gzip"}, packed(plain)); got.Status != 200 {
		t.Errorf("%d %x", got.Status, got.Body)
	}
	if got := in.sent(t, admintest.WorkspaceA, json, packed([]byte(traced()))); got.Status != 200 || string(bytes.TrimSpace(got.Body)) != "{}" {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	if n := in.Do("GET", "/logs", admintest.WorkspaceA, nil).OK().At("total"); n != 1.0 {
		t.Errorf("%v logs", n)
	}
	bomb := packed(make([]byte, maxPlain+1))
	for name, c := range map[string]struct {
		key    string
		h      map[string]string
		body   []byte
		status int
	}{
		"cut":         {admintest.WorkspaceA, pb, plain[:7], 400},
		"no gzip":     {admintest.WorkspaceA, json, []byte("{}"), 400},
		"other pack":  {admintest.WorkspaceA, map[string]string{"Content-Type": protobufType, "Content-Encoding": "br"}, plain, 400},
		"bomb":        {admintest.WorkspaceA, map[string]string{"Content-Type": protobufType, "Content-Encoding": "gzip"}, bomb, 413},
		"text":        {admintest.WorkspaceA, map[string]string{"Content-Type": "text/plain"}, plain, 400},
		"no key":      {"", pb, plain, 401},
		"of all":      {admintest.AdminKey, pb, plain, 403},
		"wrong types": {admintest.WorkspaceA, map[string]string{"Content-Type": "application/json"}, []byte(`{"resourceSpans":"x"}`), 400},
	} {
		got := in.sent(t, c.key, c.h, c.body)
		if got.Status != c.status {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
		if c.h["Content-Type"] == protobufType && (got.Header.Get("Content-Type") != protobufType || len(got.Body) < 4 || got.Body[0] != 0x08) {
			t.Errorf("%s: %v %x", name, got.Header, got.Body)
		}
	}
	if got := in.sent(t, admintest.WorkspaceA, json, []byte("x")); got.Status != http.StatusBadRequest {
		t.Errorf("%d", got.Status)
	}
}

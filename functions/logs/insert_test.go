package logs

import (
	"context"
	"strings"
	"testing"
	"time"

	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
)

// intake stores reports immediately, as a worker would a moment later.
type intake struct{ in *installation }

func (k intake) Emit(ctx context.Context, r *usage.Record) error {
	return k.in.archive.Ingest(ctx, []usage.Record{*r})
}

const reportedBody = `{"request":{"url":"https://api.example.com/v1/chat/completions","provider":"openai","body":{"model":"gpt-4o-mini"}},
	"response":{"body":{"model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}},"response_time":20},"metadata":{"trace_id":"told","user":"me","a":"b"}}`

func TestReportedRequestIsALogLikeOthers(t *testing.T) {
	in := install(t)
	id := in.Do("POST", "/logs", admintest.WorkspaceA, reportedBody).OK().Text("ids", "0")
	got := in.Do("GET", "/logs/"+id, admintest.WorkspaceA, nil).OK()
	for want, path := range map[any][]string{
		"told": {"metrics", "trace_id"}, 1000.0: {"metrics", "req_units"}, 0.021: {"metrics", "cost"}, "chatComplete": {"metrics", "endpoint"}, "gpt-4o-mini": {"request", "body", "model"},
		admintest.OneSlug: {"metrics", "workspace_slug"}, 20.0: {"metrics", "response_time"}, true: {"metrics", "is_priced"},
	} {
		if got.At(path...) != want {
			t.Errorf("%v is %v, want %v", path, got.At(path...), want)
		}
	}
	listed := in.Do("GET", "/logs?trace_id=told&metadata=%7B%22a%22%3A%22b%22%2C%22_user%22%3A%22me%22%7D", admintest.WorkspaceA, nil).OK()
	if listed.At("total") != 1.0 {
		t.Errorf("%s", listed.Body)
	}
	for _, who := range []string{admintest.WorkspaceB, admintest.OtherAdmin} {
		if got := in.Do("GET", "/logs/"+id, who, nil); got.Status != 404 {
			t.Errorf("%s: %s", who, got.Body)
		}
	}
	if n := len(in.Audit()); n != 0 {
		t.Errorf("%d records in the audit log", n)
	}
}

func TestRepeatedReportIsStoredOnce(t *testing.T) {
	in := install(t)
	at := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	body := `[` + strings.Replace(reportedBody, `{"request"`, `{"id":"mine","created_at":"`+at+`","request"`, 1) + `,` + reportedBody + `]`
	first := in.Do("POST", "/logs", admintest.WorkspaceA, body).OK()
	second := in.Do("POST", "/logs", admintest.WorkspaceA, body).OK()
	if first.Text("ids", "0") != second.Text("ids", "0") || first.Text("ids", "1") == second.Text("ids", "1") {
		t.Errorf("%s\n%s", first.Body, second.Body)
	}
	in.Do("POST", "/logs", admintest.WorkspaceB, body).OK()
	for who, want := range map[string]float64{admintest.WorkspaceA: 3, admintest.WorkspaceB: 2} {
		if got := in.Do("GET", "/logs", who, nil).OK(); got.At("total") != want {
			t.Errorf("%s has %v logs", who, got.At("total"))
		}
	}
}

func TestWhoMayReport(t *testing.T) {
	in := install(t)
	for _, who := range []string{admintest.AdminKey, admintest.OtherAdmin} {
		in.Do("POST", "/logs", who, reportedBody).RequireFault(403, "AB03", "")
	}
	for _, scope := range []string{"logs.write", "completions.write", "logs.read"} {
		c := in.Caller(admintest.WorkspaceA)
		c.Scopes = admintest.ScopeList{scope}
		in.SetCaller("one-scope", c)
		in.Do("POST", "/logs", "one-scope", reportedBody).RequireFault(403, "AB03", "")
	}
	c := in.Caller(admintest.WorkspaceA)
	c.Scopes = admintest.ScopeList{"logs.write", "completions.write"}
	in.SetCaller("both", c)
	in.Do("POST", "/logs", "both", reportedBody).OK()
}

func TestMetricsOnlyStoresNoBodies(t *testing.T) {
	in := install(t)
	in.SetSettings(tenant.Settings{RequestLogging: tenant.LogMetrics})
	id := in.Do("POST", "/logs", admintest.WorkspaceA, reportedBody).OK().Text("ids", "0")
	if got := in.Do("GET", "/logs/"+id, admintest.WorkspaceA, nil).OK(); got.At("request", "body") != nil || got.At("response", "body") != nil || got.At("metrics", "req_units") != 1000.0 {
		t.Errorf("%s", got.Body)
	}
}

func TestMalformedReportsAreRejected(t *testing.T) {
	in := install(t)
	change := func(from, to string) string { return strings.Replace(reportedBody, from, to, 1) }
	old := time.Now().Add(-91 * 24 * time.Hour).UTC().Format(time.RFC3339)
	for body, fields := range map[string]string{
		`{}`: "request response", `{"request":5,"response":[]}`: "request response", `{"request":{},"response":{}}`: "request.url request.body",
		change(`"response_time":20`, `"response_time":-1`):                           "response.response_time",
		change(`"response_time":20`, `"status":99`):                                  "response.status",
		change(`"response_time":20`, `"status":"200"`):                               "response.status",
		change(`"provider":"openai"`, `"provider":"a b"`):                            "request.provider",
		change(`"provider":"openai"`, `"method":"GE T"`):                             "request.method",
		change(`"provider":"openai"`, `"headers":{"a":1}`):                           "request.headers.a",
		change(`"a":"b"`, `"a":5`):                                                   "metadata.a",
		change(`"a":"b"`, `"traceId":"x"`):                                           "metadata.trace_id",
		change(`"a":"b"`, `"a":"\u0000"`):                                            "metadata.a",
		change(`{"request"`, `{"id":"x","request"`):                                  "created_at",
		change(`{"request"`, `{"created_at":"`+old+`","request"`):                    "created_at",
		change(`{"request"`, `{"created_at":"yesterday","request"`):                  "created_at",
		`[` + reportedBody + `,` + change(`{"request"`, `{"id":"x","request"`) + `]`: "[1].created_at",
		`[` + reportedBody + `,{}]`:                                                  "[1].request [1].response",
	} {
		got := in.Do("POST", "/logs", admintest.WorkspaceA, body)
		for field := range strings.FieldsSeq(fields) {
			got.RequireFault(400, "AB01", field)
		}
	}
	if got := in.Do("GET", "/logs", admintest.WorkspaceA, nil).OK(); got.At("total") != 0.0 {
		t.Errorf("something was kept: %s", got.Body)
	}
}

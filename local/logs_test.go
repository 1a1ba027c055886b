package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

// get reads an administration response with a key and expects status 200.
func (r *running) get(path, key string) map[string]any {
	r.t.Helper()
	got := r.call("GET", path, "", "X-Gateway-Api-Key", key)
	if got.status != 200 {
		r.t.Fatalf("GET %s: %d %s", path, got.status, got.body)
	}
	return got.json(r.t)
}

// lastHour is the time of everything that a test does, as a query.
func lastHour() string {
	at := func(d time.Duration) string {
		return url.QueryEscape(time.Now().Add(d).Format("2006-01-02T15:04:05Z07:00"))
	}
	return "time_of_generation_min=" + at(-time.Hour) + "&time_of_generation_max=" + at(time.Minute)
}

// logs waits until n logs are listed and gives them, newest first.
func (r *running) logs(n int, key string) []map[string]any {
	r.t.Helper()
	var list map[string]any
	eventually(r.t, func() error {
		list = r.get("/logs?page_size=1000", key)
		if got := list["total"]; got != float64(n) {
			return fmt.Errorf("%v of %d logs", got, n)
		}
		return nil
	})
	var rows []map[string]any
	for _, row := range list["data"].([]any) {
		rows = append(rows, row.(map[string]any))
	}
	return rows
}

// member finds a value by its path, with slashes.
func member(v any, path string) any {
	for _, name := range strings.Split(path, "/") {
		if list, ok := v.([]any); ok {
			n, err := strconv.Atoi(name)
			if v = nil; err == nil && n < len(list) {
				v = list[n]
			}
			continue
		}
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func near(a, b any) bool {
	x, ok := a.(float64)
	y, also := b.(float64)
	return ok && also && math.Abs(x-y) < 1e-6
}

func TestGraphsAndListsEqualTheProvidersBill(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range traffic {
		if got := r.call("POST", c.path, c.body, "x-gateway-metadata", `{"_user":"alice","team":"ads"}`); got.status != 200 {
			t.Fatalf("%s %s: %d %s", c.path, c.body, got.status, got.body)
		}
	}
	if got := r.call("POST", "/chat/completions", `{"model":"@mock/gpt-4o-mini"}`); got.status != 400 {
		t.Fatalf("a request without messages: %d %s", got.status, got.body)
	}
	rows := r.logs(len(traffic)+1, workspaceKey)
	bill := r.mock.Bill().Total
	cents, tokens := 0.0, 0.0
	for _, row := range rows {
		cents += row["cost"].(float64)
		tokens += row["total_units"].(float64)
	}
	if want := float64(bill.NanoDollars) / 1e7; math.Abs(cents-want) > 1e-6 {
		t.Errorf("the logs cost %v cents, the provider bills %v", cents, want)
	}
	for _, key := range []string{workspaceKey, adminKey} {
		for graph, want := range map[string]float64{"requests": float64(len(rows)), "cost": cents, "tokens": tokens, "errors": 1, "users": 1} {
			got := r.get("/analytics/graphs/"+graph+"?"+lastHour(), key)
			sum := 0.0
			for _, p := range got["data_points"].([]any) {
				sum += p.(map[string]any)["total"].(float64)
			}
			if total := member(got, "summary/total"); !near(total, want) || (graph != "users" && !near(sum, want)) {
				t.Errorf("%s: %v in all, %v in the points, want %v", graph, total, sum, want)
			}
		}
	}
	users := r.get("/analytics/groups/users?"+lastHour(), workspaceKey)
	if data := users["data"].([]any); len(data) != 1 || member(data[0], "user") != "alice" || member(data[0], "requests") != float64(len(traffic)) || !near(member(data[0], "cost"), cents) {
		t.Errorf("users %v", users)
	}
	models := r.get("/logs/groups/ai_service?columns=cost,total_tokens&"+lastHour(), workspaceKey)
	sum := 0.0
	for _, row := range models["data"].([]any) {
		sum += member(row, "cost").(float64)
	}
	if math.Abs(sum-cents) > 1e-6 {
		t.Errorf("the providers' costs sum up to %v, want %v", sum, cents)
	}
}

// sensitive are values that a log must not show.
var sensitive = []string{workspaceKey, adminKey, "sk-direct-credential-of-a-caller", "inline-credential-0123456789", "my-own-secret-value", "mock-key-of-this-gateway"}

func TestALogShowsBodiesAsSentAndNoSecret(t *testing.T) {
	t.Parallel()
	r := start(t)
	mockHost := r.mockBase()
	calls := []struct {
		path, body string
		headers    []string
		translated bool
	}{
		{"/chat/completions", `{"model":"@mock/gpt-4o-mini","n":1,"messages":[{"role":"user","content":"Grüße <b> & 1.50"}],"temperature":0.70}`, []string{"x-my-token", "my-own-secret-value", "x-gateway-sensitive-headers", "x-my-token"}, false},
		{"/chat/completions", `{"model":"@mock/gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"Hello"}]}`, nil, false},
		{"/messages", `{"model":"@mock/gpt-4o-mini","max_tokens":40,"messages":[{"role":"user","content":"Hello"}]}`, nil, true},
		{"/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}`, []string{"x-gateway-provider", "openai", "Authorization", "Bearer sk-direct-credential-of-a-caller", "x-gateway-custom-host", mockHost}, false},
		{"/chat/completions", `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}`, []string{"x-gateway-config", `{"provider":"openai","api_key":"inline-credential-0123456789","custom_host":"` + mockHost + `"}`}, false},
		{"/chat/completions", `{"model":"@mock/gpt-4o-mini","messages":"none"}`, nil, false},
	}
	for i, c := range calls {
		trace := fmt.Sprint("trace-of-call-", i)
		answer := r.call("POST", c.path, c.body, append([]string{"x-gateway-trace-id", trace}, c.headers...)...)
		var id string
		eventually(t, func() error {
			rows := r.get("/logs?trace_id="+trace, workspaceKey)["data"].([]any)
			if len(rows) != 1 {
				return fmt.Errorf("%d logs of %s", len(rows), trace)
			}
			id = member(rows[0], "id").(string)
			return nil
		})
		raw := r.call("GET", "/logs/"+id, "")
		log := raw.json(t)
		if got, _ := json.Marshal(member(log, "request/body")); !sameJSON(t, got, []byte(c.body)) {
			t.Errorf("%s: request %s, sent %s", trace, got, c.body)
		}
		if text, ok := member(log, "response/body").(string); ok && text != answer.body {
			t.Errorf("%s: response %s, got %s", trace, text, answer.body)
		} else if got, _ := json.Marshal(member(log, "response/body")); !ok && !sameJSON(t, got, []byte(answer.body)) {
			t.Errorf("%s: response %s, got %s", trace, got, answer.body)
		}
		if member(log, "response/status") != float64(answer.status) || member(log, "metrics/trace_id") != trace || (log["transformedRequest"] != nil) != c.translated {
			t.Errorf("%s: %s", trace, raw.body)
		}
		for _, secret := range sensitive {
			if strings.Contains(raw.body, secret) {
				t.Errorf("%s: the log shows %s: %s", trace, secret, raw.body)
			}
		}
	}
}

// sameJSON reports whether two JSON texts are the same value, numbers as written.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	values := make([]any, 2)
	for i, text := range [][]byte{a, b} {
		if err := json.Unmarshal(text, &values[i]); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	x, _ := json.Marshal(values[0])
	y, _ := json.Marshal(values[1])
	return bytes.Equal(x, y)
}

func TestLogsStayInTheirWorkspace(t *testing.T) {
	t.Parallel()
	r := start(t)
	if got := r.call("POST", "/chat/completions", `{"model":"@mock/gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}`); got.status != 200 {
		t.Fatal(got.body)
	}
	id := r.logs(1, workspaceKey)[0]["id"].(string)
	other := r.admin("POST", "/workspaces", `{"name":"Other"}`)["id"].(string)
	key := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["logs.list","logs.view","analytics.view"]}`, other))["key"].(string)
	if got := r.get("/logs", key); got["total"] != 0.0 {
		t.Errorf("another workspace lists %v", got)
	}
	if got := r.get("/analytics/graphs/requests?"+lastHour(), key); member(got, "summary/total") != 0.0 {
		t.Errorf("another workspace counts %v", got["summary"])
	}
	foreign, missing := r.call("GET", "/logs/"+id, "", "X-Gateway-Api-Key", key), r.call("GET", "/logs/01ARZ3NDEKTSV4RRFFQ69G5FAV", "", "X-Gateway-Api-Key", key)
	if foreign.status != 404 || missing.status != 404 {
		t.Errorf("foreign %d, missing %d", foreign.status, missing.status)
	}
	if got := r.get("/logs/"+id+"?workspace_slug=default", adminKey); got["_id"] != id {
		t.Errorf("the organization key reads %v", got["_id"])
	}
	if got := r.get("/logs?workspace_id="+other, adminKey); got["total"] != 0.0 {
		t.Errorf("the organization key lists %v in the other workspace", got["total"])
	}
}

func TestAnAdministrationChangeShowsUpInTheAuditLog(t *testing.T) {
	t.Parallel()
	r := start(t)
	made := r.admin("POST", "/configs", fmt.Sprintf(`{"name":"audited","workspace_id":%q,"config":{"provider":"openai","api_key":"inline-credential-0123456789"}}`, r.workspace()))
	times := "start_time=" + url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)) + "&end_time=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
	var record map[string]any
	eventually(t, func() error {
		records := r.get("/audit-logs?uri=/v1/configs&"+times, adminKey)["records"].([]any)
		if len(records) != 1 {
			return fmt.Errorf("%d records", len(records))
		}
		record = records[0].(map[string]any)
		return nil
	})
	for name, want := range map[string]any{
		"method": "POST", "uri": "/v1/configs", "action": "create", "resource_type": "configs", "resource_id": member(made, "data/id"), "response_status_code": 200.0,
		"user_type": "api_key", "workspace_id": r.workspace(), "organisation_id": "default", "client_ip": "127.0.0.1",
	} {
		if record[name] != want {
			t.Errorf("%s is %v, want %v", name, record[name], want)
		}
	}
	text, _ := json.Marshal(record)
	for _, secret := range sensitive {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the audit log shows %s: %s", secret, text)
		}
	}
	if got := r.call("GET", "/audit-logs?"+times, ""); got.status != 403 || !strings.Contains(got.body, "AB03") {
		t.Errorf("a workspace key reads the audit log: %d %s", got.status, got.body)
	}
}

// A request with W3C trace context is a span below its caller's, which the
// gateway's own headers may name.
func TestTraceContextMakesASpan(t *testing.T) {
	t.Parallel()
	r := start(t)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	body := chatBody("gpt-4o-mini", "Hello", "")
	for _, headers := range [][]string{
		{"Traceparent", parent}, {"Traceparent", parent, "X-Gateway-Span-Name", "mine", "X-Gateway-Span-Id", "s", "X-Gateway-Parent-Span-Id", "p", "X-Gateway-Trace-Id", "t"}, {"Traceparent", "00-x"},
	} {
		if got := r.call("POST", "/chat/completions", body, append(headers, "X-Gateway-Provider", "@mock")...); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	all := r.records(3)
	if s := all[0]; s.TraceID != "0af7651916cd43dd8448eb211c80319c" || s.ParentSpanID != "b7ad6b7169203331" || s.SpanID == "" || s.SpanName != "POST /v1/chat/completions" {
		t.Errorf("%+v", s)
	}
	if s := all[1]; s.TraceID != "t" || s.ParentSpanID != "p" || s.SpanID != "s" || s.SpanName != "mine" {
		t.Errorf("%+v", s)
	}
	if s := all[2]; s.SpanName != "" || s.ParentSpanID != "" || s.TraceID == "" {
		t.Errorf("%+v", s)
	}
}

func TestTheRecordOfARefusedBodyHasItsMetadata(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, body := range []string{`{"model":"gpt-4o-mini","user":"eve","messages":[]}`, `{"model":"gpt-4o-mini","user":"eve","messages":[`, `[]`, `{"user":"eve","user":"adam"}`} {
		got := r.call("POST", "/chat/completions", body, "x-gateway-provider", "@mock", "x-gateway-metadata", `{"_user":"alice","team":"ads"}`)
		if got.status != 400 {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for _, row := range r.logs(4, workspaceKey) {
		if fmt.Sprint(row["metadata.key"], row["metadata.value"]) != "[_user team] [alice ads]" {
			t.Errorf("metadata %v %v of %v", row["metadata.key"], row["metadata.value"], row["error_message"])
		}
	}
}

func TestNamesOfModelsAreBounded(t *testing.T) {
	t.Parallel()
	r := start(t)
	long := strings.Repeat("m", 100_000)
	body := `{"model":"@mock/` + long + `","messages":[{"role":"user","content":"Hello"}]}`
	if got := r.call("POST", "/chat/completions", body); got.status != 400 || member(got.json(t), "error/param") != "model" {
		t.Errorf("a long model: %d %.300s", got.status, got.body)
	}
	// A provider's own route takes what it is sent; the record stays small.
	body = `{"model":"` + long + `","messages":[{"role":"user","content":"Hello"}]}`
	if got := r.call("POST", "/proxy/chat/completions", body, "x-gateway-provider", "@mock"); got.status != 200 || !strings.Contains(got.body, long) {
		t.Errorf("a long model passed through: %d %.300s", got.status, got.body)
	}
	for _, row := range r.logs(2, workspaceKey) {
		if model, _ := row["ai_model"].(string); len(model) > 3000 {
			t.Errorf("a record names a model of %d bytes", len(model))
		}
	}
}

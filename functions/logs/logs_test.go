package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/functions/logs/ingest"
	"gateway/shared/admin"
	"gateway/shared/blob/files"
	"gateway/shared/pricing"
	"gateway/shared/queue"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/export"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// installation is a House with an archive of logs.
type installation struct {
	*admintest.Installation
	archive *segment.Archive
	sealer  *sealer
	worker  *export.Worker
	steps   *recordingQueue
	options *TailOptions
	ingest  *ingest.Maker
	ahead   time.Duration // of the archive's clock
}

// tail changes the options of tails that begin.
func (in *installation) tail(o TailOptions) { *in.options = o }

// recordingQueue is a queue that stores the messages that are sent to it.
type recordingQueue struct {
	queue.Queue
	sent []queue.Message
}

func (q *recordingQueue) Send(_ context.Context, messages ...queue.Outgoing) error {
	for _, m := range messages {
		q.sent = append(q.sent, queue.Message{Body: m.Body, Attempt: 1})
	}
	return nil
}

// sealer is the House's sealer with failures on demand.
type sealer struct {
	admintest.Sealer
	fail error
}

func (s *sealer) Open(ctx context.Context, b seal.Binding, sealed []byte) ([]byte, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	return s.Sealer.Open(ctx, b, sealed)
}

func install(t testing.TB) *installation {
	t.Helper()
	in := &installation{sealer: &sealer{}, steps: &recordingQueue{}}
	in.Installation = admintest.Build(t, func(d admin.Deps) []admin.Family {
		b, err := files.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		in.archive = segment.New(d.Resources.Store(), b, segment.Options{Clock: func() time.Time { return time.Now().Add(in.ahead) }})
		reader := report.New(in.archive, b)
		runs := &export.Runs{Store: d.Resources.Store(), Queue: in.steps, Now: time.Now}
		in.worker = &export.Worker{Runs: runs, Reader: reader, Bucket: b, Sealer: in.sealer, Limits: export.Standard}
		f := &family{Deps: Deps{
			Reader: reader, Sealer: in.sealer, Rated: feedback.New(d.Resources.Store(), time.Now, 0, nil), Exports: runs, Bucket: b,
			Tail: TailOptions{Interval: time.Millisecond}, Store: d.Resources.Store(), Ingest: &ingest.Maker{Sink: intake{in}, Sealer: in.sealer, Now: time.Now},
		}}
		in.options, in.ingest = &f.Tail, f.Ingest
		return []admin.Family{f.describe()}
	})
	return in
}

func (in *installation) store(t testing.TB, records ...usage.Record) {
	t.Helper()
	if err := in.archive.Ingest(context.Background(), slices.Clone(records)); err != nil {
		t.Fatal(err)
	}
}

// made is a record that began some time ago.
func made(org, workspace, slug string, ago time.Duration) usage.Record {
	start := time.Now().UTC().Add(-ago).Truncate(time.Millisecond)
	r := usage.Record{
		ID: ulid.MustNew(ulid.Timestamp(start), ulid.DefaultEntropy()).String(), Start: start, Org: org, Workspace: workspace, WorkspaceSlug: slug,
		KeyID: "key", KeyType: "workspace-service", Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions", Provider: "openai", ProviderSlug: "main",
		RequestModel: "gpt-4o", Model: "gpt-4o-2024", ClientStatus: 200, Cost: 12_345_678, Priced: true, Duration: 1234567 * time.Microsecond, CacheStatus: "MISS",
		TraceID: "trace-1", EndUser: "u", Metadata: map[string]string{"_user": "u", "a": "b"},
	}
	r.Usage.Set(pricing.Input, 10)
	r.Usage.Set(pricing.CacheRead, 0)
	r.Usage.Set(pricing.Output, 5)
	return r
}

// seals puts bodies into a record.
func seals(t testing.TB, r *usage.Record, b usage.Bodies) {
	t.Helper()
	var err error
	if r.Bodies, err = (admintest.Sealer{}).Seal(context.Background(), r.BodiesBinding(), b.Append(nil)); err != nil {
		t.Fatal(err)
	}
}

func TestFamilyChecks(t *testing.T) { admintest.CheckFamily(t, install(t).Installation) }

func TestAnswersAreAsDocumented(t *testing.T) {
	in := install(t)
	full := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	full.Attempts = []usage.Attempt{{Provider: "openai", Model: "gpt-4o", Status: 500, ErrorCode: "x"}, {Provider: "openai", Status: 200, Usage: full.Usage, Cost: full.Cost}}
	full.Draws, full.Breakers, full.Losses = []usage.Draw{{Path: "config", Number: 1 << 31, Index: 1}}, []usage.Breaker{{Path: "config", Open: true}}, []string{"logprobs", "answer: logprobs"}
	full.Matches, full.Skips = []usage.Match{{Path: "config", Condition: -1, Index: 1}}, []usage.Skip{{Path: "config.targets[0]", Reason: usage.SkipOpen, Code: "x", Status: 429}}
	full.Attempts[1].Retry, full.Attempts[1].Wait, full.Attempts[1].WaitReason = 1, time.Second, usage.WaitNamed
	full.ConfigID, full.ConfigSlug, full.ConfigVersion, full.OptionIndex, full.Mode = "c", "pc-a", 3, "config.targets[1].targets[2]", "fallback"
	seals(t, &full, usage.Bodies{RequestHeaders: []byte(`{"User-Agent":"x","X-Gateway-Provider":"@main"}`), Request: []byte(`{"a":1}`), SentHeaders: []byte(`{}`), Sent: []byte(`{}`), Received: []byte("x"), Response: []byte("\xff")})
	bare := made(admintest.Org, in.One, admintest.OneSlug, 2*time.Minute)
	bare.KeyID, bare.Provider, bare.ProviderSlug, bare.Model, bare.RequestModel, bare.Metadata, bare.TraceID = "", "", "", "", "", nil, ""
	in.store(t, full, bare)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(admin.OpenAPI("t", "1", in.Families...)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	for at, path := range map[string]string{"/logs": "~1logs", "/logs?page_size=1": "~1logs", "/logs/" + full.ID: "~1logs~1%7BlogId%7D", "/logs/" + bare.ID: "~1logs~1%7BlogId%7D",
		"/logs/" + full.ID + "/explain": "~1logs~1%7BlogId%7D~1explain", "/logs/" + bare.ID + "/explain": "~1logs~1%7BlogId%7D~1explain"} {
		s, err := c.Compile("doc.json#/paths/" + path + "/get/responses/200/content/application~1json/schema")
		if err != nil {
			t.Fatal(err)
		}
		got := in.Do("GET", at, admintest.WorkspaceA, nil).OK()
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.Body))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v\n%s", at, err, got.Body)
		}
	}
}

func TestLogShowsRequestAndResponse(t *testing.T) {
	in := install(t)
	r := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	r.OptionIndex, r.Mode, r.RetryCount, r.Stream, r.Attempts = "config.targets[1]", "fallback", 2, true, []usage.Attempt{{Provider: "openai", Model: "m", Status: 200, Cost: r.Cost}}
	request := `{"model":"gpt-4o","n":1.0,"messages":[{"role":"user","content":"a <b> \u00e9"}]}`
	stream := "data: {\"x\":1}\n\ndata: [DONE]\n\n"
	seals(t, &r, usage.Bodies{
		RequestHeaders: []byte(`{"Authorization":"*****","User-Agent":"OpenAI/Python 1","X-Gateway-Api-Key":"*****","X-Gateway-Provider":"@main","X-Stainless-Runtime":"CPython","X-Stainless-Runtime-Version":"3.12","X-Stainless-Package-Version":"1.2"}`),
		Request:        []byte(request), SentHeaders: []byte(`{"X-Api-Key":"*****"}`), Sent: []byte(`{"sent":true}`), Received: []byte(`{"received":true}`),
		ResponseHeaders: []byte(`{"Content-Type":"text/event-stream"}`), Response: []byte(stream), Truncated: true,
	})
	in.store(t, r)
	a := in.Do("GET", "/logs/"+r.ID, admintest.WorkspaceA, nil).OK()
	for path, want := range map[string]any{
		"_id": r.ID, "organisation_id": admintest.Org, "created_at": r.Start.Format("2006-01-02T15:04:05.000Z"), "bodies_cut": true, "bodies_unreadable": false,
		"request/url": "/v1/chat/completions", "request/method": "POST", "request/headers/authorization": "*****", "request/headers/x-gateway-provider": nil,
		"request/gatewayHeaders/x-gateway-provider": "@main", "request/gatewayHeaders/x-gateway-api-key": "*****", "request/body/model": "gpt-4o",
		"request/body/messages/0/content": "a <b> é", "response/status": 200.0, "response/body": stream, "response/responseTime": 1234.567,
		"response/lastUsedOptionJsonPath": "config.targets[1]", "response/headers/content-type": "text/event-stream",
		"transformedRequest/body/sent": true, "transformedRequest/headers/x-api-key": "*****", "originalResponse/body/received": true,
		"metrics/id": r.ID, "metrics/workspace_slug": admintest.OneSlug, "metrics/workspace_id": in.One, "metrics/api_key_id": "key", "metrics/virtual_key": "main",
		"metrics/is_success": true, "metrics/response_status_code": 200.0, "metrics/response_time": 1234.567, "metrics/is_proxy_call": false, "metrics/stream_mode": 1.0,
		"metrics/mode": "fallback", "metrics/last_used_option_index": 1.0, "metrics/retry_success_count": 2.0, "metrics/ai_org": "openai", "metrics/ai_model": "gpt-4o-2024",
		"metrics/req_units": 10.0, "metrics/res_units": 5.0, "metrics/total_units": 15.0, "metrics/cost": 1.2345678, "metrics/cost_currency": "USD", "metrics/is_priced": true,
		"metrics/cache_status": "MISS", "metrics/cache_type": "simple", "metrics/trace_id": "trace-1", "metrics/metadata.key/0": "_user", "metrics/metadata.value/0": "u",
		"metrics/metadata.key/1": "a", "metrics/metadata.value/1": "b", "metrics/source": "OpenAI/Python 1", "metrics/runtime": "CPython", "metrics/runtime_version": "3.12",
		"metrics/sdk_version": "1.2", "usage/input": 10.0, "usage/cache_read": 0.0, "usage/reasoning": nil, "attempts/0/response_status_code": 200.0, "attempts/0/cost": 1.2345678,
	} {
		if got := a.At(strings.Split(path, "/")...); got != want {
			t.Errorf("%s = %v, want %v", path, got, want)
		}
	}
	if body := (&struct {
		Request struct{ Body json.RawMessage }
	}{}); json.Unmarshal(a.Body, body) != nil || !bytes.Contains(body.Request.Body, []byte(`"n":1.0,`)) {
		t.Errorf("numbers are not as they were sent: %s", a.Body)
	}
}

func TestBodiesOfAnyKindAreShown(t *testing.T) {
	in := install(t)
	for sent, want := range map[string][2]any{
		"": {nil, nil}, "plain text": {"plain text", nil}, `"json"`: {"json", nil}, "{\"cut": {"{\"cut", nil}, "\xff\xfe\x00": {"//4A", "base64"}, "\"\xff\"": {`Iv8i`, "base64"},
		"0": {0.0, nil}, strings.Repeat("[", 20_000): {strings.Repeat("[", 20_000), nil},
	} {
		r := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
		seals(t, &r, usage.Bodies{Response: []byte(sent)})
		in.store(t, r)
		a := in.Do("GET", "/logs/"+r.ID, admintest.WorkspaceA, nil).OK()
		if a.At("response", "body") != want[0] || a.At("response", "body_encoding") != want[1] {
			t.Errorf("%.40q is shown as %.80v %v", sent, a.At("response", "body"), a.At("response", "body_encoding"))
		}
	}
}

func TestBodiesThatCannotBeOpenedLeaveTheMetrics(t *testing.T) {
	in := install(t)
	r := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	seals(t, &r, usage.Bodies{Request: []byte(`{"a":1}`)})
	moved := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	moved.Bodies = []byte("no bodies")
	in.store(t, r, moved)
	in.sealer.fail = seal.ErrRefused
	a := in.Do("GET", "/logs/"+r.ID, admintest.WorkspaceA, nil).OK()
	if a.At("bodies_unreadable") != true || a.At("request", "body") != nil || a.At("metrics", "total_units") != 15.0 {
		t.Errorf("log %s", a.Body)
	}
	in.sealer.fail = errors.New("the key service is away")
	in.Do("GET", "/logs/"+r.ID, admintest.WorkspaceA, nil).RequireFault(500, "AB04", "")
}

func TestForeignLogIsAMissingOne(t *testing.T) {
	in := install(t)
	r := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	in.store(t, r)
	for key, query := range map[string]string{
		admintest.WorkspaceB: "", admintest.OtherAdmin: "", admintest.AdminKey: "?workspace_id=" + in.Two, admintest.WorkspaceA: "",
	} {
		missing := in.Do("GET", "/logs/"+ulid.Make().String()+query, key, nil).RequireFault(404, "AB08", "logId")
		for _, id := range []string{resource.NewID(), "x", strings.ToLower(r.ID), "%00", r.ID + "0", strings.Repeat("7", 26)} {
			if got := in.Do("GET", "/logs/"+id+query, key, nil); got.Comparable() != missing.Comparable() {
				t.Errorf("%q as %s: %d %s", id, key, got.Status, got.Body)
			}
		}
		if foreign := in.Do("GET", "/logs/"+r.ID+query, key, nil); key != admintest.WorkspaceA && foreign.Comparable() != missing.Comparable() {
			t.Errorf("a foreign log is told from a missing one as %s: %s", key, foreign.Body)
		}
	}
	for key, query := range map[string]string{
		admintest.WorkspaceA: "", admintest.AdminKey: "", admintest.MemberKey: "?workspace_slug=" + admintest.TwoSlug,
	} {
		in.Do("GET", "/logs/"+r.ID+query, key, nil).OK()
	}
	in.Do("GET", "/logs/"+r.ID+"?workspace_slug="+admintest.OneSlug, admintest.AdminKey, nil).OK()
	in.Do("GET", "/logs/"+r.ID+"?workspace_slug="+admintest.TwoSlug, admintest.AdminKey, nil).RequireFault(404, "AB08", "logId")
}

func TestAnyOfTheScopesReadsALog(t *testing.T) {
	in := install(t)
	r := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	r.KeyID = in.Caller(admintest.WorkspaceA).KeyID
	in.store(t, r)
	for scope, want := range map[string][2]int{
		"logs.read": {200, 403}, "logs.view": {200, 403}, "completions.write": {200, 403}, "logs.write": {200, 403}, "logs.list": {403, 200}, "logs.export": {403, 403}, "analytics.view": {403, 403},
	} {
		c := in.Caller(admintest.WorkspaceA)
		c.Scopes = admintest.ScopeList{scope}
		in.SetCaller("one-scope", c)
		one, list := in.Do("GET", "/logs/"+r.ID, "one-scope", nil), in.Do("GET", "/logs", "one-scope", nil)
		if one.Status != want[0] || list.Status != want[1] {
			t.Errorf("%s: %d and %d, want %v", scope, one.Status, list.Status, want)
		}
	}
}

// ids are the ids of a page.
func ids(a admintest.Response) (out []string) {
	rows, _ := a.At("data").([]any)
	for _, r := range rows {
		out = append(out, r.(map[string]any)["id"].(string))
	}
	return out
}

func TestListIsPagedByNumberAndByCursor(t *testing.T) {
	in := install(t)
	var want []string
	for i := range 25 {
		r := made(admintest.Org, in.One, admintest.OneSlug, time.Duration(i)*time.Minute)
		want = append(want, r.ID)
		in.store(t, r, made(admintest.Org, in.Two, admintest.TwoSlug, time.Duration(i)*time.Minute), made(admintest.OtherOrg, in.Three, admintest.ThreeSlug, time.Minute))
	}
	var byPage, byCursor []string
	for page := range 4 {
		a := in.Do("GET", fmt.Sprintf("/logs?page_size=7&current_page=%d", page), admintest.WorkspaceA, nil).OK()
		byPage = append(byPage, ids(a)...)
		if a.At("total") != 25.0 || a.At("total_is_lower_bound") != nil || (a.Text("next_cursor") == "") != (page == 3) {
			t.Errorf("page %d: %s", page, a.Body)
		}
	}
	at := "/logs?page_size=10"
	for at != "" {
		a := in.Do("GET", at, admintest.WorkspaceA, nil).OK()
		byCursor = append(byCursor, ids(a)...)
		if at = ""; a.Text("next_cursor") != "" {
			at = "/logs?page_size=10&cursor=" + a.Text("next_cursor")
		}
	}
	if !slices.Equal(byPage, want) || !slices.Equal(byCursor, want) {
		t.Errorf("by page   %v\nby cursor %v\nwant      %v", byPage, byCursor, want)
	}
	if got := in.Do("GET", "/logs?page_size=0", admintest.WorkspaceA, nil).OK(); got.At("total") != 25.0 || len(ids(got)) != 0 || got.At("data") == nil {
		t.Errorf("the total alone: %s", got.Body)
	}
	for query, want := range map[string]float64{"": 50, "&workspace_slug=" + admintest.TwoSlug: 25, "&workspace_id=" + in.One: 25} {
		if got := in.Do("GET", "/logs?page_size=0"+query, admintest.AdminKey, nil).OK().At("total"); got != want {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
}

func TestListIsFiltered(t *testing.T) {
	in := install(t)
	a, b := made(admintest.Org, in.One, admintest.OneSlug, time.Minute), made(admintest.Org, in.One, admintest.OneSlug, 2*time.Hour)
	b.ClientStatus, b.TraceID, b.Metadata = 429, "trace-2", nil
	old := made(admintest.Org, in.One, admintest.OneSlug, 40*24*time.Hour)
	in.store(t, a, b)
	in.store(t, old)
	ago := func(d time.Duration) string { return time.Now().UTC().Add(-d).Format(time.RFC3339) }
	for query, want := range map[string][]string{
		"": {a.ID, b.ID}, "status_code=429": {b.ID}, "trace_id=trace-1": {a.ID}, "metadata=%7B%22a%22%3A%22b%22%7D": {a.ID}, "ai_model=none": nil, "cost_max=1": nil,
		"time_of_generation_min=" + ago(time.Hour): {a.ID}, "time_of_generation_max=" + ago(time.Hour): {b.ID},
		"time_of_generation_min=" + ago(50*24*time.Hour): {a.ID, b.ID, old.ID}, "time_of_generation_max=" + ago(20*24*time.Hour): {old.ID},
	} {
		if got := ids(in.Do("GET", "/logs?"+query, admintest.WorkspaceA, nil).OK()); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
}

func TestTotalIsALowerBoundAboveTenThousand(t *testing.T) {
	in := install(t)
	records := make([]usage.Record, 10_001)
	for i := range records {
		records[i] = made(admintest.Org, in.One, admintest.OneSlug, time.Duration(i)*time.Millisecond)
	}
	in.store(t, records[:10_000]...)
	if got := in.Do("GET", "/logs?page_size=1", admintest.WorkspaceA, nil).OK(); got.At("total") != 10_000.0 || got.At("total_is_lower_bound") != nil {
		t.Errorf("ten thousand: %s", got.Body)
	}
	in.store(t, records[10_000:]...)
	got := in.Do("GET", "/logs?page_size=1&current_page=10000", admintest.WorkspaceA, nil).OK()
	if got.At("total") != 10_000.0 || got.At("total_is_lower_bound") != true || len(ids(got)) != 1 {
		t.Errorf("one more: %s", got.Body)
	}
}

func TestBadQueriesNameTheirParameter(t *testing.T) {
	in := install(t)
	for query, field := range map[string]string{
		"page_size=1001": "page_size", "page_size=-1": "page_size", "current_page=-1": "current_page", "current_page=1000&page_size=1000": "current_page",
		"cursor=x": "cursor", "cursor=%21": "cursor", "cursor=AAAA&current_page=1": "cursor", "cursor=AAAAAAAAAAAAAAAA": "cursor", "cursor=" + strings.Repeat("A", 300): "cursor",
		"time_of_generation_min=x": "time_of_generation_min", "time_of_generation_min=2999-01-01": "time_of_generation_min", "time_of_generation_max=1999-01-01&time_of_generation_min=2000-01-01": "time_of_generation_max",
		"status_code=abc": "status_code", "metadata=1": "metadata", "cost_min=a": "cost_min",
	} {
		in.Do("GET", "/logs?"+query, admintest.WorkspaceA, nil).RequireFault(400, "AB01", field)
	}
}

func TestOrganisationIsNamed(t *testing.T) {
	in := install(t)
	ctx := context.Background()
	rec := resource.Record{Scope: in.Caller(admintest.AdminKey).Scope, Kind: tenant.KindOrganisation, ID: admintest.Org, Name: "Acme", Status: "active", Body: []byte("{}")}
	if err := in.Resources.Change(ctx, rec.Scope, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
	r := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	in.store(t, r)
	if got := in.Do("GET", "/logs/"+r.ID, admintest.WorkspaceA, nil).OK().Text("metrics", "organisation_name"); got != "Acme" {
		t.Errorf("organization %q", got)
	}
	for _, path := range [][]string{{"/logs/" + r.ID, "metrics", "workspace_name"}, {"/logs", "data", "0", "workspace_name"}} {
		if got := in.Do("GET", path[0], admintest.WorkspaceA, nil).OK().Text(path[1:]...); got != "One" {
			t.Errorf("%v: workspace_name = %q", path, got)
		}
	}
	if got := in.Do("GET", "/logs", admintest.WorkspaceA, nil).OK().Text("data", "0", "organisation_name"); got != "Acme" {
		t.Errorf("organization %q", got)
	}
}

func FuzzQueriesAreAnsweredOrRefused(f *testing.F) {
	in := install(f)
	in.store(f, made(admintest.Org, in.One, admintest.OneSlug, time.Minute))
	for _, q := range []string{"page_size=1", "cursor=AAAAAAAAAAAA", "metadata={}", "status_code=200,201", "cost_min=1e3", "time_of_generation_min=2026-01-01T00:00:00 05:30"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest("GET", "/v1/logs", nil)
		r.URL.RawQuery = query
		r.Header.Set("x-gateway-api-key", admintest.WorkspaceA)
		if got := in.For(t).Send(r); got.Status != 200 && got.Status != 400 && got.Status != 403 {
			t.Errorf("%q: %d %s", query, got.Status, got.Body)
		}
	})
}

func BenchmarkNewestPage(b *testing.B) {
	in := install(b)
	for range 50 {
		batch := make([]usage.Record, 1000)
		for i := range batch {
			batch[i] = made(admintest.Org, in.One, admintest.OneSlug, time.Duration(i)*time.Minute)
		}
		in.store(b, batch...)
	}
	b.ReportAllocs()
	for b.Loop() {
		in.For(b).Do("GET", "/logs", admintest.WorkspaceA, nil).OK()
	}
}

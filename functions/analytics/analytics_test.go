package analytics

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/shared/admin"
	"gateway/shared/blob/files"
	"gateway/shared/pricing"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// noon is the time of the tests' records.
var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func newInstallation(t testing.TB) (*admintest.Installation, *segment.Archive) {
	t.Helper()
	var archive *segment.Archive
	h := admintest.Build(t, func(d admin.Deps) []admin.Family {
		b, err := files.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		archive = segment.New(d.Resources.Store(), b, segment.Options{})
		return []admin.Family{New(report.New(archive, b), feedback.New(d.Resources.Store(), func() time.Time { return noon }, 0, nil))}
	})
	return h, archive
}

// made is the i-th record of a workspace: a request a minute, with a user, a
// team, and a cost of i cents.
func made(org, workspace, slug string, i int) usage.Record {
	start := noon.Add(-time.Duration(i) * time.Minute)
	r := usage.Record{
		ID: ulid.MustNew(ulid.Timestamp(start), ulid.DefaultEntropy()).String(), Start: start, Org: org, Workspace: workspace, WorkspaceSlug: slug,
		KeyID: "key-" + slug, Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions", Provider: "openai", ProviderSlug: "main",
		Model: fmt.Sprintf("m%d", i%2), ClientStatus: 200, Cost: pricing.NanoDollars(i) * 10_000_000, Duration: time.Duration(i+1) * 100 * time.Millisecond,
		CacheStatus: "MISS", EndUser: fmt.Sprintf("user-%d", i%3), Metadata: map[string]string{"team": fmt.Sprintf("t%d", i%2), "_user": fmt.Sprintf("user-%d", i%3)},
	}
	switch i % 5 {
	case 1:
		r.ClientStatus = 429
	case 2:
		r.ClientStatus, r.ConfigSlug = 500, "pc-a"
	case 3:
		r.CacheStatus, r.CacheSaved, r.Cost = "HIT", 50_000_000, 0
	case 4:
		r.RetryCount, r.Mode, r.OptionIndex = 2, "fallback", "config.targets[1]"
		r.Agent = usage.Agent{Session: "s1", ID: fmt.Sprintf("a%d", i), Parent: "a0"}
	}
	r.Usage.Set(pricing.Input, 10)
	r.Usage.Set(pricing.Output, int64(i))
	return r
}

// fill puts ten records into each workspace and gives those of the first.
func fill(t testing.TB, h *admintest.Installation, a *segment.Archive) []usage.Record {
	t.Helper()
	var all []usage.Record
	for _, w := range [][3]string{{admintest.Org, h.One, admintest.OneSlug}, {admintest.Org, h.Two, admintest.TwoSlug}, {admintest.OtherOrg, h.Three, admintest.ThreeSlug}} {
		for i := range 10 {
			all = append(all, made(w[0], w[1], w[2], i))
		}
	}
	if err := a.Ingest(context.Background(), slices.Clone(all)); err != nil {
		t.Fatal(err)
	}
	return all[:10]
}

// day is the day of the records, in the offset of India.
const day = "time_of_generation_min=2026-03-10T00:00:00%2B05:30&time_of_generation_max=2026-03-10T23:59:59Z"

// hour is one minute more than an hour before noon: buckets of a minute.
const hour = "time_of_generation_min=2026-03-10T11:00:00Z&time_of_generation_max=2026-03-10T12:00:59Z"

func TestFamilyChecks(t *testing.T) {
	h, _ := newInstallation(t)
	admintest.CheckFamily(t, h)
}

func TestEveryGraphHasItsDocument(t *testing.T) {
	names := append(report.GraphNames(), report.FeedbackGraphs()...)
	for _, name := range names {
		if docs[name] == "" {
			t.Errorf("%s has no document", name)
		}
	}
	if len(docs) != len(names) {
		t.Error("there are documents of graphs that there are not")
	}
}

// routes of the tests: concrete paths by the documented ones.
func routes() map[string]string {
	out := map[string]string{
		"/analytics/summary/cache": "/analytics/summary/cache", "/analytics/graphs": "/analytics/graphs?include=cost,latency", "/analytics/groups/users": "/analytics/groups/users",
		"/analytics/groups/ai-models": "/analytics/groups/ai-models", "/analytics/groups/metadata/{metadataKey}": "/analytics/groups/metadata/team",
		"/analytics/groups/{groupBy}": "/analytics/groups/status_code", "/logs/groups/{groupBy}": "/logs/groups/config",
	}
	for _, name := range append(report.GraphNames(), report.FeedbackGraphs()...) {
		out["/analytics/graphs/"+name] = "/analytics/graphs/" + name
	}
	return out
}

func TestAnswersAreAsDocumented(t *testing.T) {
	h, a := newInstallation(t)
	fill(t, h, a)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(admin.OpenAPI("t", "1", h.Families...)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	all := "&columns=" + strings.Join(columns, ",")
	for path, at := range routes() {
		pointer := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path)
		s, err := c.Compile("doc.json#/paths/" + pointer + "/get/responses/200/content/application~1json/schema")
		if err != nil {
			t.Fatal(err)
		}
		queries := []string{day, hour, "time_of_generation_min=2020-01-01&time_of_generation_max=2020-03-05"}
		if strings.Contains(path, "{groupBy}") {
			queries = append(queries, day+all)
		}
		for _, query := range queries {
			separator := "?"
			if strings.Contains(at, "?") {
				separator = "&"
			}
			got := h.Do("GET", at+separator+query, admintest.AdminKey, nil).OK()
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.Body))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(v); err != nil {
				t.Errorf("%s?%s: %v\n%s", at, query, err, got.Body)
			}
		}
	}
}

// sum adds a member over the points of a graph.
func sum(a admintest.Response, member string) (total float64) {
	points, _ := a.At("data_points").([]any)
	for _, p := range points {
		n, _ := p.(map[string]any)[member].(float64)
		total += n
	}
	return total
}

func TestGraphsEqualTheSumOverTheRecords(t *testing.T) {
	h, a := newInstallation(t)
	records := fill(t, h, a)
	var cents, tokens, failed float64
	for i := range records {
		cents += report.Cents(records[i].Cost)
		tokens += float64(records[i].Usage.TotalTokens())
		if !records[i].Success() {
			failed++
		}
	}
	for graph, want := range map[string]float64{"requests": 10, "cost": cents, "tokens": tokens, "errors": failed} {
		for _, query := range []string{day, hour} {
			got := h.Do("GET", "/analytics/graphs/"+graph+"?"+query, admintest.WorkspaceA, nil).OK()
			if total, _ := got.At("summary", "total").(float64); math.Abs(total-want) > 1e-9 || math.Abs(sum(got, "total")-want) > 1e-9 {
				t.Errorf("%s: %v in the summary, %v in the points, want %v", graph, total, sum(got, "total"), want)
			}
		}
	}
	got := h.Do("GET", "/analytics/graphs/latency?"+hour, admintest.WorkspaceA, nil).OK()
	if avg := got.At("summary", "avg"); avg != 550.0 {
		t.Errorf("mean latency %v", avg)
	}
	if p50, _ := got.At("summary", "p50").(float64); math.Abs(p50-500) > 6 {
		t.Errorf("median latency %v", p50)
	}
}

func TestBucketsFollowTheLengthAndTheOffset(t *testing.T) {
	h, _ := newInstallation(t)
	for _, c := range []struct {
		from, to, first, second string
		n                       int
	}{
		{"2026-03-10T10:00:30 05:30", "2026-03-10T12:00:30 05:30", "2026-03-10T10:00:00+05:30", "2026-03-10T10:01:00+05:30", 121},
		{"2026-03-10T10:10:00 05:30", "2026-03-10T12:10:01 05:30", "2026-03-10T10:00:00+05:30", "2026-03-10T11:00:00+05:30", 3},
		{"2026-03-10T10:10:00-03:30", "2026-03-12T10:10:01-03:30", "2026-03-10T00:00:00-03:30", "2026-03-11T00:00:00-03:30", 3},
		{"2026-03-11T10:00:00Z", "2026-05-11T10:00:00Z", "2026-03-09T00:00:00Z", "2026-03-16T00:00:00Z", 10},
	} {
		q := "time_of_generation_min=" + url.QueryEscape(c.from) + "&time_of_generation_max=" + url.QueryEscape(c.to)
		got := h.Do("GET", "/analytics/graphs/requests?"+q, admintest.WorkspaceA, nil).OK()
		points := got.At("data_points").([]any)
		if len(points) != c.n || got.Text("data_points", "0", "timestamp") != c.first || got.Text("data_points", "1", "timestamp") != c.second || sum(got, "total") != 0 {
			t.Errorf("%s to %s: %d buckets from %s, %s", c.from, c.to, len(points), got.Text("data_points", "0", "timestamp"), got.Text("data_points", "1", "timestamp"))
		}
	}
}

func TestFiltersNarrowTheAnswers(t *testing.T) {
	h, a := newInstallation(t)
	fill(t, h, a)
	for query, want := range map[string]float64{
		"": 10, "&status_code=429": 2, "&status_code=429,500": 4, "&configs=pc-a": 2, "&ai_model=m0": 5, "&ai_org_model=openai__m1": 5, "&ai_org_model=anthropic__m1": 0,
		"&virtual_keys=main": 10, "&virtual_keys=other": 0, "&cost_min=5": 4, "&cost_min=4.5&cost_max=6": 2, "&total_units_max=12": 3, "&completion_token_min=9": 1,
		"&prompt_token_max=9": 0, "&cache_status=HIT": 2, "&ai_org=openai": 10, "&metadata=" + url.QueryEscape(`{"team":"t1","_user":"user-0"}`): 2,
		"&weighted_feedback_min=-10": 0, "&api_key_ids=key-" + admintest.OneSlug: 10, "&trace_id=none": 0,
	} {
		if got := h.Do("GET", "/analytics/graphs/requests?"+day+query, admintest.WorkspaceA, nil).OK().At("summary", "total"); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

func TestEachCallerSeesItsOwnNumbers(t *testing.T) {
	h, a := newInstallation(t)
	fill(t, h, a)
	one := made(admintest.Org, h.One, admintest.OneSlug, 11)
	if err := a.Ingest(context.Background(), []usage.Record{one}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key, query string
		want       float64
	}{
		{admintest.WorkspaceA, "", 11}, {admintest.WorkspaceB, "", 10}, {admintest.AdminKey, "", 21}, {admintest.OtherAdmin, "", 10},
		{admintest.AdminKey, "&workspace_slug=" + admintest.TwoSlug, 10}, {admintest.AdminKey, "&workspace_id=" + h.One, 11},
		{admintest.WorkspaceB, "&workspace_slug=" + admintest.OneSlug, 10}, {admintest.WorkspaceB, "&api_key_ids=key-" + admintest.OneSlug, 0},
	} {
		for _, path := range []string{"/analytics/graphs/requests", "/analytics/summary/cache"} {
			got := h.Do("GET", path+"?"+day+c.query, c.key, nil).OK()
			total := got.At("summary", "total")
			if total == nil {
				total = got.At("summary", "total_requests")
			}
			if total != c.want {
				t.Errorf("%s%s as %s: %v, want %v", path, c.query, c.key, total, c.want)
			}
		}
	}
	groups := h.Do("GET", "/logs/groups/workspace?"+day, admintest.AdminKey, nil).OK()
	if got, _ := json.Marshal(groups.At("data")); string(got) != `[{"object":"analytics-group","requests":11,"workspace":"ws-one-000001"},{"object":"analytics-group","requests":10,"workspace":"ws-two-000002"}]` {
		t.Errorf("by workspace: %s", got)
	}
}

func TestCacheSummary(t *testing.T) {
	h, a := newInstallation(t)
	fill(t, h, a)
	got := h.Do("GET", "/analytics/summary/cache?"+day, admintest.WorkspaceA, nil).OK()
	if s, _ := json.Marshal(got.At("summary")); got.Text("object") != "analytics-summary" || got.At("summary", "hits") != 2.0 || got.At("summary", "avg_latency") != 650.0 || got.At("summary", "total_requests") != 10.0 {
		t.Errorf("summary %s", s)
	}
	rate := h.Do("GET", "/analytics/graphs/cache/hit-rate?"+hour, admintest.WorkspaceA, nil).OK()
	points := rate.At("data_points").([]any)
	if last := points[len(points)-1].(map[string]any); rate.At("summary", "rate") != 20.0 || last["cumulative_simple_cache_savings"] != 10.0 {
		t.Errorf("hit rate %v, last point %v", rate.At("summary"), last)
	}
	rescued := h.Do("GET", "/analytics/graphs/requests/rescued?"+day, admintest.WorkspaceA, nil).OK()
	if s, _ := json.Marshal(rescued.At("summary")); string(s) != `{"fallback":2,"retry":2}` {
		t.Errorf("rescued %s", s)
	}
	codes := h.Do("GET", "/analytics/graphs/errors/status-codes?"+day, admintest.WorkspaceA, nil).OK()
	if s, _ := json.Marshal(codes.At("data_points")); string(s) != `[{"count":2,"status_code":429},{"count":2,"status_code":500}]` {
		t.Errorf("status codes %s", s)
	}
}

func TestGroups(t *testing.T) {
	h, a := newInstallation(t)
	fill(t, h, a)
	for at, want := range map[string]string{
		"/analytics/groups/users?" + day:                                          `[{"cost":15,"cost_unit":"cents","cost_usd":0.15,"object":"analytics-group","requests":4,"user":"user-0"},{"cost":12,"cost_unit":"cents","cost_usd":0.12,"object":"analytics-group","requests":3,"user":"user-1"},{"cost":7,"cost_unit":"cents","cost_usd":0.07,"object":"analytics-group","requests":3,"user":"user-2"}]`,
		"/analytics/groups/ai-models?" + day:                                      `[{"ai_model":"m0","object":"analytics-group","requests":5},{"ai_model":"m1","object":"analytics-group","requests":5}]`,
		"/analytics/groups/metadata/team?" + day + "&order_by=requests:asc":       `[{"avg_tokens":14,"avg_weighted_feedback":0,"cost":12,"cost_unit":"cents","cost_usd":0.12,"last_seen":"2026-03-10T12:00:00.000Z","metadata_value":"t0","object":"analytics-group","requests":5,"requests_with_feedback":0},{"avg_tokens":15,"avg_weighted_feedback":0,"cost":22,"cost_unit":"cents","cost_usd":0.22,"last_seen":"2026-03-10T11:59:00.000Z","metadata_value":"t1","object":"analytics-group","requests":5,"requests_with_feedback":0}]`,
		"/analytics/groups/session?" + day:                                        `[{"object":"analytics-group","requests":2,"session":"s1"}]`,
		"/analytics/groups/agent?session_id=s1&" + day:                            `[{"agent":"a4","object":"analytics-group","requests":1},{"agent":"a9","object":"analytics-group","requests":1}]`,
		"/analytics/groups/parent_agent?" + day + "&columns=error_count":          `[{"error_count":0,"object":"analytics-group","parent_agent":"a0","requests":2}]`,
		"/analytics/groups/metadata/none?" + day:                                  `[]`,
		"/analytics/groups/status_code?" + day + "&columns=error_count":           `[{"error_count":0,"object":"analytics-group","requests":6,"status_code":200},{"error_count":2,"object":"analytics-group","requests":2,"status_code":429},{"error_count":2,"object":"analytics-group","requests":2,"status_code":500}]`,
		"/logs/groups/config?" + day:                                              `[{"config":"pc-a","object":"analytics-group","requests":2}]`,
		"/logs/groups/provider?" + day + "&columns=total_tokens,%20success_rate":  `[{"object":"analytics-group","provider":"main","requests":10,"success_rate":60,"total_tokens":145}]`,
		"/analytics/groups/users?" + day + "&order_by=cost:asc&page_size=1":       `[{"cost":7,"cost_unit":"cents","cost_usd":0.07,"object":"analytics-group","requests":3,"user":"user-2"}]`,
		"/analytics/groups/users?" + day + "&page_size=2&current_page=1":          `[{"cost":7,"cost_unit":"cents","cost_usd":0.07,"object":"analytics-group","requests":3,"user":"user-2"}]`,
		"/analytics/groups/users?" + day + "&page_size=0":                         `[]`,
		"/analytics/groups/users?" + day + "&page_size=1000&current_page=1000000": `[]`,
		"/analytics/groups/ai_service?" + day + "&columns=first_seen,avg_latency,p95_latency,requests,cache_hit_rate&order_by=p99_latency": "",
	} {
		got := h.Do("GET", at, admintest.WorkspaceA, nil).OK()
		if data, _ := json.Marshal(got.At("data")); want != "" && string(data) != want {
			t.Errorf("%s:\n%s\nwant\n%s", at, data, want)
		}
		if strings.Contains(at, "groups/users") && got.At("total") != 3.0 {
			t.Errorf("%s: total %v", at, got.At("total"))
		}
	}
}

func TestBadQuestionsNameTheirParameter(t *testing.T) {
	h, _ := newInstallation(t)
	for at, field := range map[string]string{
		"/analytics/groups/colour?" + day:                                        "groupBy",
		"/analytics/groups/Model?" + day:                                         "groupBy",
		"/logs/groups/users?" + day:                                              "groupBy",
		"/logs/groups/metadata?" + day:                                           "groupBy",
		"/analytics/groups/model?" + day + "&columns=cost,colour":                "columns",
		"/analytics/groups/model?" + day + "&columns=cost%3Bdrop":                "columns",
		"/analytics/groups/model?" + day + "&order_by=colour":                    "order_by",
		"/analytics/groups/model?" + day + "&order_by=cost:down":                 "order_by",
		"/analytics/groups/model?" + day + "&order_by=cost%20desc":               "order_by",
		"/analytics/groups/model?" + day + "&page_size=1001":                     "page_size",
		"/analytics/groups/model?" + day + "&current_page=-1":                    "current_page",
		"/analytics/groups/metadata/" + strings.Repeat("k", 256) + "?" + day:     "metadataKey",
		"/analytics/groups/users?time_of_generation_max=2026-03-10T00:00:00Z":    "time_of_generation_min",
		"/analytics/graphs/requests?time_of_generation_min=2026-03-10T00:00:00Z": "time_of_generation_max",
		"/analytics/summary/cache":                                               "time_of_generation_max",
		"/analytics/graphs/cost?" + day + "&cost_min=-1":                         "cost_min",
	} {
		h.Do("GET", at, admintest.WorkspaceA, nil).RequireFault(400, "AB01", field)
	}
	h.Do("GET", "/analytics/graphs/colours?"+day, admintest.WorkspaceA, nil).RequireFault(404, "AB08", "")
}

func BenchmarkGraphOverADayOfTraffic(b *testing.B) {
	h, a := newInstallation(b)
	const n = 50_000
	for from := 0; from < n; from += 1000 {
		batch := make([]usage.Record, 1000)
		for i := range batch {
			batch[i] = made(admintest.Org, h.One, admintest.OneSlug, (from+i)%1440)
			batch[i].ID = ulid.MustNew(ulid.Timestamp(batch[i].Start), ulid.DefaultEntropy()).String()
		}
		if err := a.Ingest(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for _, at := range []string{"/analytics/graphs/cost", "/analytics/graphs/latency", "/analytics/groups/model", "/analytics/groups/metadata/team"} {
		b.Run(at, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.For(b).Do("GET", at+"?time_of_generation_min=2026-03-09T00:00:00Z&time_of_generation_max=2026-03-10T23:00:00Z", admintest.WorkspaceA, nil).OK()
			}
		})
	}
}

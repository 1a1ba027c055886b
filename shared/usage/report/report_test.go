package report

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Whatever records come, however often and in whatever batches, and however far
// the segments are merged: every response is the one the records themselves give.
func TestAnswersEqualTheSumOverTheRecords(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newFixture(t)
		records := drawRecords(rt, 30)
		deliver(rt, t, h, records)
		for range 2 {
			f := drawFilter(rt)
			scope := store.Scope{Org: rapid.SampledFrom([]string{"org-1", "org-2", "org-3"}).Draw(rt, "org"), Workspace: rapid.SampledFrom([]string{"", "ws-1", "ws-2"}).Draw(rt, "ws")}
			var want []usage.Record
			for i := range records {
				if passes(scope, &f, &records[i]) {
					want = append(want, records[i])
				}
			}
			checkSeries(rt, h, scope, &f, want)
			checkGroups(rt, h, scope, &f, want)
			checkLogs(rt, h, scope, &f, want)
			checkWalk(rt, h, scope, &f, want)
		}
	})
}

// deliver ingests every record one to three times in shuffled batches, and lets
// the compactor run in between.
func deliver(rt *rapid.T, t *testing.T, h *fixture, records []usage.Record) {
	var all []usage.Record
	for i := range records {
		for range rapid.IntRange(1, 3).Draw(rt, "times") {
			all = append(all, records[i])
		}
	}
	rnd := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "shuffle"), 1))
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for len(all) > 0 {
		n := min(rapid.IntRange(4, 20).Draw(rt, "batch"), len(all))
		h.ingest(t, all[:n]...)
		all = all[n:]
		switch rapid.IntRange(0, 4).Draw(rt, "then") {
		case 0:
			h.now = h.now.Add(20 * time.Second)
			h.compact(t)
		case 1:
			h.now = h.now.Add(2 * time.Hour)
			h.compact(t)
		case 2:
			h.now = h.now.Add(26 * time.Hour)
			h.compact(t)
		}
	}
	if rapid.Bool().Draw(rt, "new process") {
		h.open()
	}
}

func checkSeries(t *rapid.T, h *fixture, scope store.Scope, f *Filter, want []usage.Record) {
	b, groups, err := h.reader.series(context.Background(), scope, f, aspect{by: plain.by, latencies: true, users: true})
	if err != nil {
		t.Fatal(err)
	}
	list := groups[""]
	if list == nil {
		list = make([]Stats, b.n)
	}
	for i := range list {
		var in []usage.Record
		for _, r := range want {
			if !r.Start.Before(b.at(i)) && r.Start.Before(b.at(i+1)) {
				in = append(in, r)
			}
		}
		same(t, fmt.Sprint("bucket ", b.at(i)), &list[i], in)
	}
	same(t, "total", total(list), want)
	// Without users the cubes answer more: the numbers are the same.
	_, groups, err = h.reader.series(context.Background(), scope, f, plain)
	if err != nil {
		t.Fatal(err)
	}
	for i := range groups[""] {
		if x, y := &groups[""][i], &list[i]; x.Requests != y.Requests || x.Cost != y.Cost || x.Duration != y.Duration {
			t.Fatalf("bucket %d differs without users: %d and %d requests", i, x.Requests, y.Requests)
		}
	}
}

func same(t *rapid.T, what string, got *Stats, records []usage.Record) {
	want, users := truth(records)
	if got.Requests != want.Requests || got.Errors != want.Errors || got.Cost != want.Cost || got.Saved != want.Saved || got.TokensIn != want.TokensIn ||
		got.TokensOut != want.TokensOut || got.Duration != want.Duration || got.Hits != want.Hits || got.Semantic != want.Semantic || got.WithUser != want.WithUser {
		t.Fatalf("%s: %+v, want %+v", what, *got, want)
	}
	if got.Users() != int64(users) {
		t.Fatalf("%s: %d users, want %d", what, got.Users(), users)
	}
	if got.latencies.Count() != want.Requests {
		t.Fatalf("%s: %d latencies of %d requests", what, got.latencies.Count(), want.Requests)
	}
	var durations []float64
	for i := range records {
		if records[i].Endpoint != usage.EndpointSpan {
			durations = append(durations, float64(records[i].Duration.Microseconds())/1000)
		}
	}
	slices.Sort(durations)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
		if len(durations) == 0 {
			break
		}
		exact := durations[max(int(math.Ceil(q*float64(len(durations)))), 1)-1] // nearest rank
		if got := got.Latency(q); math.Abs(got-exact) > 0.0101*exact+0.002 {
			t.Fatalf("%s: quantile %v is %v, want %v", what, q, got, exact)
		}
	}
}

func checkGroups(t *rapid.T, h *fixture, scope store.Scope, f *Filter, want []usage.Record) {
	by := rapid.SampledFrom(append(slices.Sorted(maps.Keys(groupings)), "metadata")).Draw(t, "by")
	q := GroupQuery{Filter: *f, By: by, Columns: []string{"p99_latency"}}
	if by == "metadata" {
		q.By, q.MetadataKey = "", "team"
	}
	value := func(r *usage.Record) (string, bool) {
		v := map[string]string{"ai_service": r.Provider, "model": r.Model, "status_code": strconv.Itoa(r.ClientStatus), "api_key": r.KeyID, "config": r.ConfigSlug,
			"workspace": r.WorkspaceSlug, "provider": r.ProviderSlug, "prompt": r.PromptSlug, "users": r.EndUser, "ai-models": r.Model, "metadata": r.Metadata["team"],
			"session": r.Agent.Session, "agent": r.Agent.ID, "parent_agent": r.Agent.Parent}[by]
		return v, v != "" && r.Endpoint != usage.EndpointSpan
	}
	byValue := make(map[string][]usage.Record)
	for i := range want {
		if v, ok := value(&want[i]); ok {
			byValue[v] = append(byValue[v], want[i])
		}
	}
	groups, n, err := h.reader.Groups(context.Background(), scope, &q)
	if err != nil || n != len(byValue) || len(groups) != n {
		t.Fatalf("by %s: %d groups of %d, want %d, %v", by, len(groups), n, len(byValue), err)
	}
	for i := range groups {
		g := &groups[i]
		w, _ := truth(byValue[g.Value])
		if g.Requests != w.Requests || g.Cost != w.Cost || g.TokensOut != w.TokensOut || g.Errors != w.Errors {
			t.Fatalf("by %s: %q has %+v", by, g.Value, g.Stats)
		}
		if i > 0 && groups[i-1].Requests < g.Requests {
			t.Fatalf("by %s: not in order", by)
		}
	}
	if n > 1 {
		q.Limit, q.Offset = 1, 1
		page, m, err := h.reader.Groups(context.Background(), scope, &q)
		if err != nil || m != n || len(page) != 1 || page[0].Value != groups[1].Value {
			t.Fatalf("second page by %s: %v %v", by, page, err)
		}
	}
}

func checkLogs(t *rapid.T, h *fixture, scope store.Scope, f *Filter, want []usage.Record) {
	want = slices.Clone(want)
	slices.SortFunc(want, func(x, y usage.Record) int { return cmp.Or(y.Start.Compare(x.Start), cmp.Compare(y.ID, x.ID)) })
	var got []usage.Record
	q := LogQuery{Filter: *f, Limit: rapid.IntRange(3, 20).Draw(t, "limit")}
	for {
		page, err := h.reader.Logs(context.Background(), scope, &q)
		if err != nil {
			t.Fatal(err)
		}
		if !q.NoTotal && (page.Total != len(want) || page.TotalIsLowerBound) {
			t.Fatalf("total %d, want %d", page.Total, len(want))
		}
		got = append(got, page.Records...)
		if page.Next == "" {
			break
		}
		if len(page.Records) != q.Limit {
			t.Fatalf("a page of %d before the end", len(page.Records))
		}
		q.Cursor, q.NoTotal = page.Next, true
	}
	again := LogQuery{Filter: *f, Limit: 1} // the count is cached
	if page, err := h.reader.Logs(context.Background(), scope, &again); err != nil || page.Total != len(want) {
		t.Fatalf("asked again, a total of %d, want %d: %v", page.Total, len(want), err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d logs, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].ID != want[i].ID || got[i].Cost != want[i].Cost || got[i].Path != want[i].Path {
			t.Fatalf("log %d is %s, want %s", i, got[i].ID, want[i].ID)
		}
	}
	if len(want) == 0 {
		return
	}
	i := rapid.IntRange(0, len(want)-1).Draw(t, "one")
	offset, err := h.reader.Logs(context.Background(), scope, &LogQuery{Filter: *f, Limit: 1, Offset: i, NoTotal: true})
	if err != nil || len(offset.Records) != 1 || offset.Records[0].ID != want[i].ID {
		t.Fatalf("offset %d: %v %v", i, offset.Records, err)
	}
	one, ok, err := h.reader.Log(context.Background(), scope, want[i].ID)
	if err != nil || !ok || one.ID != want[i].ID || !bytes.Equal(one.Bodies, want[i].Bodies) {
		t.Fatalf("log %s: %v %v, bodies %q", want[i].ID, ok, err, one.Bodies)
	}
	for _, other := range []store.Scope{{Org: "org-9"}, {Org: want[i].Org, Workspace: "ws-9"}} {
		if _, ok, err := h.reader.Log(context.Background(), other, want[i].ID); ok || err != nil {
			t.Fatalf("another tenant sees a log: %v", err)
		}
	}
}

func TestTwoWritersOfTheSameEventsCountThemOnce(t *testing.T) {
	h := newFixture(t)
	other := *h
	other.open()
	var records []usage.Record
	for i := range 300 {
		records = append(records, made(i, noon.Add(-time.Duration(i)*37*time.Second)))
	}
	var wg sync.WaitGroup
	for w, each := range []*fixture{h, &other} {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(w), 2))
			for range 3 {
				mixed := slices.Clone(records)
				rnd.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
				for batch := range slices.Chunk(mixed, 64) {
					if err := each.archive.Ingest(context.Background(), batch); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	f := &Filter{From: noon.Add(-24 * time.Hour), To: noon}
	check := func(when string) {
		t.Helper()
		g, _, err := h.reader.Graph(context.Background(), sc, "requests", f)
		if err != nil || g.Summary != (Sum{300}) {
			t.Fatalf("%s: %v %v", when, g.Summary, err)
		}
		page, err := h.reader.Logs(context.Background(), sc, &LogQuery{Filter: *f, Limit: 1000})
		if err != nil || len(page.Records) != 300 || page.Total != 300 {
			t.Fatalf("%s: %d logs, total %d, %v", when, len(page.Records), page.Total, err)
		}
	}
	check("as delivered")
	for _, later := range []time.Duration{time.Minute, 2 * time.Hour, 30 * time.Hour, 30 * time.Hour} {
		h.now = h.now.Add(later)
		other.now = h.now
		// Two compactors at once.
		for _, each := range []*fixture{h, &other} {
			wg.Go(func() {
				if err := each.archive.Compact(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		check(fmt.Sprint("compacted after ", later))
	}
}

// A page that holds all logs and its total are of one moment, whatever arrives
// meanwhile.
func TestTotalsOfWholePagesCountTheirRows(t *testing.T) {
	h := newFixture(t)
	const n = 120
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			if err := h.archive.Ingest(context.Background(), []usage.Record{made(i, noon.Add(-time.Duration(i)*time.Second))}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	f := Filter{From: noon.Add(-24 * time.Hour), To: noon}
	for seen := 0; seen < n && !t.Failed(); {
		page, err := h.reader.Logs(context.Background(), sc, &LogQuery{Filter: f, Limit: 1000})
		if err != nil || page.Total != len(page.Records) || len(page.Records) < seen {
			t.Errorf("%d logs, total %d, after %d, %v", len(page.Records), page.Total, seen, err)
		}
		seen = len(page.Records)
	}
	wg.Wait()
}

func TestBucketsFollowTheRangeAndItsOffset(t *testing.T) {
	zone := time.FixedZone("", 5*3600+1800)
	for _, c := range []struct {
		name     string
		from, to time.Time
		width    time.Duration
		first    string
		n        int
	}{
		{"two hours are minutes", noon.Add(-2 * time.Hour).In(zone), noon, time.Minute, "2026-03-10T15:30:00+05:30", 121},
		{"a little more is hours", noon.Add(-2*time.Hour - time.Second).In(zone), noon, time.Hour, "2026-03-10T15:00:00+05:30", 3},
		{"two days are hours", noon.Add(-48 * time.Hour), noon, time.Hour, "2026-03-08T12:00:00Z", 49},
		{"a month is days", noon.Add(-30 * 24 * time.Hour).In(zone), noon, 24 * time.Hour, "2026-02-08T00:00:00+05:30", 31},
		{"a quarter is weeks from Monday", noon.Add(-90 * 24 * time.Hour).In(zone), noon, 7 * 24 * time.Hour, "2025-12-08T00:00:00+05:30", 14},
		{"an instant is one minute", noon, noon, time.Minute, "2026-03-10T12:00:00Z", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := divide(&Filter{From: c.from, To: c.to})
			if got := b.at(0).Format(time.RFC3339); got != c.first || b.n != c.n || time.Duration(b.width)*time.Microsecond != c.width {
				t.Errorf("%d of %v from %s", b.n, time.Duration(b.width)*time.Microsecond, got)
			}
			if b.of(c.to.UnixMicro()) != b.n-1 || b.of(c.from.UnixMicro()) != 0 {
				t.Error("an end is in the wrong bucket")
			}
		})
	}
}

func TestGraphShapes(t *testing.T) {
	h := newFixture(t)
	hit, rescuedOne, failed, fallback := made(1, noon.Add(-time.Minute)), made(2, noon.Add(-time.Minute)), made(3, noon), made(4, noon)
	hit.CacheStatus, hit.CacheSaved, hit.Cost, hit.Duration = "HIT", 5e7, 0, 10*time.Millisecond
	rescuedOne.RetryCount, rescuedOne.EndUser = 2, "bob"
	failed.ClientStatus, failed.EndUser = 500, ""
	hit.Running, fallback.Running = 1000, 2000
	fallback.Mode, fallback.OptionIndex = "fallback", "config.targets[1]"
	h.ingest(t, hit, rescuedOne, failed, fallback)
	f := &Filter{From: noon.Add(-time.Minute), To: noon}
	for name, want := range map[string]string{
		"requests":       `{"summary":{"total":4},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","total":2},{"timestamp":"2026-03-10T12:00:00Z","total":2}],"object":"analytics-graph"}`,
		"cost":           `{"summary":{"total":0.3,"avg":0.075,"gateway_total":0.0003,"cost_unit":"cents","cost_usd":0.003,"gateway_total_usd":0.000003},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","total":0.1,"avg":0.05,"gateway_total":0.0001,"cost_unit":"cents","cost_usd":0.001,"gateway_total_usd":0.000001},{"timestamp":"2026-03-10T12:00:00Z","total":0.2,"avg":0.1,"gateway_total":0.0002,"cost_unit":"cents","cost_usd":0.002,"gateway_total_usd":0.000002}],"object":"analytics-graph"}`,
		"tokens":         `{"summary":{"total":60,"avg":15},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","total":30,"avg":15},{"timestamp":"2026-03-10T12:00:00Z","total":30,"avg":15}],"object":"analytics-graph"}`,
		"users":          `{"summary":{"total":2},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","total":2},{"timestamp":"2026-03-10T12:00:00Z","total":1}],"object":"analytics-graph"}`,
		"users/requests": `{"summary":{"total":3,"unique":2,"avg":1.5},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","avg":1},{"timestamp":"2026-03-10T12:00:00Z","avg":1}],"object":"analytics-graph"}`,
		"errors":         `{"summary":{"total":1},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","total":0},{"timestamp":"2026-03-10T12:00:00Z","total":1}],"object":"analytics-graph"}`,
		"errors/rate":    `{"summary":{"rate":25},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","rate":0},{"timestamp":"2026-03-10T12:00:00Z","rate":50}],"object":"analytics-graph"}`,
		"errors/stacks": `{"summary":{"total":1},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","stats":[]},
			{"timestamp":"2026-03-10T12:00:00Z","stats":[{"response_status_code":500,"count":1}]}],"object":"analytics-graph"}`,
		"errors/status-codes": `{"summary":{"total_errors":1,"unique_error_codes":1},"data_points":[{"status_code":500,"count":1}],"object":"analytics-graph"}`,
		"requests/rescued": `{"summary":{"retry":1,"fallback":1},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","retry":[{"retry_success_count":2,"count":1}],"fallback":0},
			{"timestamp":"2026-03-10T12:00:00Z","retry":[],"fallback":1}],"object":"analytics-graph"}`,
		"cache/hit-rate": `{"summary":{"total":1,"rate":25},"data_points":[
			{"timestamp":"2026-03-10T11:59:00Z","simple_hits":1,"semantic_hits":0,"rate":50,"cumulative_simple_cache_savings":5,"cumulative_semantic_cache_savings":0,"cost_unit":"cents","cumulative_simple_cache_savings_usd":0.05,"cumulative_semantic_cache_savings_usd":0},
			{"timestamp":"2026-03-10T12:00:00Z","simple_hits":0,"semantic_hits":0,"rate":0,"cumulative_simple_cache_savings":5,"cumulative_semantic_cache_savings":0,"cost_unit":"cents","cumulative_simple_cache_savings_usd":0.05,"cumulative_semantic_cache_savings_usd":0}],"object":"analytics-graph"}`,
		"cache/latency": `{"summary":{},"data_points":[{"timestamp":"2026-03-10T11:59:00Z","avg":10},{"timestamp":"2026-03-10T12:00:00Z","avg":0}],"object":"analytics-graph"}`,
		"latency":       "",
	} {
		t.Run(name, func(t *testing.T) {
			g, ok, err := h.reader.Graph(context.Background(), sc, name, f)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if name == "latency" {
				if got := g.Summary.(Latency); got.Avg != 77.5 || math.Abs(got.P50-100) > 1 || math.Abs(got.P99-100) > 1 {
					t.Errorf("%+v", got)
				}
				return
			}
			got, err := json.Marshal(g)
			if err != nil {
				t.Fatal(err)
			}
			var compact bytes.Buffer
			if err := json.Compact(&compact, []byte(want)); err != nil {
				t.Fatal(err)
			}
			if string(got) != compact.String() {
				t.Errorf("%s\nwant\n%s", got, compact.String())
			}
		})
	}
	if len(GraphNames()) != 13 {
		t.Errorf("%d graphs", len(GraphNames()))
	}
	if _, ok, _ := h.reader.Graph(context.Background(), sc, "nonesuch", f); ok {
		t.Error("an unknown graph was drawn")
	}
	c, err := h.reader.Cache(context.Background(), sc, f)
	if err != nil || c != (CacheSummary{1, 10, 4, 90}) {
		t.Errorf("%+v %v", c, err)
	}
	empty, _, err := h.reader.Graph(context.Background(), store.Scope{Org: "org-1", Workspace: "ws-9"}, "cost", f)
	if err != nil || len(empty.Points) != 2 || empty.Summary != (Money{Unit: pricing.CostUnit, USD: "0", GatewayUSD: "0"}) {
		t.Errorf("an empty workspace: %+v %v", empty, err)
	}
}

func TestGroupColumns(t *testing.T) {
	h := newFixture(t)
	a, b := made(1, noon.Add(-time.Hour)), made(2, noon)
	b.ClientStatus, b.CacheStatus, b.Duration = 500, "HIT", 300*time.Millisecond
	a.Running, b.Running = 1000, 2000
	h.ingest(t, a, b)
	groups, _, err := h.reader.Groups(context.Background(), sc, &GroupQuery{Filter: Filter{From: noon.Add(-24 * time.Hour), To: noon}, By: "ai_service", Columns: Columns()})
	if err != nil || len(groups) != 1 || groups[0].Value != "openai" {
		t.Fatal(groups, err)
	}
	for name, want := range map[string]any{"requests": int64(2), "cost": 0.2, "gateway_cost": 0.0003, "total_tokens": int64(30), "avg_tokens": 15.0, "avg_input_tokens": 10.0, "avg_output_tokens": 5.0,
		"avg_latency": 200.0, "success_rate": 50.0, "error_count": int64(1), "cache_hit_rate": 50.0, "first_seen": a.Start, "last_seen": b.Start} {
		if got, ok := groups[0].Column(name); !ok || got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if p99, _ := groups[0].Column("p99_latency"); math.Abs(p99.(float64)-300) > 3 { // of two values the higher one
		t.Errorf("p99: %v", p99)
	}
	if _, ok := groups[0].Column("nonesuch"); ok {
		t.Error("an unknown column has a value")
	}
}

func TestTotalsAboveTenThousandAreLowerBounds(t *testing.T) {
	h := newFixture(t)
	var records []usage.Record
	for i := range 10_001 {
		records = append(records, made(i, noon.Add(-time.Duration(i)*time.Millisecond)))
	}
	h.ingest(t, records[1:]...)
	f := Filter{From: noon.Add(-time.Hour), To: noon}
	page, err := h.reader.Logs(context.Background(), sc, &LogQuery{Filter: f, Limit: 1})
	if err != nil || page.Total != 10_000 || page.TotalIsLowerBound {
		t.Errorf("at the limit: %d %v %v", page.Total, page.TotalIsLowerBound, err)
	}
	h.ingest(t, records[0])
	for _, trace := range [][]string{nil, {"", "x"}} { // from cubes and from columns
		f.TraceIDs = trace
		page, err = h.reader.Logs(context.Background(), sc, &LogQuery{Filter: f, Limit: 1})
		if err != nil || page.Total != 10_000 || !page.TotalIsLowerBound || page.Records[0].ID != records[0].ID {
			t.Errorf("above it: %d %v %v", page.Total, page.TotalIsLowerBound, err)
		}
	}
}

func TestBadCursorsAndFiltersAreNamed(t *testing.T) {
	h := newFixture(t)
	f := Filter{From: noon.Add(-time.Hour), To: noon}
	good := cursor{noon.UnixMicro(), made(1, noon).ID}
	if got, err := parseCursor(good.String()); err != nil || got != good {
		t.Errorf("%v %v", got, err)
	}
	for _, c := range []string{
		"x", "!!", "AAAA", "AAAAAAAAAAAAAAAA", good.String() + "=", " " + good.String(), good.String() + "\n", good.String()[:len(good.String())-1] + "/",
		cursor{good.start, ""}.String(), cursor{good.start, "x"}.String(), cursor{good.start, good.id + "0"}.String(), cursor{good.start, strings.Repeat("!", 26)}.String(),
		cursor{good.start, "8" + good.id[1:]}.String(), cursor{good.start, strings.ToLower(good.id)}.String(),
		cursor{-1, good.id}.String(), cursor{math.MinInt64, good.id}.String(), cursor{math.MaxInt64, good.id}.String(),
	} {
		if _, err := h.reader.Logs(context.Background(), sc, &LogQuery{Filter: f, Limit: 1, Cursor: c}); !fault.Is(err, fault.InvalidRequest) {
			t.Errorf("%q: %v", c, err)
		}
	}
	for want, f := range map[string]Filter{
		"min": {To: noon}, "max": {From: noon}, "max ": {From: noon, To: noon.Add(-1)}, "max  ": {From: noon, To: noon.Add(20 * 366 * 24 * time.Hour)},
		"min ": {From: time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(1951, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		errs := f.Validate("min", "max")
		if len(errs) != 1 || errs[0].Field != string(bytes.TrimSpace([]byte(want))) {
			t.Errorf("%s: %v", want, errs)
		}
	}
	if errs := f.Validate("min", "max"); errs != nil {
		t.Error(errs)
	}
	for _, id := range []string{"", "x", "01JD4ZK8V6Q0Y9T5M3N2P1R0S7", "zzzzzzzzzzzzzzzzzzzzzzzzzz"} {
		if _, ok, err := h.reader.Log(context.Background(), sc, id); ok || err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestBodiesInTheBucketAreReadWithTheLog(t *testing.T) {
	h := newFixture(t)
	r := made(1, noon)
	r.Blob = usage.BodyKey(&r)
	if err := h.bucket.Put(context.Background(), r.Blob, []byte("large")); err != nil {
		t.Fatal(err)
	}
	h.ingest(t, r)
	got, ok, err := h.reader.Log(context.Background(), sc, r.ID)
	if err != nil || !ok || string(got.Bodies) != "large" {
		t.Errorf("%v %v %q", ok, err, got.Bodies)
	}
	inline := made(2, noon.Add(-time.Minute))
	inline.Bodies = []byte("small")
	h.ingest(t, inline)
	for _, bodies := range []bool{true, false} {
		page, err := h.reader.Logs(context.Background(), sc, &LogQuery{Filter: Filter{From: noon.Add(-time.Hour), To: noon}, Limit: 10, Bodies: bodies})
		if err != nil || len(page.Records) != 2 {
			t.Fatal(len(page.Records), err)
		}
		if got := string(page.Records[0].Bodies) + " " + string(page.Records[1].Bodies); bodies && got != "large small" || !bodies && got != " " {
			t.Errorf("a page with bodies %v: %q", bodies, got)
		}
	}
	if err := h.bucket.Delete(context.Background(), r.Blob); err != nil {
		t.Fatal(err)
	}
	if got, ok, err = h.reader.Log(context.Background(), sc, r.ID); err != nil || !ok || got.Bodies != nil {
		t.Errorf("without the blob: %v %v %q", ok, err, got.Bodies)
	}
}

// loaded ingests n records over some hours and merges them.
func loaded(b *testing.B, n int) *fixture {
	h := newFixture(b)
	rnd := rand.New(rand.NewPCG(1, 2))
	models, users := []string{"gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5"}, 500
	batch := make([]usage.Record, 0, 1000)
	for i := range n {
		r := made(i, noon.Add(-time.Duration(rnd.Int64N(int64(36*time.Hour)))))
		r.Model, r.KeyID, r.EndUser = models[rnd.IntN(3)], fmt.Sprint("key-", rnd.IntN(20)), fmt.Sprint("user-", rnd.IntN(users))
		r.Metadata = map[string]string{"_user": r.EndUser, "team": fmt.Sprint("team-", rnd.IntN(10))}
		r.Duration = time.Duration(rnd.ExpFloat64() * 1e9)
		r.Cost = pricing.NanoDollars(rnd.IntN(1e7))
		if batch = append(batch, r); len(batch) == cap(batch) || i == n-1 {
			h.ingest(b, batch...)
			batch = batch[:0]
		}
	}
	for _, later := range []time.Duration{2 * time.Hour, time.Minute, time.Minute, 50 * time.Hour, time.Minute, time.Minute} {
		h.now = h.now.Add(later)
		h.compact(b)
	}
	return h
}

func BenchmarkGraph(b *testing.B) {
	h := loaded(b, 100_000)
	for name, f := range map[string]Filter{
		"cubes":    {From: noon.Add(-30 * 24 * time.Hour), To: noon},
		"columns":  {From: noon.Add(-30 * 24 * time.Hour), To: noon, UserIDs: []string{""}},
		"metadata": {From: noon.Add(-30 * 24 * time.Hour), To: noon, Metadata: map[string]string{"team": "team-3"}},
	} {
		for _, graph := range []string{"cost", "latency"} {
			for _, cold := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/%s/cold=%v", name, graph, cold), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if cold {
							h.open()
						}
						if _, _, err := h.reader.Graph(context.Background(), sc, graph, &f); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
	b.Run("logs", func(b *testing.B) {
		f := Filter{From: noon.Add(-30 * 24 * time.Hour), To: noon}
		for b.Loop() {
			if _, err := h.reader.Logs(context.Background(), sc, &LogQuery{Filter: f, Limit: 50}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

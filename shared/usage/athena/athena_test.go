package athena

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/blob"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/testkit/usagetest"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fixture is an archive as on AWS, its files as a table, and two readers of it.
type fixture struct {
	store     store.Store
	bucket    blob.Bucket
	archive   *segment.Archive
	large     *segment.Archive // the same one, with batches that are all large enough for files
	now       time.Time
	retention usage.WorkspaceRetention
	service   *service
	engine    *Engine
	near      *report.Reader // reads itself
	far       *report.Reader // queries the engine wherever it can
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	dir := t.TempDir()
	s, bucket := usagetest.Open(t, dir)
	h := &fixture{store: s, bucket: bucket, now: noon}
	h.archive = segment.New(s, bucket, segment.Options{Inline: 64 << 10, Files: true, MinMerge: 3, Clock: func() time.Time { return h.now },
		WorkspaceRetention: func(context.Context, store.Scope) (usage.WorkspaceRetention, error) { return h.retention, nil }})
	h.large = segment.New(s, bucket, segment.Options{Inline: 1, Clock: func() time.Time { return h.now }})
	service, cfg := newService(t, startDuck(t, dir))
	h.service = service
	h.engine = New(cfg, Options{Workgroup: workgroup, Database: database, Table: table, Pause: time.Millisecond, Patience: time.Minute})
	h.near = report.New(h.archive, bucket).WithWait(time.Hour)
	h.far = report.New(h.archive, bucket).WithWait(time.Hour).WithSQLEngine(h.engine, 1)
	return h
}

func (h *fixture) ingest(t testing.TB, records ...usage.Record) {
	t.Helper()
	if err := h.archive.Ingest(context.Background(), slices.Clone(records)); err != nil {
		t.Fatal(err)
	}
}

func (h *fixture) compact(t testing.TB) {
	t.Helper()
	if err := h.archive.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// made is a request of a number at a time, which has milliseconds.
func made(rnd *rand.Rand, n int, at time.Time) usage.Record {
	at = at.Truncate(time.Millisecond)
	r := usage.Record{
		Start: at, Org: "org-1", Workspace: fmt.Sprint("ws-", rnd.IntN(3)), WorkspaceSlug: "default", KeyID: fmt.Sprint("key-", rnd.IntN(4)), Endpoint: "chatComplete",
		RequestModel: "gpt-4o", Model: fmt.Sprint("m'", rnd.IntN(5)), Provider: []string{"openai", "anthropic"}[rnd.IntN(2)], ProviderSlug: "main",
		ClientStatus: []int{200, 200, 200, 246, 429, 500}[rnd.IntN(6)], CacheStatus: []string{"HIT", "MISS", "SEMANTIC HIT"}[rnd.IntN(3)],
		Cost: pricing.NanoDollars(rnd.Int64N(1e9)), CacheSaved: pricing.NanoDollars(rnd.Int64N(1e6)), Priced: true, Running: pricing.NanoDollars(rnd.Int64N(1e4)),
		Duration: time.Duration(rnd.ExpFloat64() * float64(time.Second)).Truncate(time.Microsecond), EndUser: fmt.Sprint("u", rnd.IntN(40)),
		Metadata: map[string]string{"team": fmt.Sprint("t", rnd.IntN(6)), "odd key's": "x"},
	}
	r.ID = usagetest.ID(n, at)
	r.Agent.ID = fmt.Sprint("agent-", rnd.IntN(3))
	if rnd.IntN(4) == 0 {
		delete(r.Metadata, "team")
	}
	r.Usage.Set(pricing.Input, rnd.Int64N(4000))
	r.Usage.Set(pricing.Output, rnd.Int64N(900))
	return r
}

// fill stores requests of four days up to now: duplicate batches, files of every tier with
// those that merges replaced, and the last ones only in the store.
func (h *fixture) fill(t testing.TB, rnd *rand.Rand) {
	t.Helper()
	start := noon.AddDate(0, 0, -4)
	var batch []usage.Record
	for i := range 4000 {
		at := start.Add(time.Duration(i) * 87 * time.Second)
		batch = append(batch, made(rnd, i, at))
		if len(batch) < 40 {
			continue
		}
		h.now = at.Add(time.Minute)
		h.ingest(t, batch...)
		h.ingest(t, batch[10:25]...) // some come twice
		if rnd.IntN(3) > 0 {
			h.compact(t)
		}
		batch = batch[:0]
	}
	h.ingest(t, made(rnd, 9001, start.Add(7*time.Hour)), made(rnd, 9002, start.Add(31*time.Hour))) // late
	h.now = h.now.Add(3 * time.Minute)
	h.compact(t)
	h.ingest(t, made(rnd, 9003, h.now.Add(-2*time.Minute)), made(rnd, 9004, h.now.Add(-time.Minute)))
}

func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// filters are some that no cube answers, and some that cubes do.
func filters(rnd *rand.Rand) (list []report.Filter) {
	least, most := int64(1e8), int64(9e8)
	zone := time.FixedZone("", 5*3600+30*60)
	for _, f := range []report.Filter{
		{},
		{Metadata: map[string]string{"team": "t1"}},
		{Metadata: map[string]string{"odd key's": "x"}, Models: []string{"m'1", "m'2"}},
		{Cost: report.Range{Min: &least, Max: &most}},
		{TotalTokens: report.Range{Min: &least}},
		{Agents: []string{"agent-1"}, Statuses: []int{200, 500}},
		{Agents: []string{"agent-0"}, ProviderModel: []report.ProviderModel{{Provider: "openai", Model: "m'0"}, {Provider: "anthropic", Model: "m'3"}}},
	} {
		f.From, f.To = noon.AddDate(0, 0, -5), noon.AddDate(0, 0, 1)
		list = append(list, f)
		f.From, f.To = noon.Add(-time.Duration(rnd.IntN(90*3600))*time.Second).In(zone), noon.Add(-time.Duration(rnd.IntN(7200))*time.Second).Add(123456*time.Microsecond)
		list = append(list, f)
	}
	return list
}

// The engine and the process return the same: every graph and every group, for every filter,
// with duplicate records, replaced files, records that are only in the store, and workspaces
// with different retention.
//
//lane:property
func TestAthenaAnswersTheSame(t *testing.T) {
	t.Parallel()
	h, rnd, ctx := newFixture(t), rand.New(rand.NewPCG(3, 5)), context.Background()
	h.fill(t, rnd)
	h.service.page = 7
	for round, retention := range []usage.WorkspaceRetention{{}, {Standard: 3, Of: map[string]int{"ws-1": 1, "ws-2": 0}}} {
		h.retention = retention
		for i, f := range filters(rnd) {
			if testing.Short() && i%5 > 0 {
				continue
			}
			for _, sc := range [][]store.Scope{{{Org: "org-1"}}, {{Org: "org-1", Workspace: "ws-1"}}, {{Org: "org-1"}, {Org: "org-2"}}}[(i+round)%3] {
				before := h.service.started()
				for _, name := range report.GraphNames() {
					near, _, err := h.near.Graph(ctx, sc, name, &f)
					if err != nil {
						t.Fatal(err)
					}
					far, _, err := h.far.Graph(ctx, sc, name, &f)
					if err != nil {
						t.Fatal(err)
					}
					if a, b := text(t, near), text(t, far); a != b {
						t.Errorf("round %d, filter %d, %v, graph %s:\n%s\n%s", round, i, sc, name, a, b)
					}
				}
				cubes := len(f.Metadata) == 0 && f.Cost.Unlimited() && f.TotalTokens.Unlimited() && len(f.Agents) == 0
				if queries := h.service.started() - before; sc.Org == "org-1" && queries == 0 != cubes {
					t.Errorf("filter %d, %v: %d queries", i, sc, queries)
				}
				h.compareGroups(t, sc, f, rnd)
			}
		}
	}
}

func (h *fixture) compareGroups(t *testing.T, sc store.Scope, f report.Filter, rnd *rand.Rand) {
	t.Helper()
	orders := []string{"", "cost", "avg_latency", "p95_latency", "success_rate", "last_seen"}
	for _, q := range []report.GroupQuery{{By: "model"}, {By: "status_code"}, {By: "users"}, {MetadataKey: "team"}, {MetadataKey: "odd key's"}, {MetadataKey: "absent"}} {
		q.Filter, q.Columns, q.OrderBy, q.Limit, q.Ascending = f, report.Columns(), orders[rnd.IntN(len(orders))], 5, rnd.IntN(2) == 0
		h.sameGroups(t, sc, &q)
	}
}

// sameGroups queries both readers and compares every column.
func (h *fixture) sameGroups(t *testing.T, sc store.Scope, q *report.GroupQuery) {
	t.Helper()
	ctx := context.Background()
	near, n, err := h.near.Groups(ctx, sc, q)
	if err != nil {
		t.Fatal(err)
	}
	far, m, err := h.far.Groups(ctx, sc, q)
	if err != nil {
		t.Fatal(err)
	}
	show := func(groups []report.Group) (lines []string) {
		for i := range groups {
			line := []string{groups[i].Value}
			for _, c := range report.Columns() {
				v, _ := groups[i].Column(c)
				line = append(line, text(t, v))
			}
			lines = append(lines, strings.Join(line, " "))
		}
		return lines
	}
	if a, b := show(near), show(far); n != m || !slices.Equal(a, b) {
		t.Errorf("%v, by %s%s in order of %q: %d and %d\n%s\n%s", sc, q.By, q.MetadataKey, q.OrderBy, n, m, strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
}

// Groups that are too many to be gathered are put in order by the engine, those of the
// last hour, which it does not know, among them.
//
//lane:property
func TestAthenaPutsManyGroupsInOrder(t *testing.T) {
	t.Parallel()
	h, rnd := newFixture(t), rand.New(rand.NewPCG(9, 9))
	const n = 30_000
	var all []usage.Record
	for i := range n {
		r := made(rnd, i, noon.Add(-30*time.Hour).Add(time.Duration(i)*3*time.Second))
		r.Metadata = map[string]string{"ticket": fmt.Sprint("ticket-", rnd.IntN(100_000))}
		all = append(all, r)
	}
	h.ingest(t, all...)
	h.now = noon.Add(-30 * time.Hour).Add(n * 3 * time.Second).Truncate(time.Hour).Add(6 * time.Minute)
	h.compact(t)
	h.compact(t)
	for i := range 60 { // of the hour that lasts, in the store
		r := made(rnd, n+i, h.now.Add(-time.Duration(i)*time.Second))
		r.Metadata = map[string]string{"ticket": fmt.Sprint("ticket-", rnd.IntN(100_000+i*400))}
		h.ingest(t, r)
	}
	orders := []string{"cost", "", "avg_tokens", "error_count", "first_seen", "cache_hit_rate", "avg_latency"}
	if testing.Short() {
		orders = orders[:2]
	}
	for _, order := range orders {
		for _, ascending := range []bool{len(order)%2 == 0} {
			before := h.service.started()
			q := &report.GroupQuery{Filter: report.Filter{From: noon.AddDate(0, 0, -3), To: noon.AddDate(0, 0, 3)}, MetadataKey: "ticket", OrderBy: order, Ascending: ascending, Limit: 40, Offset: 20}
			if order == "cost" {
				q.Columns = []string{"p95_latency", "p99_latency"}
			}
			h.sameGroups(t, store.Scope{Org: "org-1"}, q)
			if h.service.started() == before {
				t.Errorf("by %s: no query", order)
			}
		}
	}
}

// Records that two files have count once.
func TestAthenaTakesEachRecordOnce(t *testing.T) {
	t.Parallel()
	h, rnd := newFixture(t), rand.New(rand.NewPCG(2, 2))
	var all []usage.Record
	for i := range 200 {
		all = append(all, made(rnd, i, noon.Add(-30*time.Hour).Add(time.Duration(i)*5*time.Minute)))
	}
	h.ingest(t, all...)
	h.compact(t)
	for _, again := range [][]usage.Record{all[20:60], all[40:90]} {
		if err := h.large.Ingest(context.Background(), slices.Clone(again)); err != nil {
			t.Fatal(err)
		}
	}
	least := int64(1)
	f := report.Filter{From: noon.AddDate(0, 0, -2), To: noon, Cost: report.Range{Min: &least}}
	for _, by := range []string{"model", "status_code"} {
		h.sameGroups(t, store.Scope{Org: "org-1"}, &report.GroupQuery{Filter: f, By: by, Columns: report.Columns(), Limit: 9})
	}
	if h.service.started() == 0 {
		t.Error("no query")
	}
}

package report

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// engine answers every query with the rows that it is given, up to the query's limit,
// and takes no longer texts than Athena.
type engine struct {
	rows    [][]*string
	queries atomic.Int64
}

var limit = regexp.MustCompile(`LIMIT (\d+)$`)

func (e *engine) Table() string { return `"d"."t"` }

func (e *engine) WithQueryLimits(ctx context.Context) context.Context { return ctx }

func (e *engine) Query(_ context.Context, _, sql string) ([][]*string, error) {
	e.queries.Add(1)
	if len(sql) > 262_144 {
		return nil, fault.Invalid("time_of_generation_min", "makes a question that is too long")
	}
	m := limit.FindStringSubmatch(sql)
	if m == nil {
		return e.rows, nil
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return nil, err
	}
	return e.rows[:min(n, len(e.rows))], nil
}

// row is one of the engine's: one request of a group in a bucket.
func row(group string, bucket int) []*string {
	list := []string{group, strconv.Itoa(bucket), "1"}
	for range len(measures) - 1 {
		list = append(list, "0")
	}
	out := make([]*string, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// inFiles returns a house with its records in files, as for an engine.
func inFiles(t *testing.T, e *engine) *fixture {
	t.Helper()
	h := newFixture(t)
	h.archive = segment.New(h.store, h.bucket, segment.Options{Inline: 1, Clock: func() time.Time { return h.now }})
	h.reader = New(h.archive, h.bucket).WithSQLEngine(e, 1)
	return h
}

// The limit of groups is a number of groups and buckets. As many rows as the allowed groups can
// have are requested, and one group more is rejected, not omitted.
func TestAnEngineLeavesNoRowsOut(t *testing.T) {
	t.Parallel()
	e := new(engine)
	h := inFiles(t, e)
	r := made(1, noon.Add(-90*time.Minute))
	r.Metadata = map[string]string{"team": "a"}
	h.ingest(t, r)
	f := Filter{From: noon.Add(-2 * time.Hour), To: noon, Metadata: map[string]string{"team": "a"}}
	a := aspect{by: segment.Status}
	b := divide(&f)
	groups := (a.maxGroups() + b.n - 1) / b.n
	if groups*b.n <= a.maxGroups()+1 {
		t.Fatalf("%d groups of %d buckets are within the bound: this tests nothing", groups, b.n)
	}
	for g := range groups {
		for i := range b.n {
			e.rows = append(e.rows, row(fmt.Sprint(g), i))
		}
	}
	_, got, err := h.reader.series(context.Background(), store.Scope{Org: "org-1"}, &f, a)
	if err != nil || e.queries.Load() != 1 {
		t.Fatalf("%d queries: %v", e.queries.Load(), err)
	}
	sum := int64(0)
	for _, list := range got {
		sum += total(list).Requests
	}
	if sum != int64(groups*b.n) {
		t.Errorf("%d requests of %d", sum, groups*b.n)
	}
	for i := range b.n {
		e.rows = append(e.rows, row("one more", i))
	}
	if _, _, err := h.reader.series(context.Background(), store.Scope{Org: "org-1"}, &f, a); err == nil || fault.From(err).Status() != 400 {
		t.Errorf("a group too many: %v", err)
	}
}

// A question that takes more text than an engine reads is answered here.
func TestTooLongForAnEngineIsAnsweredHere(t *testing.T) {
	t.Parallel()
	e := new(engine)
	h := inFiles(t, e)
	key := strings.Repeat("'", 70_000)
	r := made(1, noon.Add(-90*time.Minute))
	r.Metadata = map[string]string{key: "v"}
	h.ingest(t, r)
	for _, columns := range [][]string{nil, {"p95_latency"}} {
		list, n, err := h.reader.Groups(context.Background(), store.Scope{Org: "org-1"}, &GroupQuery{
			Filter: Filter{From: noon.Add(-3 * time.Hour), To: noon}, MetadataKey: key, Columns: columns, Limit: 5})
		if err != nil || n != 1 || len(list) != 1 || list[0].Value != "v" || list[0].Requests != 1 {
			t.Errorf("%d groups, %v: %v", n, list, err)
		}
	}
	if n := e.queries.Load(); n != 0 {
		t.Errorf("%d queries", n)
	}
}

// For a time within one hour the files contribute nothing, and its records count once even if
// their file is for an entire day.
func TestWithinOneHourTheEngineIsNotQueried(t *testing.T) {
	t.Parallel()
	e := new(engine)
	h := inFiles(t, e)
	for i := range 3 {
		r := made(i, noon.Add(time.Duration(i-1)*90*time.Minute+30*time.Minute))
		r.Metadata = map[string]string{"team": "a"}
		h.ingest(t, r)
	}
	for _, wait := range []time.Duration{6 * time.Hour, 48 * time.Hour} {
		h.now = noon.Add(wait)
		h.compact(t)
	}
	f := Filter{From: noon.Add(20 * time.Minute), To: noon.Add(40 * time.Minute), Metadata: map[string]string{"team": "a"}}
	groups, err := h.reader.tally(context.Background(), store.Scope{Org: "org-1"}, &f, plain, allTime)
	if err != nil || e.queries.Load() != 0 || total(groups[""]).Requests != 1 {
		t.Errorf("%d queries, %v: %v", e.queries.Load(), groups, err)
	}
}

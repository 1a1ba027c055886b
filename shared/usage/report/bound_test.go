package report

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// many fills a house with segments of records with almost no equal values, each segment over
// the entire time, so that any two may have the same record.
func many(t *testing.T, segments, each int) (h *fixture, ids []string) {
	t.Helper()
	h = newFixture(t)
	for s := range segments {
		batch := make([]usage.Record, each)
		for i := range batch {
			n := s + i*segments
			r := made(n, noon.Add(-time.Duration(n)*time.Millisecond))
			r.TraceID, r.SpanID = fmt.Sprintf("trace-%040d", n), fmt.Sprintf("span-%040d", n)
			r.EndUser, r.UserID = fmt.Sprintf("user-%040d", n), fmt.Sprintf("id-%d", n)
			r.Metadata = map[string]string{"_user": r.EndUser, "session": fmt.Sprintf("session-%030d", n)}
			batch[i] = r
		}
		batch = append(batch, made(-1-s/2, noon)) // two segments have it
		ids = append(ids, batch[each/2].ID, batch[each].ID)
		h.ingest(t, batch...)
	}
	h.open()
	return h, ids
}

// queriesOf are queries of all kinds.
func queriesOf(h *fixture, ids []string) map[string]func(testing.TB) error {
	scope := store.Scope{Org: "org-1"}
	all := Filter{From: noon.Add(-20 * time.Hour), To: noon.Add(time.Hour)}
	with := func(change func(*Filter)) Filter {
		f := all
		change(&f)
		return f
	}
	part := with(func(f *Filter) { f.From = noon.Add(-40 * time.Second) }) // more groups than are gathered at once
	logs := func(q LogQuery) func(testing.TB) error {
		return func(t testing.TB) error {
			_, err := h.reader.Logs(t.Context(), scope, &q)
			return err
		}
	}
	groups := func(q GroupQuery) func(testing.TB) error {
		return func(t testing.TB) error {
			_, _, err := h.reader.Groups(t.Context(), scope, &q)
			return err
		}
	}
	graph := func(name string, f Filter) func(testing.TB) error {
		return func(t testing.TB) error {
			_, _, err := h.reader.Graph(t.Context(), scope, name, &f)
			return err
		}
	}
	return map[string]func(testing.TB) error{
		"logs of a trace":        logs(LogQuery{Filter: with(func(f *Filter) { f.TraceIDs = []string{"absent"} }), Limit: 50}),
		"logs of metadata":       logs(LogQuery{Filter: with(func(f *Filter) { f.Metadata = map[string]string{"session": "absent"} }), Limit: 50}),
		"logs by deep pages":     logs(LogQuery{Filter: all, Limit: 100, Offset: 20_000}),
		"logs of costs":          logs(LogQuery{Filter: with(func(f *Filter) { n := int64(1); f.Cost.Max = &n }), Limit: 100}),
		"groups of users":        groups(GroupQuery{Filter: part, By: "users", Limit: 10}),
		"groups of metadata":     groups(GroupQuery{Filter: part, MetadataKey: "session", Limit: 10}),
		"latencies of users":     groups(GroupQuery{Filter: with(func(f *Filter) { f.From = noon.Add(-10 * time.Second) }), By: "users", Limit: 10, Columns: []string{"p99_latency"}}),
		"groups of models":       groups(GroupQuery{Filter: all, By: "model", Limit: 10}),
		"users":                  graph("users", with(func(f *Filter) { f.Models = []string{"gpt-4o"} })),
		"latencies of some":      graph("latency", with(func(f *Filter) { f.TraceIDs = []string{"absent"} })),
		"requests from the cube": graph("requests", all),
		"one log": func(t testing.TB) error {
			for _, id := range ids {
				if _, ok, err := h.reader.Log(t.Context(), scope, id); err != nil || !ok {
					return fmt.Errorf("log %s: %t %w", id, ok, err)
				}
			}
			return nil
		},
	}
}

// TestQuestionsAreAnsweredWithinTheirMemory: for any query, eight times concurrently, over much
// larger segments, the heap with all its garbage grows at most by the memory of queries.
//
//lane:property
func TestQuestionsAreAnsweredWithinTheirMemory(t *testing.T) { // alone: it counts the memory of the process
	if sum := int64(gatheredBytes + budgetBytes + segment.CacheBytes); 2*sum > queriesBytes {
		t.Errorf("%d bytes are handed out: with as much garbage that is more than %d", sum, queriesBytes)
	}
	segments := 40
	if testing.Short() {
		segments = 5
	}
	h, ids := many(t, segments, 2500)
	for _, name := range slices.Sorted(maps.Keys(queriesOf(h, ids))) {
		t.Run(name, func(t *testing.T) {
			h.open() // nothing is in the cache
			h.reader.src.budget = newMemoryBudget(maxRunning, maxQueued, gatheredBytes, budgetBytes, time.Hour)
			run := queriesOf(h, ids)[name]
			runtime.GC()
			before := heapBytes()
			done := make(chan struct{})
			go func() { defer close(done); eightTimes(t, run) }()
			most := before
			for ended := false; !ended; most = max(most, heapBytes()) {
				select {
				case <-done:
					ended = true
				case <-time.After(time.Millisecond):
				}
			}
			t.Logf("%d KiB", (most-before)>>10)
			if most-before > queriesBytes {
				t.Errorf("%d MiB", (most-before)>>20)
			}
		})
	}
}

// eightTimes runs a query eight times concurrently.
func eightTimes(t *testing.T, run func(testing.TB) error) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := run(t); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestQuestionsAtOnce runs the queries of the memory test on few records, with the race
// detector.
func TestQuestionsAtOnce(t *testing.T) {
	t.Parallel()
	h, ids := many(t, 4, 60)
	for _, run := range queriesOf(h, ids) {
		h.open() // nothing is in the cache
		eightTimes(t, run)
	}
}

func heapBytes() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestWeightsAreHonest: what reading leaves in memory is not more than is counted for
// it, of small files and of those in the bucket.
//
//lane:property
func TestWeightsAreHonest(t *testing.T) { // alone: it counts the memory of the process
	sizes := []int{20, 1000, 40_000}
	if testing.Short() {
		sizes = sizes[:2]
	}
	for _, each := range sizes {
		h, _ := many(t, 1, each)
		list, err := h.archive.List(t.Context(), "org-1", 0, noon.Add(time.Hour).UnixMicro())
		if err != nil || len(list) == 0 {
			t.Fatal(len(list), err)
		}
		for i := range list {
			m := &list[i]
			held := func(what string, weight int64, read func() (any, error)) {
				t.Helper()
				runtime.GC()
				before := heapBytes()
				got, err := read()
				if err != nil {
					t.Fatal(err)
				}
				runtime.GC()
				if now := heapBytes(); int64(now)-int64(before) > weight+8<<10 {
					t.Errorf("%s of %d records: %d bytes, %d are counted", what, m.Records, now-before, weight)
				}
				runtime.KeepAlive(got)
			}
			held("the cube", m.CubeWeight(), func() (any, error) { return h.archive.Cube(t.Context(), m) })
			held("the file", m.OpenWeight(), func() (any, error) { return h.archive.File(t.Context(), m) })
			f, err := h.archive.File(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Ints(t.Context(), 0, segment.WithUser); err != nil { // a small file's bytes are there
				t.Fatal(err)
			}
			for g := range f.Groups {
				for d := range segment.NumDims {
					held(fmt.Sprint("texts ", d), f.StringsWeight(g, d), func() (any, error) { return f.Strings(t.Context(), g, d) })
				}
				for k := range segment.NumInts {
					held(fmt.Sprint("numbers ", k), f.IntsWeight(g, k), func() (any, error) { return f.Ints(t.Context(), g, k) })
				}
				held("metadata", f.MetadataWeight(g), func() (any, error) { return f.Metadata(t.Context(), g, "session") })
			}
			runtime.KeepAlive(f)
		}
	}
}

// TestTooManyGroupsAreGatheredInShares: pages of groups are the same, also where they
// are more than are gathered at once.
func TestTooManyGroupsAreGatheredInShares(t *testing.T) {
	t.Parallel()
	h, _ := many(t, 3, 3000)
	most := &aspect{latencies: true}
	if most.maxGroups() >= 9000 {
		t.Fatal("all groups are gathered at once")
	}
	for _, columns := range [][]string{nil, {"p99_latency"}} {
		for _, ascending := range []bool{false, true} {
			q := GroupQuery{Filter: Filter{From: noon.Add(-time.Hour), To: noon.Add(time.Hour)}, By: "users", Columns: columns, Ascending: ascending, Offset: 990, Limit: 20}
			page, n, err := h.reader.Groups(t.Context(), store.Scope{Org: "org-1"}, &q)
			if err != nil || n != 9001 || len(page) != 20 {
				t.Fatalf("%v: %d groups of %d: %v", columns, len(page), n, err)
			}
			first := 989 // alice has more requests than each other, and is first or last
			if ascending {
				first = 990
			}
			for i, g := range page {
				if want := fmt.Sprintf("user-%040d", first+i); g.Value != want || g.Requests != 1 || len(columns) > 0 && g.Latency(0.99) == 0 {
					t.Errorf("%v: group %d is %s with %d requests, want %s", columns, i, g.Value, g.Requests, want)
				}
			}
		}
	}
	q := GroupQuery{Filter: Filter{From: noon.Add(-time.Hour), To: noon.Add(time.Hour)}, By: "users", Columns: []string{"p99_latency"}, Offset: 8000, Limit: 20}
	if _, _, err := h.reader.Groups(t.Context(), store.Scope{Org: "org-1"}, &q); fault.From(err).Status() != 400 {
		t.Errorf("a page far beyond: %v", err)
	}
}

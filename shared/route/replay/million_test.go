package replay

import (
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"gateway/shared/blob/files"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

var archived = flag.Int("records", 10_000, "how many records TestTheArchiveIsReplayed writes and simulates; 1000000 takes minutes")

// decided makes the n-th request of an archive: routed by a config, charged by a price,
// and rejected where its user has had 20 in this hour.
func decided(rnd *rand.Rand, q *Changes, own *pricing.Custom, had map[string]int, n int, each time.Duration) usage.Record {
	rec := serve(rnd, q.Config.Tree, nil, n)
	rec.Start = noon.Add(time.Duration(n) * each).Truncate(time.Microsecond)
	rec.ConfigID, rec.ConfigVersion = q.Config.ID, q.Config.Version
	rec.Cost = 0
	for i := range rec.Attempts {
		a := &rec.Attempts[i]
		if a.Model == "asked0" {
			a.Cost = own.Price(pricing.Options{}).Cost(a.Usage)
		}
		rec.Cost += a.Cost
	}
	user, counts := rec.Metadata["user"]
	window := rec.Start.Truncate(time.Hour).String() + user
	if counts && had[window] >= 20 {
		return usage.Record{ID: rec.ID, Start: rec.Start, Org: "o", Workspace: "w", Metadata: rec.Metadata, Endpoint: rec.Endpoint, RequestModel: rec.RequestModel, ClientStatus: 429,
			ErrorCode: string(fault.RateLimited), Refusal: &usage.Refusal{Subject: "policy", ID: "policy", Entity: "metadata.user:" + user, Type: "requests", Unit: "rph", Needed: 1}}
	}
	had[window]++
	return *rec
}

// Records read from an archive, page by page and oldest first, are decided as recorded, each
// request once, in limited memory.
func TestTheArchiveIsReplayed(t *testing.T) { // alone: it counts the memory of the process
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	bucket, err := files.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	now := noon
	archive := segment.New(s, bucket, segment.Options{Clock: func() time.Time { return now }})
	const config = `{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@p0","weight":3},{"weight":1,"strategy":{"mode":"fallback"},"targets":[{"provider":"@p1"},{"provider":"@p2","override_params":{"model":"m1"}}]},
		{"weight":1,"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.user":"u1"},"then":"a"}],"default":"b"},"targets":[{"name":"a","provider":"@p3"},{"name":"b","provider":"@p0","override_params":{"model":"m2"}}]}]}`
	const price = `{"pay_as_you_go":{"request_token":{"price":0.000037},"response_token":{"price":0.00009}}}`
	own, bad := pricing.ParseCustom([]byte(price), "")
	prices, wrong := ParsePrices(json.RawMessage(`{"openai/asked0":`+price+`}`), json.RawMessage(`{"openai/*":1}`))
	if len(bad)+len(wrong) > 0 {
		t.Fatal(bad, wrong)
	}
	l := limitOf(t, `{"replaces":"policy","type":"requests","unit":"rph","value":20,"conditions":[{"key":"metadata.user","value":"*"}],"group_by":[{"key":"metadata.user"}]}`, true)
	q := Changes{Config: &Config{Tree: compiled(t, []byte(config)), ID: "c", Version: 1}, Prices: prices, Limits: []*Limit{l}}
	rnd, had := rand.New(rand.NewPCG(1, 2)), map[string]int{}
	var refused int64
	batch := make([]usage.Record, 0, 1000)
	for n := range *archived {
		rec := decided(rnd, &q, own, had, n, 20*time.Second)
		if now = rec.Start; rec.Refusal != nil {
			refused++
		}
		if batch = append(batch, rec); len(batch) == cap(batch) || n == *archived-1 {
			if err := archive.Ingest(context.Background(), batch); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
		if n%20_000 == 19_999 {
			if err := archive.Compact(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began, most, seen := time.Now(), uint64(0), 0
	reader := report.New(segment.New(s, bucket, segment.Options{}), bucket)
	run := New(q, installation{})
	query := report.LogQuery{Filter: report.Filter{From: noon, To: now}, Limit: 2048, NoTotal: true, Oldest: true}
	last := time.Time{}
	for {
		next, err := reader.EachLog(t.Context(), store.Scope{Org: "o", Workspace: "w"}, &query, func(rec *usage.Record) (bool, error) {
			if seen++; rec.Start.Before(last) {
				t.Fatalf("%s comes behind %s", rec.Start, last)
			}
			last = rec.Start
			return true, run.Simulate(t.Context(), rec, Bodies{})
		})
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		most = max(most, after.HeapAlloc)
		if query.Cursor = next; next == "" {
			break
		}
	}
	t.Logf("%d records in %s, heap %d MiB before and at most %d MiB", seen, time.Since(began).Round(time.Millisecond), before.HeapAlloc>>20, most>>20)
	if most > before.HeapAlloc+128<<20 {
		t.Errorf("the heap grew to %d MiB from %d", most>>20, before.HeapAlloc>>20)
	}
	got := run.Result()
	if seen != *archived || got.Before != got.After || got.Before.Refused != refused || refused == 0 || got.Limits[0].Refused != refused || len(got.Differences) > 0 {
		t.Errorf("%d records, %d refused: %+v", seen, refused, got)
	}
	if open := got.unjudged(); open != "" && got.Unjudged[0].Reason != NotRouted || len(got.Unjudged) > 1 {
		t.Errorf("not judged: %s", open) // rejected before there was a target
	}
}

package segment

import (
	"context"
	"math"
	"slices"
	"testing"
	"time"

	"gateway/shared/blob"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/testkit/dynamotest"
	"gateway/shared/testkit/usagetest"
	"gateway/shared/usage"
)

type shelf struct {
	*Archive
	store  store.Store
	bucket blob.Bucket
	now    time.Time
	bad    []error
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	s, b := usagetest.Open(t, t.TempDir())
	h := &shelf{store: s, bucket: b, now: noon}
	h.Archive = New(s, b, Options{Clock: func() time.Time { return h.now }, OnRejected: func(_ string, err error) { h.bad = append(h.bad, err) }})
	return h
}

// stores are the stores for a shelf, by name; nil: the default one.
var stores = map[string]func(*testing.T) store.Store{
	"sqlite": nil,
	"dynamo": func(t *testing.T) store.Store { return dynamotest.Open(t, dynamotest.Start(t)) },
}

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func made(i int, start time.Time) usage.Record {
	r := usage.Record{
		ID: usagetest.ID(i, start), Start: start, Org: "org-1", Workspace: "ws-1", WorkspaceSlug: "default", KeyID: "6f1c1a52-7f0e-4f8f-9c39-3f4f0a9e2b11", KeyType: "workspace-service",
		EndUser: "alice", Metadata: map[string]string{"_user": "alice", "team": "search"}, Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions",
		RequestModel: "gpt-4o", ClientStatus: 200, Provider: "openai", ProviderSlug: "main", Model: "gpt-4o-2024-08-06", OptionIndex: "config", CacheStatus: "MISS",
		FinishReason: "stop", Cost: 1_000_000, Priced: true, Duration: 900 * time.Millisecond, TimeToFirstByte: 200 * time.Millisecond,
	}
	r.Usage.Set(pricing.Input, 900)
	r.Usage.Set(pricing.Output, 100)
	r.Attempts = []usage.Attempt{{Provider: "openai", ProviderSlug: "main", Model: "gpt-4o", OptionIndex: "config", Status: 200, Usage: r.Usage, Cost: r.Cost}}
	return r
}

func several(n int, start time.Time) []usage.Record {
	records := make([]usage.Record, n)
	for i := range records {
		records[i] = made(i, start.Add(time.Duration(i)*time.Millisecond))
	}
	return records
}

func (h *shelf) ingest(t testing.TB, records ...usage.Record) {
	t.Helper()
	if err := h.Ingest(context.Background(), slices.Clone(records)); err != nil {
		t.Fatal(err)
	}
}

func (h *shelf) compactAt(t testing.TB, now time.Time) {
	t.Helper()
	h.now = now
	if err := h.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (h *shelf) all(t testing.TB) []Manifest {
	t.Helper()
	list, err := h.List(context.Background(), "org-1", 0, math.MaxInt64/4)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// rows counts the rows of a partition prefix, whatever it holds.
func (h *shelf) rows(t testing.TB, p store.Partition) (keys []string) {
	t.Helper()
	page, err := h.store.Table(store.Usage).Query(context.Background(), store.Query{Partition: p})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Rows {
		keys = append(keys, r.Key.SK())
	}
	return keys
}

// contents reads every record of every segment with its bodies.
func (h *shelf) contents(t testing.TB) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, m := range h.all(t) {
		f, err := h.File(context.Background(), &m)
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.Groups {
			var rows []int
			for i := range f.Groups[g].Rows {
				rows = append(rows, i)
			}
			records, err := f.Records(context.Background(), g, rows)
			if err != nil {
				t.Fatal(err)
			}
			for i := range records {
				b, err := bodiesOf(context.Background(), f, g, i)
				if err != nil {
					t.Fatal(err)
				}
				out[records[i].ID] = string(b)
			}
		}
	}
	return out
}

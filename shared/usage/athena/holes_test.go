package athena

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// Small segments of old hours in the store are read in addition to the files, which cover the
// hours after them as well. Records that are also in a file, or in two, count once, whichever
// is merged further.
func TestSegmentsInTheStoreAreHoles(t *testing.T) {
	t.Parallel()
	h, rnd, ctx := newFixture(t), rand.New(rand.NewPCG(4, 4)), context.Background()
	start := noon.AddDate(0, 0, -6).Truncate(24 * time.Hour)
	var all []usage.Record
	for i := range 900 {
		all = append(all, made(rnd, i, start.Add(time.Duration(i)*8*time.Minute)))
	}
	inline := segment.New(h.store, h.bucket, segment.Options{Inline: 300 << 10, Clock: func() time.Time { return h.now }})
	ingest := func(a *segment.Archive, records ...usage.Record) {
		t.Helper()
		if err := a.Ingest(ctx, slices.Clone(records)); err != nil {
			t.Fatal(err)
		}
	}
	// The first day was merged without files: it is completely in the store. One file of it,
	// merged less, has some of its records.
	ingest(inline, all[:100]...)
	for range 2 {
		if err := inline.Compact(ctx); err != nil {
			t.Fatal(err)
		}
	}
	ingest(h.large, all[20:60]...)
	ingest(h.large, all[100:]...)
	for _, late := range [][]usage.Record{{made(rnd, 5001, start.Add(50*time.Hour)), all[380]}, {all[380], all[381]}, {made(rnd, 5002, start.Add(3*time.Hour))}} {
		ingest(inline, late...)
	}
	least := int64(1)
	f := report.Filter{From: start.Add(-time.Hour), To: noon, Cost: report.Range{Min: &least}}
	for _, by := range []string{"model", "status_code"} {
		h.sameGroups(t, store.Scope{Org: "org-1"}, &report.GroupQuery{Filter: f, By: by, Columns: report.Columns(), Limit: 9})
	}
	f.From, f.To = f.From.Add(61*time.Minute+49*time.Hour), f.To.Add(-20*time.Hour)
	h.sameGroups(t, store.Scope{Org: "org-1"}, &report.GroupQuery{Filter: f, MetadataKey: "team", Columns: report.Columns(), Limit: 9})
	behind := false
	h.service.mu.Lock()
	defer h.service.mu.Unlock()
	for _, q := range h.service.queries {
		behind = behind || strings.Contains(q.sql, fmt.Sprintf(`"start" < timestamp '%s`, noon.Format("2006-01-02 15")))
	}
	if n := len(h.service.queries); !behind || n < 4 {
		t.Errorf("%d queries, of what is behind the segments in the store: %t", n, behind)
	}
}

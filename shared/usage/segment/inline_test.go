package segment

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gateway/shared/store"
)

// If rows are priced by the kilobyte, no object above the limit is stored in one; the same
// records are returned, merged or not.
func TestCheapestStoresLargeObjectsOutsideRows(t *testing.T) {
	t.Parallel()
	for _, inline := range []int{1, CheapestInline, 0, maxInline + 1} {
		t.Run(fmt.Sprint(inline), func(t *testing.T) {
			t.Parallel()
			h := newShelf(t)
			h.Archive = New(h.store, h.bucket, Options{Inline: inline, Clock: func() time.Time { return h.now }})
			bound := inline
			if inline < 1 || inline > maxInline {
				bound = maxInline
			}
			const batches, each = 6, 200
			for b := range batches {
				records := several(each, noon.Add(time.Duration(b)*time.Minute))
				for i := range records {
					records[i].Bodies = fmt.Appendf(nil, "%02d-%03d-%01000d", b, i, i)
				}
				h.ingest(t, records...)
			}
			for _, at := range []time.Time{noon, noon.Add(2 * time.Hour), noon.Add(30 * time.Hour)} {
				h.compactAt(t, at)
				h.compactAt(t, at)
				var total int64
				for _, m := range h.all(t) {
					total += m.Records
					page, err := h.store.Table(store.Usage).Query(context.Background(), store.Query{Partition: store.Scope{Org: "org-1"}.Partition("SEG", m.Name)})
					if err != nil {
						t.Fatal(err)
					}
					for _, row := range page.Rows {
						if n := len(row.Item.Bytes("b")); n > bound {
							t.Errorf("%s of %d bytes stands in a row", row.Key.SK(), n)
						}
					}
					if bound == 1 && len(page.Rows) > 0 {
						t.Errorf("%d objects stand in rows", len(page.Rows))
					}
					if ids, err := h.ids(context.Background(), &m); err != nil || int64(len(ids)) != m.Records {
						t.Errorf("%d ids of %d records: %v", len(ids), m.Records, err)
					}
				}
				if total != batches*each {
					t.Errorf("%s: %d records", at, total)
				}
			}
			first := h.all(t)[0]
			f, err := h.File(context.Background(), &first)
			if err != nil || len(f.Groups) == 0 {
				t.Fatal(err)
			}
		})
	}
}

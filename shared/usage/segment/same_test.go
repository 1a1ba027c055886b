package segment

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gateway/shared/usage"
)

// A record that repair creates for a request that seemed to have died has the time of its id,
// in milliseconds; the request's late record has microseconds too. They count once: in one
// batch, in two, merged or not, in either order.
func TestALateRecordAndThatOfRepairCountOnce(t *testing.T) {
	t.Parallel()
	for _, micros := range []int{0, 1, 123, 999} {
		for _, order := range []string{"one batch", "repair first", "repair last"} {
			t.Run(fmt.Sprintf("%d us, %s", micros, order), func(t *testing.T) {
				t.Parallel()
				h := newShelf(t)
				repaired, between, own := made(1, noon), made(2, noon), made(1, noon)
				own.Start = noon.Add(time.Duration(micros) * time.Microsecond)
				between.Start = noon.Add(time.Duration(micros/2) * time.Microsecond)
				next := made(3, noon.Add(time.Millisecond))
				switch order {
				case "one batch":
					h.ingest(t, own, next, between, repaired)
				case "repair first":
					h.ingest(t, repaired)
					h.ingest(t, between, own, next)
				default:
					h.ingest(t, own, next)
					h.ingest(t, between, repaired)
				}
				for range 2 {
					if got := counted(t, h); fmt.Sprint(got) != fmt.Sprint(map[string]int{own.ID: 1, between.ID: 1, next.ID: 1}) {
						t.Errorf("%v", got)
					}
					h.compactAt(t, noon.Add(26*time.Hour))
				}
			})
		}
	}
}

// counted returns how often each record occurs in the parts of all segments.
func counted(t *testing.T, h *shelf) map[string]int {
	t.Helper()
	ctx := context.Background()
	out := map[string]int{}
	parts := Parts(h.all(t))
	for i := range parts {
		twice, err := h.Duplicates(ctx, &parts[i])
		if err != nil {
			t.Fatal(err)
		}
		left := map[uint64]bool{}
		for _, id := range twice {
			left[id] = true
		}
		f, err := h.File(ctx, &parts[i].Manifest)
		if err != nil {
			t.Fatal(err)
		}
		for g, group := range f.Groups {
			rows := make([]int, group.Rows)
			for j := range rows {
				rows[j] = j
			}
			var records []usage.Record
			if records, err = f.Records(ctx, g, rows); err != nil {
				t.Fatal(err)
			}
			for j := range records {
				if !left[HashID(records[j].ID)] {
					out[records[j].ID]++
				}
			}
		}
	}
	return out
}

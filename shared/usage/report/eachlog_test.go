package report

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"pgregory.net/rapid"

	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// checkWalk walks all logs with their bodies, and stops, fails and finds a segment gone
// on the way: each log comes once, in order.
func checkWalk(t *rapid.T, h *fixture, scope store.Scope, f *Filter, want []usage.Record) {
	want = slices.Clone(want)
	slices.SortFunc(want, func(x, y usage.Record) int { return cmp.Or(y.Start.Compare(x.Start), cmp.Compare(y.ID, x.ID)) })
	oldest := rapid.Bool().Draw(t, "oldest first")
	if oldest {
		slices.Reverse(want)
	}
	offset := rapid.IntRange(0, len(want)).Draw(t, "offset")
	want = want[offset:]
	q := LogQuery{Filter: *f, Limit: rapid.IntRange(1, 20).Draw(t, "walk limit"), Offset: offset, Bodies: true, Oldest: oldest}
	var got []usage.Record
	errBroken, gone := errors.New("broken"), 1
	for {
		page := 0
		next, err := h.reader.EachLog(context.Background(), scope, &q, func(r *usage.Record) (bool, error) {
			switch rapid.IntRange(0, 9).Draw(t, "visit") {
			case 0:
				return false, errBroken
			case 1:
				if gone > 0 { // before the log was taken: it comes again
					gone--
					return false, segment.ErrDeleted
				}
			case 2:
				page, got = page+1, append(got, *r)
				return false, nil
			}
			page, got = page+1, append(got, *r)
			return true, nil
		})
		if err != nil && !errors.Is(err, errBroken) {
			t.Fatal(err)
		}
		if page > q.Limit {
			t.Fatalf("%d logs, at most %d", page, q.Limit)
		}
		if err == nil && next == "" {
			break
		}
		if q.Cursor = next; next != "" {
			q.Offset = 0
		}
		gone = 1
	}
	if len(got) != len(want) {
		t.Fatalf("%d logs, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].ID != want[i].ID || !bytes.Equal(got[i].Bodies, want[i].Bodies) {
			t.Fatalf("log %d is %s with %q, want %s", i, got[i].ID, got[i].Bodies, want[i].ID)
		}
	}
}

package segment

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gateway/shared/usage"
)

// A filter never denies existing values, and denies nearly all others.
func TestFiltersReportAbsentValues(t *testing.T) {
	t.Parallel()
	h := newShelf(t)
	const n = 400
	value := func(d Dim, i int) string { return fmt.Sprint(dimColumns[d], "-", i) }
	for k := range 4 {
		var records []usage.Record
		for i := k * n / 4; i < (k+1)*n/4; i++ {
			r := made(i, noon.Add(time.Duration(i)*time.Second))
			r.TraceID, r.SpanID, r.EndUser, r.UserID = value(TraceID, i), value(SpanID, i), value(EndUser, i), value(UserID, i)
			r.Agent.Session = value(Session, i)
			records = append(records, r)
		}
		h.ingest(t, records...)
	}
	of := func(s string) map[string]struct{} { return map[string]struct{}{s: {}} }
	one := func(d Dim, v string) (can bool) {
		t.Helper()
		for _, m := range h.all(t) {
			f, err := h.File(context.Background(), &m)
			if err != nil {
				t.Fatal(err)
			}
			for g := range f.Groups {
				may, err := f.MayHave(context.Background(), g, d, of(v))
				if err != nil {
					t.Fatal(err)
				}
				can = can || may
			}
		}
		return can
	}
	if !one(TraceID, "nobody's") {
		t.Error("a batch has no filters, and denies")
	}
	h.compactAt(t, noon.Add(2*time.Hour))
	h.compactAt(t, noon.Add(3*time.Hour))
	if list := h.all(t); len(list) != 1 {
		t.Fatalf("%d segments", len(list))
	}
	for _, d := range FilteredDims() {
		vain := 0
		for i := range n {
			if !one(d, value(d, i)) {
				t.Fatalf("%s %d is denied", dimColumns[d], i)
			}
			if one(d, value(d, i+n)) {
				vain++
			}
		}
		if vain > n/10 {
			t.Errorf("%s: %d of %d that are not there are not denied", dimColumns[d], vain, n)
		}
	}
	if !one(Model, "nobody's") {
		t.Error("a column without a filter denies")
	}
}

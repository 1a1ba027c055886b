package report

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// A total that was counted before is right for another time, for another filter, and
// when records have come twice or late since.
func TestTotalsThatWereCountedBefore(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	var all []usage.Record
	for i := range 60 {
		r := made(i, noon.Add(time.Duration(i)*5*time.Minute))
		r.EndUser = fmt.Sprint("u", i%2)
		all = append(all, r)
	}
	for from := 0; from < len(all); from += 10 {
		h.ingest(t, all[from:from+10]...)
	}
	org := store.Scope{Org: "org-1"}
	check := func(when string) {
		t.Helper()
		for range 2 {
			for _, user := range []string{"u0", "u1"} {
				for _, span := range [][2]int{{0, 59}, {0, 34}, {13, 59}, {21, 47}, {0, 59}} {
					f := Filter{From: all[span[0]].Start, To: all[span[1]].Start, EndUsers: []string{user}}
					want := 0
					for i := range all {
						if r := &all[i]; r.EndUser == user && !r.Start.Before(f.From) && !r.Start.After(f.To) {
							want++
						}
					}
					page, err := h.reader.Logs(context.Background(), org, &LogQuery{Filter: f, Limit: 1})
					if err != nil || page.Total != want {
						t.Errorf("%s, %s, %v: %d, want %d: %v", when, user, span, page.Total, want, err)
					}
				}
			}
		}
	}
	check("at first")
	h.ingest(t, all[5:25]...)
	check("when some have come twice")
	late := made(99, noon.Add(62*time.Minute))
	late.EndUser = "u1"
	all = append(all, late)
	h.ingest(t, late)
	check("when one has come late")
	h.now = noon.Add(9 * time.Hour)
	h.compact(t)
	check("when they are merged")
}

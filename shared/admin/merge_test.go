package admin

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/resource"
)

// A page of a merged list is that part of the complete list in order, for any runs and any
// omissions.
func TestPagesOfMergedListsAreThoseOfTheWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		runs := make([][]resource.Row, rapid.IntRange(0, 6).Draw(t, "runs"))
		for i := range rapid.IntRange(0, 300).Draw(t, "rows") {
			if len(runs) > 0 {
				n := rapid.IntRange(0, len(runs)-1).Draw(t, "run")
				runs[n] = append(runs[n], resource.Row{Order: fmt.Sprintf("%06d", i)})
			}
		}
		leave := rapid.IntRange(1, 5).Draw(t, "leave")
		filtered := rapid.Bool().Draw(t, "filtered")
		wanted := func(r *resource.Row) bool { return int(r.Order[5]-'0')%leave == 0 }
		var whole []string
		for _, rows := range runs {
			slices.Reverse(rows)
			for i := range rows {
				if !filtered || wanted(&rows[i]) {
					whole = append(whole, rows[i].Order)
				}
			}
		}
		slices.SortFunc(whole, func(a, b string) int { return cmp.Compare(b, a) })
		start, size := rapid.IntRange(0, 350).Draw(t, "start"), rapid.IntRange(1, 60).Draw(t, "size")
		var m merged
		for _, rows := range runs {
			one := &run{rows: rows}
			if filtered {
				one.selectRows(wanted)
			}
			m = append(m, one)
		}
		if m.total() != len(whole) {
			t.Fatalf("%d rows, want %d", m.total(), len(whole))
		}
		var got []string
		for _, p := range m.page(int64(start), int64(size)) {
			got = append(got, p.Order)
		}
		if want := whole[min(start, len(whole)):min(start+size, len(whole))]; !slices.Equal(got, want) {
			t.Fatalf("from %d, %d: %v, want %v", start, size, got, want)
		}
	})
}

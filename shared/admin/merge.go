package admin

import (
	"gateway/shared/resource"
	"gateway/shared/store"
)

// run are rows of one stored list, newest first; they are shared and not changed.
type run struct {
	rows     []resource.Row
	scope    store.Scope
	kept     []int32 // indexes of those that are meant, where filtered
	filtered bool
	at       int // of the next one
}

// keep selects the wanted rows.
func (r *run) keep(wanted func(*resource.Row) bool) {
	r.filtered = true
	for i := range r.rows {
		if wanted(&r.rows[i]) {
			r.kept = append(r.kept, int32(i))
		}
	}
}

func (r *run) len() int {
	if r.filtered {
		return len(r.kept)
	}
	return len(r.rows)
}

func (r *run) row(i int) *resource.Row {
	if r.filtered {
		i = int(r.kept[i])
	}
	return &r.rows[i]
}

// merged is a list, newest first, merged from several runs. A page is found without sorting all
// rows.
type merged []*run

func (m merged) total() (n int) {
	for _, r := range m {
		n += r.len()
	}
	return n
}

// page are the rows from start on, at most size.
func (m merged) page(start, size int64) []placed {
	total := int64(m.total())
	start = min(start, total)
	m.skip(int(start))
	out := make([]placed, 0, min(size, total-start))
	for int64(len(out)) < size {
		r := m.newest(1)
		if r == nil {
			break
		}
		out = append(out, placed{*r.row(r.at), r.scope})
		r.at++
	}
	return out
}

// skip advances past the n newest rows. Consider the next n/k rows of each of k runs: the rows
// of the run with the newest last row are all among the n newest, because each other run has
// fewer than n/k rows before that one.
func (m merged) skip(n int) {
	for n > 0 {
		step := max(1, n/max(1, len(m)))
		r := m.newest(step)
		for ; r == nil && step > 1; r = m.newest(step) { // no run has so many left
			step /= 2
		}
		if r == nil {
			return
		}
		r.at += step
		n -= step
	}
}

// newest returns the run with the newest row at a distance, 1 for the next; nil if every run is
// shorter. A shorter run counts as older than any.
func (m merged) newest(distance int) *run {
	var best *run
	for _, r := range m {
		if r.at+distance > r.len() {
			continue
		}
		if best == nil || r.row(r.at+distance-1).Order > best.row(best.at+distance-1).Order {
			best = r
		}
	}
	return best
}

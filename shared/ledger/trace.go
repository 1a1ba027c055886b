package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gateway/shared/store"
)

// Repair leaves a trace of the entries that it settles, so that a process that wrote an
// entry without receiving the result can distinguish a repaired entry from one that was
// never written, regardless of the clocks of the two processes.
const (
	maxTraces = 8 // per row; more than a row needs unless many processes died simultaneously
	traceLife = 24 * time.Hour
)

func tracePath(id string) store.Path { return store.At(attrTrace + id) }

// leaveTraces adds the traces of entries to the update that settles them, and removes
// those of the row that are old or excessive.
func leaveTraces(u *store.Update, row store.Item, due []overdue, now time.Time) {
	old := tracesOf(row)
	slices.SortFunc(old, func(a, b string) int { return cmp.Or(cmp.Compare(row.Int(a), row.Int(b)), strings.Compare(a, b)) })
	for len(old) > 0 && (len(old)+len(due) > maxTraces || row.Int(old[0]) <= now.Add(-traceLife).Unix()) {
		u.Remove = append(u.Remove, store.At(old[0]))
		old = old[1:]
	}
	for _, o := range due {
		u.Set = append(u.Set, store.Assign{Path: tracePath(o.id), Value: now.Unix()})
	}
}

func tracesOf(row store.Item) (names []string) {
	for name := range row {
		if strings.HasPrefix(name, attrTrace) {
			names = append(names, name)
		}
	}
	return names
}

// missing returns why a row does not have an entry that only repair may have settled.
func missing(row store.Item, id string) closing {
	if row == nil {
		return entryUnknown
	}
	if _, traced := row[attrTrace+id]; traced {
		return entryRepaired
	}
	if len(tracesOf(row)) >= maxTraces {
		return entryUnknown
	}
	return entryAbsent
}

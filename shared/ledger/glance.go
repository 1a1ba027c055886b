package ledger

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/store"
)

// glance is what a request must know of a row that it has just written.
type glance struct {
	shards    int64 // of a head
	several   bool  // the subject has more than this row
	open      int   // number of open entries
	overdue   bool  // an entry is past due
	overdrawn bool  // less than nothing is available of a budget
	alert     bool  // an alert may be due
}

// writing is an update of a spend row and the glance at its result. Requests make several,
// so they are reused.
type writing struct {
	u     store.Update
	after glance

	l       *alarms
	plan    *plan         // that the row probably follows; nil: not known
	quiet   *atomic.Int64 // see compiled.quiet; nil: not known
	settles bool
	charged amounts // what a settlement adds to what the row has spent
	now     int64

	look   func(store.Item) // see
	set    [1 + numSlots]store.Assign
	add    [2 * numSlots]store.Increment
	remove [1]store.Path
	conds  [3 + numSlots]store.Cond
}

var writings = sync.Pool{New: func() any {
	w := &writing{}
	w.look = w.see
	return w
}}

// newWriting returns an update that changes nothing yet.
func newWriting(key store.Key) *writing {
	w := writings.Get().(*writing)
	w.u = store.Update{Key: key, Set: w.set[:0], Add: w.add[:0], Remove: w.remove[:0], If: w.conds[:0], Look: w.look}
	return w
}

// write makes the update. Only a settlement can make an alert due.
func (w *writing) write(ctx context.Context, l *alarms, now time.Time) (glance, error) {
	w.l, w.now = l, now.Unix()
	_, _, err := l.spend.Update(ctx, w.u)
	if err != nil { // the store may use it still
		return glance{}, err
	}
	after := w.after
	clear(w.u.Set) // keep nothing alive
	clear(w.u.If)
	w.u, w.plan, w.quiet, w.settles, w.after = store.Update{}, nil, nil, false, glance{}
	writings.Put(w)
	return after, nil
}

// of tells what is known of the row of a part's entry.
func (w *writing) of(p *part) {
	w.plan = p.plan
	if c := p.subject.derive(); p.key == c.head {
		w.quiet = &c.quiet
	}
}

// settle notes what the update adds to what the row has spent.
func (w *writing) settle(charged amounts) { w.settles, w.charged = true, charged }

func (w *writing) see(row store.Item) {
	if row == nil {
		return
	}
	open := row.Map(attrOpen)
	w.after = glance{shards: row.Int(attrShards.Attr), open: len(open), several: !isHead(w.u.Key) || row.Int(attrRows.Attr) > 1}
	w.after.overdue = w.overdue(open)
	w.after.overdrawn = w.after.several && overdrawn(row)
	if !w.settles || w.l.hooks.Alert == nil {
		return
	}
	if w.after.several {
		w.after.alert = reviewDue(row, w.charged)
		return
	}
	p := w.plan
	if p == nil || p.text != row.String(attrPlan.Attr) {
		p = rowPlan(row)
	}
	for i := range p.slots {
		if s := &p.slots[i]; s.on {
			w.after.alert = w.after.alert || s.due(row.Int(slotAttr[i].spent.Attr), readAsk(row, i))&^row.Int(slotAttr[i].flags.Attr) != 0
		}
	}
}

// overdue reports whether an entry is past due. It does not look before an entry can be.
func (w *writing) overdue(open store.Map) bool {
	if w.quiet != nil && w.now < w.quiet.Load() {
		return false
	}
	next := w.now + int64(Due/time.Second)/2
	for _, v := range open {
		value, _ := v.([]byte)
		if entryPast(value, w.now) {
			return true
		}
		next = min(next, entryDue(value))
	}
	if w.quiet != nil {
		w.quiet.Store(next)
	}
	return false
}

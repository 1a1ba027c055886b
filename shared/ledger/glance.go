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

// writing is an update of a row and the glance at its result, if it is a spend row. Requests
// make several, so they are reused.
type writing struct {
	u     store.Update
	after glance

	plan    *plan         // that the row probably follows; nil: not known
	quiet   *atomic.Int64 // see compiled.quiet; nil: not known
	alerts  bool          // a settlement is made, and somebody wants its alerts
	charged amounts       // what the settlement adds to what the row has spent
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

// write makes the update. w must not be used afterwards.
func (w *writing) write(ctx context.Context, t store.Table, now time.Time) (after glance, row store.Item, err error) {
	w.now = now.Unix()
	_, row, err = t.Update(ctx, w.u)
	if err != nil { // the store may use it still
		return glance{}, nil, err
	}
	after = w.after
	clear(w.u.Set) // keep nothing alive
	clear(w.u.If)
	w.u, w.plan, w.quiet, w.alerts, w.after = store.Update{}, nil, nil, false, glance{}
	writings.Put(w)
	return after, row, nil
}

// of tells what is known of the row of a part's entry.
func (w *writing) of(p *part) {
	w.plan = p.plan
	if c := p.subject.derive(); p.key == c.head {
		w.quiet = &c.quiet
	}
}

// settle notes what the update adds to what the row has spent. Nothing else makes an alert
// due.
func (w *writing) settle(l *alarms, charged amounts) {
	w.alerts, w.charged = l.hooks.Alert != nil, charged
}

func (w *writing) see(row store.Item) {
	if row == nil {
		return
	}
	open := row.Map(attrOpen)
	w.after = glance{shards: row.Int(attrShards.Attr), open: len(open), several: !isHead(w.u.Key) || row.Int(attrRows.Attr) > 1}
	w.after.overdue = w.overdue(open)
	w.after.overdrawn = w.after.several && overdrawn(row)
	if !w.alerts {
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

package ledger

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/store"
)

// glance is the relevant state of a row that a request has just written.
type glance struct {
	shards    int64 // of a head
	several   bool  // the subject has further rows
	open      int   // number of open entries
	overdue   bool  // an entry is past due
	overdrawn bool  // the available amount of a budget is negative
	alert     bool  // an alert may be due
}

// writing is an update of a row and the glance at its result, if it is a spend row.
// Requests make several, so they are reused.
type writing struct {
	u     store.Update
	after glance

	plan    *plan         // that the row probably follows; nil if unknown
	quiet   *atomic.Int64 // see compiled.quiet; nil if unknown
	alerts  bool          // this is a settlement, and its alerts are needed
	charged amounts       // the settlement's addition to the row's spending
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

// newWriting returns an empty update.
func newWriting(key store.Key) *writing {
	w := writings.Get().(*writing)
	w.u = store.Update{Key: key, Set: w.set[:0], Add: w.add[:0], Remove: w.remove[:0], If: w.conds[:0], Look: w.look}
	return w
}

// write executes the update. w must not be used afterwards.
func (w *writing) write(ctx context.Context, t store.Table, now time.Time) (after glance, row store.Item, err error) {
	w.now = now.Unix()
	_, row, err = t.Update(ctx, w.u)
	if err != nil { // the store may still use it
		return glance{}, nil, err
	}
	after = w.after
	clear(w.u.Set) // release references
	clear(w.u.If)
	w.u, w.plan, w.quiet, w.alerts, w.after = store.Update{}, nil, nil, false, glance{}
	writings.Put(w)
	return after, row, nil
}

// of sets the cached state of the row of a part's entry.
func (w *writing) of(p *part) {
	w.plan = p.plan
	if c := p.subject.derive(); p.key == c.head {
		w.quiet = &c.quiet
	}
}

// settle sets the update's addition to the row's spending. Nothing else makes an alert
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

// overdue reports whether an entry is past due. It skips the check while none can be.
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

package ledger

import (
	"context"
	"errors"
	"time"

	"gateway/shared/store"
)

// evolution is the update that brings a row to the plan and to the current period.
type evolution struct {
	update  store.Update
	plan    *plan // the effective one: the row's, if that is newer
	slots   [numSlots]slotState
	changed bool // the update changes something
}

// evolve compares a row with the plan and the time. It implements resets, changes of
// limits and manual resets, by the next update of the row.
//
// All changes of available and spent are additions, so a reservation or settlement
// between the read and the update is neither lost nor counted twice; the end of a period
// is conditional on no other process having ended it. Of all rows of a subject only the
// head contains the limit.
func evolve(key store.Key, it store.Item, want *plan, now time.Time) evolution {
	have, head := want, isHead(key)
	if it.String(attrPlan.Attr) != want.text {
		have = rowPlan(it)
	}
	e := evolution{plan: want}
	if have.text != want.text && have.rev > want.rev {
		e.plan = have
	}
	e.update = store.Update{Key: key, If: []store.Cond{store.IfEqual(attrPlan, have.text)}}
	earliest := int64(never)
	for i := range e.plan.slots {
		from, to := &have.slots[i], &e.plan.slots[i]
		st, exists := readSlot(it, i)
		switch {
		case to.on && !exists:
			st = e.start(i, to, head, now)
		case to.on:
			st = e.move(i, from, to, st, head, now)
		case from.on && head: // removed: nothing is available any more
			e.add(slotAttr[i].available, -from.limit)
			st.available -= from.limit
		}
		if to.on {
			earliest = min(earliest, st.resets)
		}
		e.slots[i] = st
	}
	if have.text != e.plan.text {
		e.set(attrPlan, e.plan.text)
		e.set(attrRev, e.plan.rev)
	}
	if old := it.Int(attrResets.Attr); old != earliest {
		e.set(attrResets, earliest)
		e.update.If = append(e.update.If, store.IfEqual(attrResets, old))
	}
	u := &e.update
	e.changed = len(u.Set)+len(u.Add)+len(u.Remove) > 0
	return e
}

// start begins a slot that is new in the row. No open entry has an amount of it.
func (e *evolution) start(i int, to *slot, head bool, now time.Time) slotState {
	a := &slotAttr[i]
	st := slotState{resets: to.nextReset(now), last: to.resetAt}
	if head {
		st.available = to.limit
		e.set(a.flags, int64(0))
	}
	e.set(a.available, st.available)
	e.set(a.spent, int64(0))
	e.set(a.resets, st.resets)
	if st.last > 0 {
		e.set(a.last, st.last)
	}
	e.update.If = append(e.update.If, store.IfMissing(a.available))
	return st
}

// move changes the limit, rolls the period, resets, and clears alerts.
func (e *evolution) move(i int, from, to *slot, st slotState, head bool, now time.Time) slotState {
	a := &slotAttr[i]
	old := st
	if head {
		st.available += to.limit
		if from.on {
			st.available -= from.limit
		}
	}
	rolled := st.resets <= now.Unix()
	manual := to.resetAt > from.resetAt
	fresh := !from.on || to.setAt != from.setAt
	switch {
	case rolled || manual || fresh:
		st.available, st.spent, st.flags, st.demand = st.available+st.spent, 0, 0, demand{}
		st.last = lastReset(to, st, now, rolled && !fresh)
		st.resets = to.nextReset(now)
	case to.limit > from.limit:
		st.flags, st.demand.rejected = 0, 0
	case from.threshold > 0 && (to.threshold == 0 || to.threshold > from.threshold):
		st.flags &^= flagThreshold
	}
	if to.schedule != from.schedule {
		st.resets = to.nextReset(now)
	}
	e.add(a.available, st.available-old.available)
	e.add(a.spent, st.spent-old.spent)
	if st.resets != old.resets {
		e.set(a.resets, st.resets)
	}
	if st.resets != old.resets || st.spent != old.spent {
		e.update.If = append(e.update.If, store.IfEqual(a.resets, old.resets))
	}
	if st.spent < old.spent {
		// The values that were read are subtracted only once: another process, with another
		// clock or plan, may have rolled or reset the row since. More may have been spent, too.
		e.update.If = append(e.update.If, store.IfAtLeast(a.spent, old.spent))
	}
	if st.flags != old.flags && head {
		e.set(a.flags, st.flags)
		e.update.If = append(e.update.If, store.IfEqual(a.flags, old.flags))
	}
	if st.demand.admitted != old.demand.admitted {
		e.set(a.demand, st.demand.admitted)
	}
	if st.demand.rejected != old.demand.rejected {
		e.set(a.rejected, st.demand.rejected)
	}
	switch {
	case st.last == old.last:
	case st.last == 0:
		e.update.Remove = append(e.update.Remove, a.last)
	default:
		e.set(a.last, st.last)
	}
	return st
}

// lastReset returns when a restarted slot was reset: at the latest slot of its schedule
// when its period ended, or manually, whichever is later.
func lastReset(to *slot, st slotState, now time.Time, rolled bool) int64 {
	last := to.resetAt
	if rolled {
		ended := st.resets * 1000
		if t, ok := to.schedule.Last(now); ok {
			ended = max(ended, t.UnixMilli())
		}
		last = max(last, ended)
	}
	return last
}

func (e *evolution) set(p store.Path, v store.Value) {
	e.update.Set = append(e.update.Set, store.Assign{Path: p, Value: v})
}

func (e *evolution) add(p store.Path, by int64) {
	if by != 0 {
		e.update.Add = append(e.update.Add, store.Increment{Path: p, By: by})
	}
}

// errGone is returned if a row was deleted during its use.
var errGone = errors.New("ledger: the row was deleted")

// bring updates the stored row until it follows the effective plan, and returns the row
// and that plan. it is the row as last read.
func (l *rows) bring(ctx context.Context, key store.Key, it store.Item, want *plan) (store.Item, *plan, error) {
	for range attempts {
		now := l.clock()
		if it.String(attrPlan.Attr) == want.text && it.Int(attrResets.Attr) > now.Unix() {
			return it, want, nil // the condition of a reservation
		}
		e := evolve(key, it, want, now)
		if !e.changed {
			return it, e.plan, nil
		}
		_, after, err := l.spend.Update(ctx, e.update)
		if err == nil {
			return after, e.plan, nil
		}
		failed, ok := store.AsCondition(err)
		if !ok {
			return nil, want, err
		}
		if failed.Current == nil {
			return nil, want, errGone
		}
		it = failed.Current
	}
	return nil, want, store.ErrContended
}

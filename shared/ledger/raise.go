package ledger

import (
	"bytes"
	"context"
	"time"

	"gateway/shared/store"
)

// Raise extends the reservation to a larger bound, for a more expensive target or a
// continuing stream; it also renews the time after which repair would settle it, so a
// long session calls it at least every half of SettleAfter. If a budget is insufficient the
// reservation is unchanged or larger, and the fault is that of Reserve.
func (r *Reservation) Raise(ctx context.Context, b Bound) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled {
		return nil
	}
	b.Counted = r.counted
	if err := r.checkPriced(b); err != nil {
		return err
	}
	return r.each(func(p *part) error { return raise(r.l, ctx, p, r.request, b) })
}

// raise extends the part's entry to the bound, or renews it.
func raise(l *Ledger, ctx context.Context, p *part, request string, b Bound) error {
	want, need := p.demand(b)
	p.waive(&b, &want, &need)
	if p.id == "" {
		if want.zero() && need.zero() {
			return nil
		}
		return l.open(ctx, p, request, b, false)
	}
	for range attempts {
		now := l.base.clock()
		more := p.lacking(want)
		beyond := p.beyond(b, sum(p.entry.amounts, more))
		if more.zero() && beyond == p.entry.beyond && p.entry.due-now.Unix() > int64(SettleAfter/time.Second)/2 {
			return nil
		}
		u, e := raiseUpdate(p, more, beyond, now)
		w := newWriting(p.key)
		w.opens(p, now)
		u.Look = w.look
		w.u = u
		after, _, err := w.write(ctx, l.rows.spend)
		if err == nil {
			p.entry, p.value, p.unsure = e, e.encode(), amounts{}
			l.touched(ctx, p.key, after)
			return nil
		}
		failed, ok := store.AsCondition(err)
		if !ok {
			p.unsure = atLeast(p.unsure, e.amounts)
			return err
		}
		stored, open := failed.Current.Map(attrOpen)[p.id].([]byte)
		if !open || repairing(stored) { // repair was faster: an additional entry follows
			if err := p.repaired(stored); err != nil {
				return err
			}
			return l.open(ctx, p, request, b, false)
		}
		if !bytes.Equal(stored, entryBytes(p.value)) { // an earlier raise with a lost response
			known, err := decodeEntry(stored)
			if err != nil {
				return err
			}
			p.entry, p.value, p.unsure = known, stored, amounts{}
			continue
		}
		row := p.key // gather moves money into the row that has the entry
		left, err := resolve(l, ctx, p, failed.Current, more)
		if err != nil {
			return err
		}
		p.key = row
		if short := lacks(left, more); short >= 0 {
			within := sum(p.entry.amounts, p.charged)[short] > b.Charged.amounts()[short] // some of the entry's amount is unspent
			if !b.Assumed || left[short] <= 0 && !within {
				l.alarms.recordRejection(ctx, p, failed.Current, short, more[short])
				if p.subject.audits(short, &b) {
					p.waived[short] = true
					want[short] = p.entry.amounts[short]
					continue
				}
				return rejection(l, ctx, p, short, left[short], more[short], more[short])
			}
			want[short] -= more[short] - max(left[short], 0)
		}
	}
	return store.ErrContended
}

// repaired records that repair has settled the part's entry, or is about to. stored is
// the entry if it still exists. If it does not, and the response of a raise was lost, the
// raise counts as done: a request is never charged twice.
func (p *part) repaired(stored []byte) error {
	e := p.entry
	e.amounts = atLeast(e.amounts, p.unsure)
	if stored != nil {
		var err error
		if e, err = decodeEntry(stored); err != nil {
			return err
		}
	}
	p.settledByRepair(&e)
	p.id, p.value, p.unsure = "", nil, amounts{}
	return nil
}

// settledByRepair records an entry that repair has settled and reported.
func (p *part) settledByRepair(e *entry) {
	p.charged, p.reported = sum(p.charged, e.amounts), sum(p.reported, e.total())
}

// beyond returns the additional amount of an entry with these amounts, so that its
// record, together with those of entries that repair has settled, adds up to the
// request's bound.
func (p *part) beyond(b Bound, have amounts) (more amounts) {
	all := amounts{slotTokens: b.Tokens, slotRequests: b.requests()}
	if b.Priced {
		all[slotCost] = int64(b.Cost)
	}
	all = sum(all, sum(b.Charged.amounts(), b.Before.amounts()))
	for i := range all {
		more[i] = max(all[i]-p.reported[i]-have[i], 0)
	}
	return more
}

func atLeast(a, b amounts) amounts {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}

// lacking returns the growth of the entry that covers the wanted amounts.
func (p *part) lacking(want amounts) (more amounts) {
	for i := range want {
		if p.entry.slots&(1<<i) != 0 {
			more[i] = max(want[i]-p.entry.amounts[i], 0)
		}
	}
	return more
}

func raiseUpdate(p *part, more, beyond amounts, now time.Time) (store.Update, entry) {
	e := p.entry
	e.amounts, e.beyond, e.due = sum(e.amounts, more), beyond, dueAt(now)
	path := store.In(attrOpen, p.id)
	u := store.Update{Key: p.key, If: []store.Cond{store.IfEqual(path, p.value)}}
	for i, n := range more {
		if n > 0 {
			u.Add = append(u.Add, store.Increment{Path: slotAttr[i].available, By: -n})
			u.If = append(u.If, store.IfAtLeast(slotAttr[i].available, n))
		}
	}
	u.Set = []store.Assign{{Path: path, Value: e.encode()}}
	return u, e
}

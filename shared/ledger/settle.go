package ledger

import (
	"bytes"
	"context"

	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
)

func (r *Reservation) settle(ctx context.Context, final amounts) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return nil
	}
	if r.settled {
		final = r.final
	}
	r.settled, r.final = true, final
	late := detach(ctx)
	defer late.end()
	return settleParts(late, r, final)
}

func settleParts(ctx context.Context, r *Reservation, final amounts) error {
	return r.each(func(p *part) error {
		if p.done {
			return nil
		}
		if err := giveBack(r.l, ctx, p); err != nil {
			return err
		}
		rest := p.rest(p.plan.mask(final))
		if p.id == "" {
			if rest.zero() {
				p.done = true
				return nil
			}
			// Nothing was reserved. An entry is written first, because a charge with an
			// entry can be repeated, and repair charges it if this process dies.
			if err := r.l.open(ctx, p, r.request, chargeOf(final), true); err != nil {
				return err
			}
		}
		if _, err := r.l.close(ctx, p, p.key, p.id, p.value, p.rest(final)); err != nil {
			return err
		}
		p.done = true
		return nil
	})
}

// chargeOf returns the bound of a request that has ended.
func chargeOf(final amounts) Bound {
	return Bound{Cost: pricing.NanoDollars(final[slotCost]), Tokens: final[slotTokens], Priced: true}
}

// SettleEntry repeats the settlement of one entry of a record. It does nothing if the
// entry was settled before, by the request itself or by repair.
func (l *Ledger) SettleEntry(ctx context.Context, s usage.Settle) error {
	key, id, actual, err := parseSettlement(s)
	if err != nil {
		return err
	}
	value, err := openEntry(l, ctx, key, id)
	if err != nil {
		return closed(err)
	}
	if value == nil {
		return nil
	}
	if _, err = l.close(ctx, nil, key, id, value, actual); err != nil {
		return closed(err)
	}
	return nil
}

// openEntry returns an entry of a row; nil if it is not open. It avoids copying the entire row
// in memory.
func openEntry(l *Ledger, ctx context.Context, key store.Key, id string) (value []byte, err error) {
	if m, ok := l.rows.spend.(interface {
		Peek(store.Key, store.Path) ([]byte, bool)
	}); ok {
		if value, known := m.Peek(key, store.In(attrOpen, id)); known {
			return value, nil
		}
	}
	it, _, err := l.rows.spend.Get(ctx, key, true)
	value, _ = it.Map(attrOpen)[id].([]byte)
	return value, err
}

// closing is the result of close.
type closing int

const (
	entryAbsent   closing = iota // never written, or settled before
	entryRepairs                 // repair has started, and settles it at its bound
	entryRepaired                // repair has settled it
	entryUnknown                 // absent, and repair may have settled it
	entryClosed                  // its money has moved
)

// close removes an entry from its row and moves its money in the same update: the
// reserved amount returns to available, the used amount is added to spent. p is the part
// of the entry; nil if unknown.
func (l *Ledger) close(ctx context.Context, p *part, key store.Key, id string, value []byte, actual amounts) (closing, error) {
	for range attempts {
		e, _, err := decodeNumbers(value)
		if err != nil {
			return entryAbsent, err
		}
		if e.repairing {
			return entryRepairs, nil
		}
		w := newWriting(key)
		if p != nil {
			w.of(p)
		}
		w.settle(&l.alarms, actual)
		closeUpdate(&w.u, id, value, &e, actual)
		after, _, err := w.write(ctx, l.rows.spend, l.base.clock())
		if err == nil {
			l.alarms.alerts(ctx, key, after)
			l.base.failed(ctx, "balance the rows of a budget", l.rows.level(ctx, key, after))
			return entryClosed, nil
		}
		failed, ok := store.AsCondition(err)
		if !ok {
			return entryAbsent, err
		}
		stored, open := failed.Current.Map(attrOpen)[id].([]byte)
		if !open {
			return missing(failed.Current, id), nil
		}
		if bytes.Equal(stored, value) {
			return entryAbsent, nil
		}
		value = stored
	}
	return entryAbsent, store.ErrContended
}

func closeUpdate(u *store.Update, id string, value []byte, e *entry, actual amounts) {
	u.Remove = append(u.Remove, store.In(attrOpen, id))
	u.If = append(u.If, store.IfEqual(store.In(attrOpen, id), value))
	for i := range actual {
		if e.slots&(1<<i) == 0 {
			continue
		}
		if back := e.amounts[i] - actual[i]; back != 0 {
			u.Add = append(u.Add, store.Increment{Path: slotAttr[i].available, By: back})
		}
		if actual[i] != 0 {
			u.Add = append(u.Add, store.Increment{Path: slotAttr[i].spent, By: actual[i]})
		}
	}
}

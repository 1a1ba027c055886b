package ledger

import (
	"context"

	"gateway/shared/store"
)

// demand records how much of a slot requests needed in this period. A request is rejected
// by its bound before the limit is reached, so spending may never reach the limit; these
// numbers show that the budget is exhausted anyway.
type demand struct {
	admitted int64 // need of the last admitted request; 0 if none
	rejected int64 // need of the first request rejected for insufficient budget; 0 if none
}

type asks [numSlots]demand

// exhausted reports whether a typical request cannot be admitted any more: less is left
// than the last admitted request needed, and a request was rejected for that. A request
// that is rejected only because it is larger than others does not exhaust a budget, nor
// does the first of its period. left is the limit minus the spending, since open
// reservations may be released. A request with an assumed bound passes while anything is
// left, so it needs 1.
func (a demand) exhausted(left int64) bool { return left <= 0 || a.rejected > 0 && a.short(left) }

// short reports whether less is left than the last admitted request needed.
func (a demand) short(left int64) bool { return left <= 0 || left < a.admitted }

// and combines the demand of two rows: the minimum of each.
func (a demand) and(b demand) demand {
	if a.admitted == 0 || b.admitted > 0 && b.admitted < a.admitted {
		a.admitted = b.admitted
	}
	if a.rejected == 0 || b.rejected > 0 && b.rejected < a.rejected {
		a.rejected = b.rejected
	}
	return a
}

func readAsk(it store.Item, i int) demand {
	return demand{it.Int(slotAttr[i].asked.Attr), it.Int(slotAttr[i].refused.Attr)}
}

func asksOf(it store.Item) (all asks) {
	for i := range all {
		all[i] = readAsk(it, i)
	}
	return all
}

func (v *view) asks() (all asks) {
	for _, row := range v.rows {
		for i, a := range asksOf(row) {
			all[i] = all[i].and(a)
		}
	}
	return all
}

// recordRejection stores in the row, once per period, that a request was rejected
// although it was of a typical size, and sends the alert if that exhausts the budget.
// seen is the row as last read. The request is rejected whether or not this can be
// written.
func (l *alarms) recordRejection(ctx context.Context, p *part, seen store.Item, slot int, need int64) {
	a := &slotAttr[slot]
	if seen == nil || seen.Int(a.refused.Attr) > 0 || p.plan.slots[slot].limit <= 0 {
		return
	}
	head := headOf(p.key)
	v := &view{keys: []store.Key{p.key}, rows: []store.Item{seen}}
	if p.key != head || seen.Int(attrRows.Attr) > 1 {
		var err error
		if v, err = l.view(ctx, head); err != nil || v == nil {
			l.failed(ctx, "look for alerts", err)
			return
		}
	}
	if !v.asks()[slot].short(p.plan.slots[slot].limit - v.spent()[slot]) {
		return
	}
	_, row, err := l.spend.Update(ctx, store.Update{
		Key: p.key,
		Set: []store.Assign{{Path: a.refused, Value: need}},
		If:  []store.Cond{store.IfEqual(attrPlan, p.plan.text), store.IfHas(a.available)},
	})
	if _, changed := store.AsCondition(err); changed {
		return // the next rejection records it
	}
	if err != nil {
		l.failed(ctx, "note a refusal", err)
		return
	}
	if l.hooks.Alert == nil {
		return
	}
	if len(v.rows) == 1 {
		l.check(ctx, head, row, spentOf(row), asksOf(row))
		return
	}
	asks := v.asks()
	asks[slot] = asks[slot].and(demand{rejected: need})
	l.check(ctx, head, v.rows[0], v.spent(), asks)
}

package ledger

import (
	"context"

	"gateway/shared/store"
)

// ask is what requests asked of a slot in this period. A request is refused by its bound
// before the limit is reached, so spending may never reach the limit; these numbers tell
// that the budget is exhausted all the same.
type ask struct {
	asked   int64 // need of the last request that was let through; 0: none was
	refused int64 // need of the first request that was refused; 0: none was
}

type asks [numSlots]ask

// exhausted tells that nothing is left which a usual request could use: a request was
// refused, and less is left than the last admitted one needed (or, if none was admitted,
// than the refused one). A single refused request that is far larger than others does not
// exhaust a budget. left is the limit less what is spent, since what open requests hold may
// come back. A request with an assumed bound passes while anything is left, so it needs 1.
func (a ask) exhausted(left int64) bool {
	usual := a.asked
	if usual == 0 {
		usual = a.refused
	}
	return left <= 0 || a.refused > 0 && left < usual
}

// and is that of two rows: the least that was asked for.
func (a ask) and(b ask) ask {
	if a.asked == 0 || b.asked > 0 && b.asked < a.asked {
		a.asked = b.asked
	}
	if a.refused == 0 || b.refused > 0 && b.refused < a.refused {
		a.refused = b.refused
	}
	return a
}

func readAsk(it store.Item, i int) ask {
	return ask{it.Int(slotAttr[i].asked.Attr), it.Int(slotAttr[i].refused.Attr)}
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

// noteRefusal keeps in the row, once per period, that a request was refused, and
// gives the alert if the budget is exhausted by that. seen is the row as it was
// last read. The request is refused whether or not this can be written.
func (l *alarms) noteRefusal(ctx context.Context, p *part, seen store.Item, slot int, need int64) {
	a := &slotAttr[slot]
	if seen == nil || seen.Int(a.refused.Attr) > 0 || p.plan.slots[slot].limit <= 0 {
		return
	}
	_, row, err := l.spend.Update(ctx, store.Update{
		Key: p.key,
		Set: []store.Assign{{Path: a.refused, Value: need}},
		If:  []store.Cond{store.IfEqual(attrPlan, p.plan.text), store.IfHas(a.available)},
	})
	if _, changed := store.AsCondition(err); changed {
		return // the next refusal notes it
	}
	if err != nil {
		l.failed(ctx, "note a refusal", err)
		return
	}
	if l.hooks.Alert == nil {
		return
	}
	head := headOf(p.key)
	if p.key == head && row.Int(attrRows.Attr) <= 1 {
		l.check(ctx, head, row, spentOf(row), asksOf(row))
		return
	}
	v, err := l.view(ctx, head)
	if err != nil || v == nil {
		l.failed(ctx, "look for alerts", err)
		return
	}
	l.check(ctx, head, v.rows[0], v.spent(), v.asks())
}

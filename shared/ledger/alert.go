package ledger

import (
	"context"
	"time"

	"gateway/shared/store"
)

// Alert reports that a budget crossed its threshold or is exhausted.
type Alert struct {
	Scope            store.Scope
	Kind, ID, Bucket string // the subject
	Budget           Measure
	Exhausted        bool // otherwise the threshold was crossed
	Limit, Threshold int64
	Usage            int64 // in this period, in the measure's units
	PeriodEnd        time.Time
}

// alerts returns the alerts that are due after a charge.
func (l *alarms) alerts(ctx context.Context, key store.Key, after glance) {
	if !after.alert {
		return
	}
	head := headOf(key)
	v, err := l.view(ctx, head)
	if err != nil || v == nil {
		l.failed(ctx, "check for alerts", err)
		return
	}
	l.check(ctx, head, v.rows[0], v.spent(), v.demands())
}

// reviewDue reports whether a charge to one of several rows is a reason to add up all of
// them: when the row has too little left for a request, and whenever it has spent another
// 1/512 of the threshold or the limit. With 8 shards an alert is late by at most 1/64 of it,
// with 64 shards by 1/8.
func reviewDue(row store.Item, charged amounts) bool {
	p := rowPlan(row)
	for i := range p.slots {
		s := &p.slots[i]
		if !s.on || charged[i] <= 0 {
			continue
		}
		if readDemand(row, i).exhausted(row.Int(slotAttr[i].available.Attr)) {
			return true
		}
		step := s.limit / 512
		if s.threshold > 0 {
			step = s.threshold / 512
		}
		step = max(step, 1)
		if spent := row.Int(slotAttr[i].spent.Attr); spent/step != (spent-charged[i])/step {
			return true
		}
	}
	return false
}

// spent sums the spending of the rows of the head's period.
func (v *view) spent() (total amounts) {
	for i := range total {
		a := &slotAttr[i]
		for _, row := range v.rows {
			if row.Int(a.resets.Attr) == v.rows[0].Int(a.resets.Attr) {
				total[i] += row.Int(a.spent.Attr)
			}
		}
	}
	return total
}

// check returns the alerts that are due and were not sent in this period.
func (l *alarms) check(ctx context.Context, head store.Key, row store.Item, spent amounts, needs demands) {
	p := rowPlan(row)
	for i := range p.slots {
		flags := row.Int(slotAttr[i].flags.Attr) // of alerts sent in this period
		if due := p.slots[i].due(spent[i], needs[i]); due&^flags != 0 {
			l.failed(ctx, "send an alert", l.alert(ctx, head, row, p, i, spent[i], flags, flags|due))
		}
	}
}

// due returns the flags of the alerts that the spending of a slot requires.
func (s *slot) due(spent int64, a demand) (flags int64) {
	if s.on && s.threshold > 0 && spent >= s.threshold {
		flags |= flagThreshold
	}
	if s.on && a.exhausted(s.limit-spent) {
		flags |= flagExhausted
	}
	return flags
}

// alert sets the flags, which only one of several callers can, and then sends the alerts.
func (l *alarms) alert(ctx context.Context, head store.Key, it store.Item, p *plan, i int, spent, old, flags int64) error {
	a, s := &slotAttr[i], &p.slots[i]
	resets := it.Int(a.resets.Attr)
	_, _, err := l.spend.Update(ctx, store.Update{
		Key: head,
		Set: []store.Assign{{Path: a.flags, Value: flags}},
		If:  []store.Cond{store.IfEqual(a.flags, old), store.IfEqual(attrPlan, p.text), store.IfEqual(a.resets, resets)},
	})
	if _, lost := store.AsCondition(err); lost {
		return nil // another settlement sent it, or the period is over
	}
	if err != nil {
		return err
	}
	for _, flag := range []int64{flagThreshold, flagExhausted} {
		if flags&^old&flag == 0 {
			continue
		}
		err := l.hooks.Alert(ctx, Alert{
			Scope: store.Scope{Org: it.String("org"), Workspace: it.String("workspace")},
			Kind:  it.String("kind"), ID: it.String("id"), Bucket: it.String("bucket"),
			Budget: slotMeasure[i], Exhausted: flag == flagExhausted,
			Limit: s.limit, Threshold: s.threshold, Usage: spent, PeriodEnd: periodEnd(resets),
		})
		if err != nil {
			_, _, undo := l.spend.Update(ctx, store.Update{
				Key: head,
				Set: []store.Assign{{Path: a.flags, Value: flags &^ flag}},
				If:  []store.Cond{store.IfEqual(a.flags, flags), store.IfEqual(a.resets, resets)},
			})
			l.failed(ctx, "reset an alert flag", undo)
			return err
		}
	}
	return nil
}

func periodEnd(resets int64) time.Time {
	if resets >= never {
		return time.Time{}
	}
	return time.Unix(resets, 0).UTC()
}

func spentOf(it store.Item) (a amounts) {
	for i := range a {
		a[i] = it.Int(slotAttr[i].spent.Attr)
	}
	return a
}

// demand records how much of a slot requests needed in this period. A request is rejected
// by its bound before the limit is reached, so spending may never reach the limit; these
// numbers show that the budget is exhausted anyway.
type demand struct {
	admitted int64 // need of the last admitted request; 0 if none
	rejected int64 // need of the first request rejected for insufficient budget; 0 if none
}

type demands [numSlots]demand

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

func readDemand(it store.Item, i int) demand {
	return demand{it.Int(slotAttr[i].demand.Attr), it.Int(slotAttr[i].rejected.Attr)}
}

func demandsOf(it store.Item) (all demands) {
	for i := range all {
		all[i] = readDemand(it, i)
	}
	return all
}

func (v *view) demands() (all demands) {
	for _, row := range v.rows {
		for i, a := range demandsOf(row) {
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
	if seen == nil || seen.Int(a.rejected.Attr) > 0 || p.plan.slots[slot].limit <= 0 {
		return
	}
	head := headOf(p.key)
	v := &view{keys: []store.Key{p.key}, rows: []store.Item{seen}}
	if p.key != head || seen.Int(attrRows.Attr) > 1 {
		var err error
		if v, err = l.view(ctx, head); err != nil || v == nil {
			l.failed(ctx, "check for alerts", err)
			return
		}
	}
	if !v.demands()[slot].short(p.plan.slots[slot].limit - v.spent()[slot]) {
		return
	}
	_, row, err := l.spend.Update(ctx, store.Update{
		Key: p.key,
		Set: []store.Assign{{Path: a.rejected, Value: need}},
		If:  []store.Cond{store.IfEqual(attrPlan, p.plan.text), store.IfHas(a.available)},
	})
	if _, changed := store.AsCondition(err); changed {
		return // the next rejection records it
	}
	if err != nil {
		l.failed(ctx, "record a rejection", err)
		return
	}
	if l.hooks.Alert == nil {
		return
	}
	if len(v.rows) == 1 {
		l.check(ctx, head, row, spentOf(row), demandsOf(row))
		return
	}
	needs := v.demands()
	needs[slot] = needs[slot].and(demand{rejected: need})
	l.check(ctx, head, v.rows[0], v.spent(), needs)
}

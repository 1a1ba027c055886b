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
		l.failed(ctx, "look for alerts", err)
		return
	}
	l.check(ctx, head, v.rows[0], v.spent(), v.asks())
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
		if readAsk(row, i).exhausted(row.Int(slotAttr[i].available.Attr)) {
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
func (l *alarms) check(ctx context.Context, head store.Key, row store.Item, spent amounts, asks asks) {
	p := rowPlan(row)
	for i := range p.slots {
		flags := row.Int(slotAttr[i].flags.Attr) // of alerts sent in this period
		if due := p.slots[i].due(spent[i], asks[i]); due&^flags != 0 {
			l.failed(ctx, "give an alert", l.alert(ctx, head, row, p, i, spent[i], flags, flags|due))
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
			l.failed(ctx, "take back an alert flag", undo)
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

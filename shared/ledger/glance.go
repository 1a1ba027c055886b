package ledger

import (
	"context"
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

// write makes an update of a spend row and glances at the result. charged is what it adds to
// what the row has spent; nil if it settles nothing, and then no alert is due.
func (l *alarms) write(ctx context.Context, u store.Update, charged *amounts, now time.Time) (after glance, err error) {
	u.Look = func(row store.Item) { after = l.glance(u.Key, row, charged, now.Unix()) }
	_, _, err = l.spend.Update(ctx, u)
	return after, err
}

func (l *alarms) glance(key store.Key, row store.Item, charged *amounts, now int64) glance {
	if row == nil {
		return glance{}
	}
	open := row.Map(attrOpen)
	g := glance{shards: row.Int(attrShards.Attr), open: len(open), several: !isHead(key) || row.Int(attrRows.Attr) > 1}
	for _, v := range open {
		value, _ := v.([]byte)
		if g.overdue = entryPast(value, now); g.overdue {
			break
		}
	}
	g.overdrawn = g.several && overdrawn(row)
	if l.hooks.Alert == nil || charged == nil {
		return g
	}
	if g.several {
		g.alert = reviewDue(row, *charged)
		return g
	}
	p, spent, asks := rowPlan(row), spentOf(row), asksOf(row)
	for i := range p.slots {
		given, due := dueAlerts(p, i, row, spent, asks)
		g.alert = g.alert || due&^given != 0
	}
	return g
}

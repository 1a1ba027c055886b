package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sort"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/store"
)

// Unconfirmed is an entry that was not settled in time, so it is settled at its bound.
// Each subject of the request has one entry per turn; those of the same turn are equal
// and become one record. In turn 0 the record has the request's id, so that a late record
// of the request itself is recognized as the same. Further turns, which were charged to a
// subject's budgets in addition, have separate ids.
type Unconfirmed struct {
	RequestID        string
	Entry            string // id of this report, the same in repeated ones
	Turn             int    // of the subject's entries of the request: 0 the first, 1 the second
	Scope            store.Scope
	Kind, ID, Bucket string              // the subject; a request with several has one entry for each
	Cost             pricing.NanoDollars // of the request, whether or not the subject has a budget for it
	Tokens           int64               // the same
	Requests         int64               // the same
	Reserved         time.Time           // when it was reserved or last raised

	charged amounts // charge of the subject's budgets
}

// repairBatch is the number of entries that one update settles.
const repairBatch = 8

type overdue struct {
	id    string
	value []byte
	entry entry
}

// touched maintains the row that a request has just written: it repairs entries past due,
// and splits a row that grew too large. A failure of either does not fail the request.
func (l *Ledger) touched(ctx context.Context, key store.Key, after glance) {
	if after.shards > 0 {
		l.rows.learn(key, after.shards)
	}
	if after.open > l.rows.splitAbove {
		l.base.failed(ctx, "split a budget", l.rows.split(ctx, headOf(key)))
	}
	if !after.overdue {
		return
	}
	row, _, err := l.rows.spend.Get(ctx, key, true)
	if err == nil {
		_, err = repair(l, ctx, key, row)
	}
	l.base.failed(ctx, "repair a budget", err)
}

// repair settles the row's entries past due at their bound. It first marks them, after
// which no other settlement has an effect; then reports them; then moves their money. A
// failed step is repeated at the next update.
func repair(l *Ledger, ctx context.Context, key store.Key, row store.Item) (settled int, err error) {
	now := l.base.clock().Unix()
	var due []overdue
	for id, v := range row.Map(attrOpen) {
		value, _ := v.([]byte)
		if !entryPast(value, now) {
			continue
		}
		e, err := decodeEntry(value)
		if err != nil {
			return 0, err
		}
		due = append(due, overdue{id, value, e})
	}
	// The longest overdue come first, so that the choice does not depend on the map's
	// order.
	sort.Slice(due, func(i, j int) bool {
		return cmp.Or(cmp.Compare(due[i].entry.due, due[j].entry.due), bytes.Compare(due[i].value, due[j].value)) < 0
	})
	for len(due) > 0 {
		n := min(len(due), repairBatch)
		done, err := repairSome(l, ctx, key, row, due[:n], n == len(due))
		settled += done
		if err != nil {
			return settled, err
		}
		due = due[n:]
	}
	return settled, nil
}

// repairSome repairs a batch of entries. latest marks the batch of those that became due last;
// their requests may still need the result.
func repairSome(l *Ledger, ctx context.Context, key store.Key, row store.Item, due []overdue, latest bool) (int, error) {
	err := mark(l, ctx, key, due)
	if _, changed := store.AsCondition(err); changed {
		if len(due) == 1 {
			return 0, nil // settled, raised or repaired concurrently
		}
		total := 0
		for i := range due {
			n, err := repairSome(l, ctx, key, row, due[i:i+1], latest)
			total += n
			if err != nil {
				return total, err
			}
		}
		return total, nil
	}
	if err != nil {
		return 0, err
	}
	for _, o := range due {
		if err := report(l, ctx, row, o); err != nil {
			return 0, err
		}
	}
	u := store.Update{Key: key}
	for _, o := range due {
		path := store.In(attrOpen, o.id)
		u.Remove = append(u.Remove, path)
		u.If = append(u.If, store.IfEqual(path, o.value))
	}
	if latest {
		leaveTraces(&u, row, due, l.base.clock())
	}
	var total amounts
	for _, o := range due {
		total = sum(total, o.entry.amounts)
	}
	for i, n := range total {
		if n > 0 {
			u.Add = append(u.Add, store.Increment{Path: slotAttr[i].spent, By: n})
		}
	}
	w := newWriting(key)
	u.Look = w.look
	w.u = u
	w.settle(&l.alarms, nil, total)
	after, _, err := w.write(ctx, l.rows.spend)
	if _, changed := store.AsCondition(err); changed {
		return 0, nil // another repair was faster
	}
	if err != nil {
		return 0, err
	}
	l.alarms.alerts(ctx, key, after)
	return len(due), nil
}

// mark flags entries as being repaired, if they are not yet.
func mark(l *Ledger, ctx context.Context, key store.Key, due []overdue) error {
	u := store.Update{Key: key}
	marked := make([][]byte, len(due))
	for i := range due {
		o := &due[i]
		marked[i] = o.value
		if o.entry.repairing {
			continue
		}
		e := o.entry
		e.repairing = true
		marked[i] = e.encode()
		path := store.In(attrOpen, o.id)
		u.Set = append(u.Set, store.Assign{Path: path, Value: marked[i]})
		u.If = append(u.If, store.IfEqual(path, o.value))
	}
	if len(u.Set) > 0 {
		if _, _, err := l.rows.spend.Update(ctx, u); err != nil {
			return err
		}
	}
	for i := range due {
		due[i].value, due[i].entry.repairing = marked[i], true
	}
	return nil
}

func report(l *Ledger, ctx context.Context, row store.Item, o overdue) error {
	if l.base.hooks.Unconfirmed == nil {
		return nil
	}
	e := &o.entry
	whole := e.total()
	return l.base.hooks.Unconfirmed(ctx, Unconfirmed{
		RequestID: e.request, Entry: o.id, Turn: e.turn, charged: e.amounts,
		Scope: store.Scope{Org: row.String("org"), Workspace: row.String("workspace")},
		Kind:  row.String("kind"), ID: row.String("id"), Bucket: row.String("bucket"),
		Cost: pricing.NanoDollars(whole[slotCost]), Tokens: whole[slotTokens], Requests: whole[slotRequests],
		Reserved: time.Unix(e.due, 0).Add(-SettleAfter).UTC(),
	})
}

func repairing(value []byte) bool { return len(value) > 0 && value[0]&entryRepairing != 0 }

// The list of all heads, for RepairAll: rows of a system partition, spread over listParts
// partitions. The sort key is that of the head's row.
const listParts = 16

func listPartition(i uint32) store.Partition {
	return store.System(fmt.Sprintf("SPEND#%02d", i%listParts))
}

func listing(head store.Key) store.Row {
	h := fnv.New32a()
	h.Write([]byte(head.PK()))
	h.Write([]byte(head.SK()))
	return store.Row{
		Key:  listPartition(h.Sum32()).Key(head.PK() + "|" + head.SK()),
		Item: store.Item{"head_pk": head.PK(), "head_sk": head.SK()},
	}
}

// Repaired is the result of RepairAll.
type Repaired struct {
	Heads   int // visited
	Settled int // entries settled at their bound
	Shrunk  int // heads with shards that were merged back
}

// RepairAll visits all heads: it settles entries past due, and merges shards that are not
// needed any more. It continues after an error of one head and returns the first; the
// next pass does the rest.
func (l *Ledger) RepairAll(ctx context.Context) (done Repaired, err error) {
	for i := range uint32(listParts) {
		for row, qerr := range store.Rows(ctx, l.rows.spend, store.Query{Partition: listPartition(i)}) {
			if qerr == nil {
				qerr = ctx.Err()
			}
			if qerr != nil {
				return done, errors.Join(err, qerr)
			}
			head := store.RawKey(row.Item.String("head_pk"), row.Item.String("head_sk"))
			if herr := repairHead(l, ctx, head, &done); herr != nil && err == nil {
				err = herr
			}
		}
	}
	return done, err
}

func repairHead(l *Ledger, ctx context.Context, head store.Key, done *Repaired) error {
	v, err := l.rows.view(ctx, head)
	if err != nil || v == nil {
		return err
	}
	done.Heads++
	open := 0
	for i, row := range v.rows {
		n, err := repair(l, ctx, v.keys[i], row)
		done.Settled += n
		if err != nil {
			return err
		}
		open += len(row.Map(attrOpen)) - n
	}
	if l.base.hooks.Alert != nil && len(v.rows) > 1 { // settlements of shards check only occasionally
		l.alarms.check(ctx, head, v.rows[0], v.spent(), v.demands())
	}
	if shards := v.rows[0].Int(attrShards.Attr); shards > 1 && open <= l.rows.splitAbove/4 {
		_, _, err := l.rows.spend.Update(ctx, store.Update{
			Key: head,
			Set: []store.Assign{{Path: attrShards, Value: int64(1)}},
			If:  []store.Cond{store.IfEqual(attrShards, shards)},
		})
		if _, raced := store.AsCondition(err); raced {
			return nil
		}
		if err != nil {
			return err
		}
		l.rows.shards.set(head, 1)
		done.Shrunk++
	}
	if v.rows[0].Int(attrRows.Attr) > v.rows[0].Int(attrShards.Attr) || done.Shrunk > 0 {
		return l.rows.drain(ctx, head, rowPlan(v.rows[0]))
	}
	return nil
}

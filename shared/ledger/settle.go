package ledger

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

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
	to := &r.late
	if to.caller != nil { // a store may still use it
		to = new(late)
	}
	to.detach(ctx)
	defer to.end()
	return settleParts(to, r, final)
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
// whose present entry it is; nil if unknown.
func (l *Ledger) close(ctx context.Context, p *part, key store.Key, id string, value store.Value, actual amounts) (closing, error) {
	for try := range attempts {
		var of *plan
		var e entry
		if p != nil {
			of, e = p.plan, p.entry
		}
		if p == nil || try > 0 {
			var err error
			if e, _, err = decodeNumbers(entryBytes(value)); err != nil {
				return entryAbsent, err
			}
		}
		if e.repairing {
			return entryRepairs, nil
		}
		w := newWriting(key)
		w.settle(&l.alarms, of, actual)
		closeUpdate(&w.u, id, value, &e, actual)
		after, _, err := w.write(ctx, l.rows.spend)
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
		if bytes.Equal(stored, entryBytes(value)) {
			return entryAbsent, nil
		}
		value = stored
	}
	return entryAbsent, store.ErrContended
}

func closeUpdate(u *store.Update, id string, value store.Value, e *entry, actual amounts) {
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

// Repair leaves a trace of the entries that it settles, so that a process that wrote an
// entry without receiving the result can distinguish a repaired entry from one that was
// never written, regardless of the clocks of the two processes.
const (
	maxTraces = 8 // per row; more than a row needs unless many processes died simultaneously
	traceLife = 24 * time.Hour
)

func tracePath(id string) store.Path { return store.At(attrTrace + id) }

// leaveTraces adds the traces of entries to the update that settles them, and removes
// those of the row that are old or excessive.
func leaveTraces(u *store.Update, row store.Item, due []overdue, now time.Time) {
	old := tracesOf(row)
	slices.SortFunc(old, func(a, b string) int { return cmp.Or(cmp.Compare(row.Int(a), row.Int(b)), strings.Compare(a, b)) })
	for len(old) > 0 && (len(old)+len(due) > maxTraces || row.Int(old[0]) <= now.Add(-traceLife).Unix()) {
		u.Remove = append(u.Remove, store.At(old[0]))
		old = old[1:]
	}
	for _, o := range due {
		u.Set = append(u.Set, store.Assign{Path: tracePath(o.id), Value: now.Unix()})
	}
}

func tracesOf(row store.Item) (names []string) {
	for name := range row {
		if strings.HasPrefix(name, attrTrace) {
			names = append(names, name)
		}
	}
	return names
}

// missing returns why a row does not have an entry that only repair may have settled.
func missing(row store.Item, id string) closing {
	if row == nil {
		return entryUnknown
	}
	if _, traced := row[attrTrace+id]; traced {
		return entryRepaired
	}
	if len(tracesOf(row)) >= maxTraces {
		return entryUnknown
	}
	return entryAbsent
}

// late is a context that outlives the caller's, for a limited time: money must be settled
// and counts given back although the client has disconnected. It has a timer only if a
// goroutine waits for its end.
type late struct {
	caller   context.Context
	deadline time.Time

	mu     sync.Mutex
	timed  context.Context // nil until it is first waited for
	cancel context.CancelFunc
}

func detach(ctx context.Context) *late {
	c := new(late)
	c.detach(ctx)
	return c
}

func (c *late) detach(ctx context.Context) {
	c.caller, c.deadline = ctx, time.Now().Add(settleTime)
}

// end releases the timer.
func (c *late) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *late) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *late) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadline(context.WithoutCancel(c.caller), c.deadline)
	}
	return c.timed.Done()
}

func (c *late) Err() error {
	if time.Now().Before(c.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value delegates to the timed context if there is one, so that derived contexts find the
// timer.
func (c *late) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed != nil {
		return c.timed.Value(key)
	}
	return c.caller.Value(key)
}

// doubtful is an entry that may have been written although the store reported an error,
// and that could not be given back immediately.
type doubtful struct {
	key   store.Key
	id    string
	value store.Value
	entry entry
	// forced marks an entry that was written for a charge; see open.
	forced bool
}

// undo gives back an entry that may have been written although the store reported an
// error. If that is unknown, the part retains the entry: the request must not hold, or be
// charged for, the same amount twice.
func undo(l *Ledger, ctx context.Context, p *part, d doubtful, cause error) {
	if errors.Is(cause, store.ErrThrottled) || errors.Is(cause, store.ErrContended) {
		return
	}
	p.lost = append(p.lost, d)
	late := detach(ctx)
	defer late.end()
	l.base.failed(late, "return a reservation", giveBack(l, late, p))
}

// giveBack settles the part's doubtful entries to zero. One that repair has settled, or
// may have, counts as charged.
func giveBack(l *Ledger, ctx context.Context, p *part) error {
	for len(p.lost) > 0 {
		d := &p.lost[0]
		met, err := l.close(ctx, nil, d.key, d.id, d.value, amounts{})
		if err != nil {
			return err
		}
		if met == entryRepairs || met == entryRepaired || met == entryUnknown && entryPast(entryBytes(d.value), l.base.clock().Unix()) {
			p.settledByRepair(&d.entry)
		}
		p.lost = p.lost[1:]
	}
	return nil
}

package ledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Bound is the most that a request can use.
type Bound struct {
	Cost   pricing.NanoDollars
	Priced bool // false: the model has no price, and Cost says nothing
	Tokens int64
	// Assumed says that the bound is a guess, because the request states no
	// limit on its output. Such a request is let through while anything is
	// available, and reserves what is left of its bound.
	Assumed bool
}

// Reservation is what a request holds of budgets until it is settled. The nil
// Reservation, that of a request without budgets, is ready to use.
type Reservation struct {
	l       *Ledger
	request string
	parts   []*part // in the documented order

	mu      sync.Mutex
	settled bool // Settle or Release was called: final holds
	final   amounts
}

// part is the share of one subject.
type part struct {
	subject *Subject
	plan    *plan
	key     store.Key // of the row that holds the entry
	id      string    // of the entry; empty: none
	value   []byte    // the entry as this process wrote it last
	entry   entry
	unsure  amounts // what the entry may hold: a raise whose answer was lost
	charged amounts // by entries of this request that repair has settled
	done    bool
}

// Reserve takes the bound from every budget of the subjects: one conditional
// update per budgeted subject, in parallel. When one has not enough, the others
// are given back and the fault (412) names the first in the documented order.
// A budget of which the request uses nothing is not touched: a free request
// passes an exhausted cost budget. A model without a price and a cost budget
// give fault.UnpricedModel unless the subject allows it. A store that does not
// answer gives 503.
//
// requestID is reported if nobody settles the reservation; use the record's id.
func (l *Ledger) Reserve(ctx context.Context, requestID string, subjects []*Subject, b Bound) (*Reservation, error) {
	budgeted := false
	for _, s := range subjects {
		budgeted = budgeted || s != nil && len(s.Budgets) > 0
	}
	if !budgeted {
		return nil, nil
	}
	r := &Reservation{l: l, request: requestID}
	for _, s := range inOrder(subjects, func(s *Subject) bool { return s.derive().plan.any }) {
		r.parts = append(r.parts, &part{subject: s, plan: s.derive().plan})
	}
	if err := r.priced(b); err != nil {
		return nil, err
	}
	err := r.each(func(p *part) error {
		if want, need := p.demand(b); want.zero() && need.zero() {
			return nil
		}
		return l.open(ctx, p, requestID, b, false)
	})
	if err != nil {
		_ = r.Release(ctx) // repair settles what could not be given back
		return nil, err
	}
	return r, nil
}

// Raise makes the reservation cover a larger bound, for a dearer target or a
// stream that goes on; it also renews the time after which repair would settle
// it, so a long session calls it at least every half of Due. When a budget has
// not enough the reservation stays as it is or larger, and the fault is that of
// Reserve.
func (r *Reservation) Raise(ctx context.Context, b Bound) error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled {
		return nil
	}
	if err := r.priced(b); err != nil {
		return err
	}
	return r.each(func(p *part) error { return r.l.raise(ctx, p, r.request, b) })
}

// Settle replaces the reserved bound by what the request cost: once, with the
// sum over its attempts. It counts one request. It is idempotent: after an error
// it may be called again, with the same amounts; a second success does nothing.
// It goes on, for a bounded time, when ctx is cancelled.
func (r *Reservation) Settle(ctx context.Context, cost pricing.NanoDollars, tokens int64) error {
	return r.settle(ctx, amounts{slotCost: max(int64(cost), 0), slotTokens: max(tokens, 0), slotRequests: 1})
}

// Release settles to nothing: for a request that failed before it was sent.
func (r *Reservation) Release(ctx context.Context) error { return r.settle(ctx, amounts{}) }

// Entries names the open entries with the amounts they were settled at, for the
// record, whose reader repeats the settle by SettleEntry. It is nil before
// Settle.
func (r *Reservation) Entries() []usage.Settle {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settled {
		return nil
	}
	var out []usage.Settle
	for _, p := range r.parts {
		if p.id != "" {
			out = append(out, settlement(p.key, p.id, p.rest(r.final)))
		}
	}
	return out
}

// each runs f for all parts concurrently; the first error in order counts.
func (r *Reservation) each(f func(*part) error) error {
	errs := make([]error, len(r.parts))
	each(len(r.parts), func(i int) { errs[i] = f(r.parts[i]) })
	var refused *fault.Fault
	for _, err := range errs { // a refusal says more than a store that failed
		if errors.As(err, &refused) && refused.Code == fault.BudgetExhausted {
			return refused
		}
	}
	for _, err := range errs {
		if err != nil {
			return closed(err)
		}
	}
	return nil
}

func (r *Reservation) priced(b Bound) error {
	if b.Priced {
		return nil
	}
	for _, p := range r.parts {
		if p.plan.slots[slotCost].on && p.subject.Unpriced != UnpricedAllow {
			return fault.Newf(fault.UnpricedModel, "model", "The model has no price and %s has a cost budget: give the model a price, or allow models without one (unpriced: allow)", p.subject.name())
		}
	}
	return nil
}

// demand is what the bound takes from the part's budgets, and what must be
// available. They differ for a model without a price: it takes nothing, but
// does not pass an exhausted budget.
func (p *part) demand(b Bound) (want, need amounts) {
	want = amounts{slotTokens: max(b.Tokens, 0), slotRequests: 1}
	if b.Priced {
		want[slotCost] = max(int64(b.Cost), 0)
	}
	want = p.rest(p.plan.mask(want))
	need = want
	if !b.Priced && p.plan.slots[slotCost].on {
		need[slotCost] = 1
	}
	return want, need
}

// rest is what is still to be settled of the request's amounts when earlier
// entries of it were settled by repair.
func (p *part) rest(final amounts) amounts {
	for i := range final {
		final[i] = max(final[i]-p.charged[i], 0)
	}
	return final
}

// open writes an entry with what the bound takes. A forced entry takes nothing
// and needs nothing: it stands for a charge that was not foreseen.
func (l *Ledger) open(ctx context.Context, p *part, request string, b Bound, force bool) error {
	head := p.subject.derive().head
	p.key = shardKeyOf(head, l.shardCount(head))
	var left *amounts // available at the last look
	for range attempts {
		var want, need amounts
		if !force {
			want, need = p.demand(b)
		}
		if left != nil {
			if short := lacks(*left, need); short >= 0 && (!b.Assumed || !shrink(&want, &need, *left)) {
				return l.refusal(p, short, left[short], need[short])
			}
		}
		now := l.clock()
		e := entry{slots: p.plan.on(), due: dueAt(now), amounts: want, request: request}
		id, value := newEntryID(), e.encode()
		_, after, err := l.spend.Update(ctx, openUpdate(p, id, value, want, need, now))
		if err == nil {
			p.id, p.value, p.entry = id, value, e
			l.touched(ctx, p.key, after)
			return nil
		}
		failed, ok := store.AsCondition(err)
		if !ok {
			l.undo(ctx, p.key, id, value, err)
			return err
		}
		known, err := l.resolve(ctx, p, failed.Current, need)
		if err != nil {
			return err
		}
		left = &known
	}
	return store.ErrContended
}

func openUpdate(p *part, id string, value []byte, want, need amounts, now time.Time) store.Update {
	u := store.Update{
		Key: p.key,
		Set: []store.Assign{{Path: store.In(attrOpen, id), Value: value}},
		Add: make([]store.Increment, 0, numSlots),
		If:  make([]store.Cond, 0, 3+numSlots),
	}
	u.If = append(u.If, store.IfEqual(attrPlan, p.plan.text), store.IfAtLeast(attrResets, now.Unix()+1), store.IfMissing(store.In(attrOpen, id)))
	for i := range want {
		if want[i] > 0 {
			u.Add = append(u.Add, store.Increment{Path: slotAttr[i].available, By: -want[i]})
		}
		if need[i] > 0 {
			u.If = append(u.If, store.IfAtLeast(slotAttr[i].available, need[i]))
		}
	}
	return u
}

// resolve does what a failed condition asks for: makes the row, brings it to the
// plan and the period, moves money to it. left is what is available to the part.
func (l *Ledger) resolve(ctx context.Context, p *part, row store.Item, need amounts) (left amounts, err error) {
	head := p.subject.derive().head
	if row == nil {
		left = need // as far as is known
		if p.key != head {
			l.shards.Delete(head)
			p.key = head
			return left, nil
		}
		return left, l.create(ctx, p.subject, p.plan)
	}
	if p.key != head {
		if _, err := l.headRow(ctx, p); err != nil {
			return left, err
		}
	}
	row, p.plan, err = l.bring(ctx, p.key, row, p.plan)
	if errors.Is(err, errGone) {
		return need, nil
	}
	if err != nil {
		return left, err
	}
	need = p.plan.mask(need)
	left = availableOf(row)
	if p.key == head {
		if row.Int(attrRows.Attr) <= 1 {
			return left, nil
		}
		l.learn(head, row)
		l.drainOverdrawn(ctx, head, row, p.plan)
	}
	if lacks(left, need) < 0 {
		return left, nil
	}
	return l.gather(ctx, p, need)
}

// headRow reads the head and brings it to the part's plan.
func (l *Ledger) headRow(ctx context.Context, p *part) (store.Item, error) {
	head := p.subject.derive().head
	it, ok, err := l.spend.Get(ctx, head, true)
	if err != nil || !ok {
		return nil, err
	}
	it, p.plan, err = l.bring(ctx, head, it, p.plan)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err == nil {
		l.learn(head, it)
		l.drainOverdrawn(ctx, head, it, p.plan)
	}
	return it, err
}

// create makes the head and its line in the list that RepairAll walks.
func (l *Ledger) create(ctx context.Context, s *Subject, p *plan) error {
	row := newRow(s.derive().head, p, s.owner(), l.clock())
	err := l.store.Transact(ctx,
		store.Action{Table: store.Spend, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}},
		store.Action{Table: store.Spend, Put: &store.Put{Row: listing(row.Key)}},
	)
	if _, exists := store.AsCondition(err); exists || errors.Is(err, store.ErrContended) {
		return nil // another caller made it, or is about to; the next turn tells
	}
	return err
}

// raise makes the part's entry cover the bound, or renews it.
func (l *Ledger) raise(ctx context.Context, p *part, request string, b Bound) error {
	want, need := p.demand(b)
	if p.id == "" {
		if want.zero() && need.zero() {
			return nil
		}
		return l.open(ctx, p, request, b, false)
	}
	for range attempts {
		now := l.clock()
		more := p.lacking(want)
		if more.zero() && p.entry.due-now.Unix() > int64(Due/time.Second)/2 {
			return nil
		}
		u, e := raiseUpdate(p, more, now)
		_, after, err := l.spend.Update(ctx, u)
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
		if !open || repairing(stored) { // repair was faster: a further entry follows
			if err := p.repaired(stored); err != nil {
				return err
			}
			return l.open(ctx, p, request, b, false)
		}
		if !bytes.Equal(stored, p.value) { // an earlier raise whose answer was lost
			if p.entry, err = decodeEntry(stored); err != nil {
				return err
			}
			p.value, p.unsure = stored, amounts{}
			continue
		}
		row := p.key // money is gathered into the row that has the entry
		left, err := l.resolve(ctx, p, failed.Current, more)
		if err != nil {
			return err
		}
		p.key = row
		if short := lacks(left, more); short >= 0 {
			if !b.Assumed || left[short] <= 0 {
				return l.refusal(p, short, left[short], more[short])
			}
			want[short] -= more[short] - left[short]
		}
	}
	return store.ErrContended
}

// repaired notes that repair has settled the part's entry, or is about to. stored
// is the entry, where it still stands. Where it does not, and the answer of a
// raise was lost, it counts as raised: a request is never charged twice.
func (p *part) repaired(stored []byte) error {
	settled := atLeast(p.entry.amounts, p.unsure)
	if stored != nil {
		e, err := decodeEntry(stored)
		if err != nil {
			return err
		}
		settled = e.amounts
	}
	p.charged = sum(p.charged, settled)
	p.id, p.value, p.unsure = "", nil, amounts{}
	return nil
}

func atLeast(a, b amounts) amounts {
	for i := range a {
		a[i] = max(a[i], b[i])
	}
	return a
}

// lacking is what the entry must grow by to cover the wanted amounts.
func (p *part) lacking(want amounts) (more amounts) {
	for i := range want {
		if p.entry.slots&(1<<i) != 0 {
			more[i] = max(want[i]-p.entry.amounts[i], 0)
		}
	}
	return more
}

func raiseUpdate(p *part, more amounts, now time.Time) (store.Update, entry) {
	e := p.entry
	e.amounts, e.due = sum(e.amounts, more), dueAt(now)
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

// undo gives an entry back that may have been written although the store
// reported an error.
func (l *Ledger) undo(ctx context.Context, key store.Key, id string, value []byte, cause error) {
	if errors.Is(cause, store.ErrThrottled) || errors.Is(cause, store.ErrContended) {
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	_, err := l.close(ctx, key, id, value, amounts{})
	l.failed(ctx, "give back a reservation", err)
}

func (l *Ledger) refusal(p *part, i int, left, need int64) error {
	m, s := slotMeasure[i], &p.plan.slots[i]
	until := ""
	if t, ok := s.schedule.Next(l.clock()); ok {
		until = "; it starts again at " + t.Format(time.RFC3339)
	}
	text := fmt.Sprintf("The %s budget of %s is exhausted: limit %s", m, p.subject.name(), m.words(s.limit))
	if left > 0 {
		text = fmt.Sprintf("The %s budget of %s has not enough left: limit %s, available %s, this request may use %s",
			m, p.subject.name(), m.words(s.limit), m.words(left), m.words(need))
	}
	return fault.New(fault.BudgetExhausted, "", text+until)
}

// on is the mask of the plan's slots.
func (p *plan) on() (mask uint8) {
	for i := range p.slots {
		if p.slots[i].on {
			mask |= 1 << i
		}
	}
	return mask
}

// lacks is the first slot with less than needed, or -1.
func lacks(left, need amounts) int {
	for i := range need {
		if need[i] > 0 && left[i] < need[i] {
			return i
		}
	}
	return -1
}

// shrink lowers an assumed demand to what is left; false when a needed budget
// has nothing.
func shrink(want, need *amounts, left amounts) bool {
	for i := range need {
		if need[i] > 0 && left[i] <= 0 {
			return false
		}
		if need[i] > left[i] && need[i] > 0 {
			need[i], want[i] = left[i], min(want[i], left[i])
		}
	}
	return true
}

func sum(a, b amounts) amounts {
	for i := range a {
		a[i] += b[i]
	}
	return a
}

func shardKeyOf(head store.Key, n int) store.Key {
	if n <= 1 {
		return head
	}
	return shardKey(head, rand.IntN(n))
}

package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Bound is the maximum that a request can use.
type Bound struct {
	Cost   pricing.NanoDollars
	Priced bool // if false, the model has no price, and Cost is meaningless
	Tokens int64
	// Assumed marks the bound as a guess, because the request has no limit on its output.
	// Such a request is admitted while anything is available, and reserves at most the
	// rest.
	Assumed bool
	// Rerouted is the model to which an exhausted budget has sent the request. Budgets
	// that name this model admit it; no others do.
	Rerouted string
	// Charged is what these subjects were already charged for the request. The reservation
	// covers it in addition to future usage.
	Charged Used
	// Before is what other subjects were charged for the request. It is used only in the
	// record of an unsettled entry.
	Before Used
	// Counted: another reservation counts the request in budgets of requests.
	Counted bool
}

// After returns the bound of a request that these subjects and others were already charged for.
// counted: another reservation counts it in budgets of requests.
func (b Bound) After(charged, before Used, counted bool) Bound {
	b.Charged, b.Before, b.Counted = charged, before, counted
	return b
}

// requests is the number of requests that the bound takes from budgets of requests.
func (b *Bound) requests() int64 {
	if b.Counted {
		return 0
	}
	return 1
}

// Used is a part of a request's usage.
type Used struct {
	Cost   pricing.NanoDollars
	Tokens int64
}

func (u Used) amounts() amounts { return amounts{slotCost: int64(u.Cost), slotTokens: u.Tokens} }

// Reservation is the amount of budgets that a request holds until it is settled. The nil
// Reservation, of a request without budgets, is ready to use.
type Reservation struct {
	l       *Ledger
	request string
	parts   []*part // in the documented order

	mu      sync.Mutex
	counted bool // another reservation counts the request
	settled bool // Settle or Release was called: final is valid
	held    bool // Hold was called: SettleHeld settles the entries
	final   amounts
	late    late // of the first settlement

	// Memory of parts and errs, for the usual number of subjects.
	own  [2]part
	few  [2]*part
	errs [2]error
}

// part is the share of one subject.
type part struct {
	subject  *Subject
	plan     *plan
	key      store.Key   // of the row that holds the entry
	id       string      // of the entry; "" if none
	value    store.Value // the entry as last written by this process, in bytes
	entry    entry
	turn     int     // of the next entry
	unsure   amounts // possible additional amount of the entry: a raise with a lost response
	charged  amounts // by entries of this request that repair has settled
	reported amounts // the same, in their records
	lost     []doubtful
	done     bool
	waived   [numSlots]bool // audited budgets that were insufficient
}

// Reserve takes the bound from every budget of the subjects: one conditional update per
// budgeted subject, in parallel. When one is insufficient, the others are given back and
// the fault (412) names the first in the documented order. A budget of which the request
// uses nothing is not updated: a free request passes an exhausted cost budget. A model
// without a price and a cost budget result in fault.UnpricedModel unless the subject
// allows it. An unavailable store results in 503.
//
// requestID is reported if the reservation is not settled; use the record's id.
func (l *Ledger) Reserve(ctx context.Context, requestID string, subjects []*Subject, b Bound) (*Reservation, error) {
	r := l.reservation(requestID, subjects)
	if r == nil {
		return nil, nil
	}
	r.counted = b.Counted
	if err := r.checkPriced(b); err != nil {
		return nil, err
	}
	err := r.each(func(p *part) error {
		if want, need := p.demand(b); want.zero() && need.zero() {
			return nil
		}
		return l.open(ctx, p, requestID, b, false)
	})
	if err != nil {
		_ = r.Release(ctx) // repair settles entries that could not be given back
		return nil, err
	}
	return r, nil
}

// reservation returns a reservation of the subjects' budgets with nothing taken yet; nil
// if no subject has a budget.
func (l *Ledger) reservation(requestID string, subjects []*Subject) *Reservation {
	if !slices.ContainsFunc(subjects, func(s *Subject) bool { return s != nil && len(s.Budgets) > 0 }) {
		return nil
	}
	r := &Reservation{l: l, request: requestID}
	now := l.base.clock()
	r.parts = r.few[:0]
	var few [len(r.own)]*Subject
	for i, s := range inOrder(few[:0], subjects, func(s *Subject) bool { s.at(now); return s.derive().plan.any }) {
		var p *part
		if i < len(r.own) {
			p = &r.own[i]
		} else {
			p = &part{}
		}
		p.subject, p.plan = s, s.derive().plan
		r.parts = append(r.parts, p)
	}
	return r
}

// Settle replaces the reserved bound by the request's actual usage: once, with the sum
// over its attempts. It counts one request. It is idempotent: after an error it may be
// called again, with the same amounts; a second success does nothing. It continues, for a
// limited time, when ctx is canceled.
func (r *Reservation) Settle(ctx context.Context, cost pricing.NanoDollars, tokens int64) error {
	return r.settle(ctx, amounts{slotCost: max(int64(cost), 0), slotTokens: max(tokens, 0), slotRequests: (&Bound{Counted: r != nil && r.counted}).requests()})
}

// Release settles to zero: for a request that failed before it was sent.
func (r *Reservation) Release(ctx context.Context) error { return r.settle(ctx, amounts{}) }

// Entries returns the open entries with their settled amounts, for the record; a reader of the
// record repeats the settlement by SettleEntry. It is nil before Settle.
func (r *Reservation) Entries() []usage.Settle {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.settled || r.held {
		return nil
	}
	out := make([]usage.Settle, 0, len(r.parts))
	for _, p := range r.parts {
		if p.id != "" {
			out = append(out, settlement(p.key, p.id, p.rest(r.final)))
		}
		for i, d := range p.lost { // given back, if they exist in the store
			var charge amounts
			if p.id == "" && d.forced && i == len(p.lost)-1 {
				charge = p.rest(r.final) // this entry is the charge, if it exists in the store
			}
			out = append(out, settlement(d.key, d.id, charge))
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// each runs f for all parts concurrently; the first error in order counts.
func (r *Reservation) each(f func(*part) error) error {
	errs := append(r.errs[:0], make([]error, len(r.parts))...)
	if r.l.base.turns {
		for i, p := range r.parts {
			errs[i] = f(p)
		}
	} else {
		r.l.base.each(len(r.parts), func(i int) { errs[i] = f(r.parts[i]) })
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return nil
	}
	var refused *fault.Fault
	for _, err := range errs { // a rejection is more specific than a failed store
		if errors.As(err, &refused) && refused.Code == fault.BudgetExhausted {
			return refused
		}
	}
	return closed(cmp.Or(errs...))
}

// checkPriced fails for a model without a price, unless every subject with a cost budget allows
// such models.
func (r *Reservation) checkPriced(b Bound) error {
	if b.Priced {
		return nil
	}
	for _, p := range r.parts {
		if p.plan.slots[slotCost].on && p.subject.Unpriced != UnpricedAllow {
			return fault.Newf(fault.UnpricedModel, "model", "The model has no price and %s has a cost budget: give the model a price, or allow models without a price (unpriced: allow)", p.subject.name())
		}
	}
	return nil
}

// demand returns what the bound takes from the part's budgets, and what must be
// available. They differ for a model without a price: it takes nothing, but does not pass
// an exhausted budget.
func (p *part) demand(b Bound) (want, need amounts) {
	want = amounts{slotTokens: max(b.Tokens, 0), slotRequests: b.requests()}
	if b.Priced {
		want[slotCost] = max(int64(b.Cost), 0)
	}
	want = sum(want, b.Charged.amounts())
	want = p.rest(p.plan.mask(want))
	need = want
	if !b.Priced && p.plan.slots[slotCost].on {
		need[slotCost] = 1
	}
	return want, need
}

// waive omits the amounts that exceed an audited budget. They are charged once they are
// known, even beyond the limit.
func (p *part) waive(b *Bound, want, need *amounts) {
	for i, waived := range p.waived {
		if p.waived[i] = waived && p.subject.audits(i, b); p.waived[i] {
			want[i], need[i] = 0, 0
		}
	}
}

// rest returns the part of the request's amounts to settle after repair has settled
// earlier entries of it.
func (p *part) rest(final amounts) amounts {
	for i := range final {
		final[i] = max(final[i]-p.charged[i], 0)
	}
	return final
}

// open writes an entry with the amounts of the bound. A forced entry takes them
// unconditionally, since the bound was already spent; available may become negative.
func (l *Ledger) open(ctx context.Context, p *part, request string, b Bound, force bool) error {
	if err := giveBack(l, ctx, p); err != nil {
		return err
	}
	head := p.subject.derive().head
	p.key = l.rows.rowFor(head)
	var left *amounts // available at the last read
	var seen store.Item
	for range attempts {
		want, need := p.demand(b)
		if force {
			need = amounts{}
		} else {
			p.waive(&b, &want, &need)
		}
		if left != nil {
			if short := lacks(*left, need); short >= 0 && (!b.Assumed || !shrink(&want, &need, *left)) {
				if p.subject.audits(short, &b) {
					l.alarms.recordRejection(ctx, p, seen, short, need[short])
					p.waived[short] = true
					continue
				}
				l.alarms.recordRejection(ctx, p, seen, short, need[short])
				if b.Assumed { // any amount would have sufficed
					return rejection(l, ctx, p, short, left[short], need[short], 1)
				}
				return rejection(l, ctx, p, short, left[short], need[short], need[short])
			}
		}
		now := l.base.clock()
		e := entry{slots: p.plan.on(), due: dueAt(now), amounts: want, beyond: p.beyond(b, want), turn: p.turn, request: request}
		id, value := newEntryID(), store.Value(e.encode())
		w := newWriting(p.key)
		w.opens(p, now)
		openUpdate(&w.u, p, id, value, want, need, b.Assumed, now)
		after, _, err := w.write(ctx, l.rows.spend)
		if err == nil {
			p.id, p.value, p.entry, p.turn = id, value, e, p.turn+1
			l.touched(ctx, p.key, after)
			l.base.failed(ctx, "balance the rows of a budget", l.rows.level(ctx, p.key, after))
			return nil
		}
		failed, ok := store.AsCondition(err)
		if !ok {
			p.turn++
			undo(l, ctx, p, doubtful{p.key, id, value, e, force}, err)
			return err
		}
		seen = failed.Current
		known, err := resolve(l, ctx, p, seen, need)
		if err != nil {
			return err
		}
		left = &known
	}
	return store.ErrContended
}

func openUpdate(u *store.Update, p *part, id string, value store.Value, want, need amounts, assumed bool, now time.Time) {
	entry := store.In(attrOpen, id)
	u.Set = append(u.Set, store.Assign{Path: entry, Value: value})
	u.If = append(u.If, store.IfEqual(attrPlan, p.plan.value), store.IfAtLeast(attrResets, now.Unix()+1), store.IfMissing(entry))
	for i := range want {
		if want[i] > 0 {
			u.Add = append(u.Add, store.Increment{Path: slotAttr[i].available, By: -want[i]})
		}
		if need[i] <= 0 {
			continue
		}
		var needed store.Value = need[i]
		u.If = append(u.If, store.IfAtLeast(slotAttr[i].available, needed))
		if want[i] > 0 && i != slotRequests { // a request is one request, and a forced entry is unconditional
			if assumed {
				needed = int64(1) // admitted while anything is left
			}
			u.Set = append(u.Set, store.Assign{Path: slotAttr[i].demand, Value: needed})
		}
	}
}

// resolve handles a failed condition: it creates the row, brings it to the plan and the
// period, or moves money to it. left is what is available to the part.
func resolve(l *Ledger, ctx context.Context, p *part, row store.Item, need amounts) (left amounts, err error) {
	head := p.subject.derive().head
	if row == nil {
		left = need // as far as is known
		if p.key != head {
			l.rows.shards.set(head, 1)
			p.key = head
			return left, nil
		}
		return left, create(l, ctx, p.subject, p.plan)
	}
	if p.key != head {
		if _, err := headRow(l, ctx, p); err != nil {
			return left, err
		}
	}
	row, p.plan, err = l.rows.bring(ctx, p.key, row, p.plan)
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
		l.rows.learn(head, row.Int(attrShards.Attr))
		l.rows.drainOverdrawn(ctx, head, row, p.plan)
	}
	if lacks(left, need) < 0 {
		return left, nil
	}
	return l.rows.gather(ctx, p, need)
}

// headRow reads the head and brings it to the part's plan.
func headRow(l *Ledger, ctx context.Context, p *part) (store.Item, error) {
	head := p.subject.derive().head
	it, ok, err := l.rows.spend.Get(ctx, head, true)
	if err != nil || !ok {
		return nil, err
	}
	it, p.plan, err = l.rows.bring(ctx, head, it, p.plan)
	if errors.Is(err, errGone) {
		return nil, nil
	}
	if err == nil {
		l.rows.learn(head, it.Int(attrShards.Attr))
		l.rows.drainOverdrawn(ctx, head, it, p.plan)
	}
	return it, err
}

// create creates the head and its row in the list of RepairAll.
func create(l *Ledger, ctx context.Context, s *Subject, p *plan) error {
	row := newRow(s.derive().head, p, s.owner(), l.base.clock())
	err := l.base.store.Transact(ctx,
		store.Action{Table: store.Spend, Put: &store.Put{Row: row, If: []store.Cond{store.IfAbsent()}}},
		store.Action{Table: store.Spend, Put: &store.Put{Row: listing(row.Key)}},
	)
	if _, exists := store.AsCondition(err); exists || errors.Is(err, store.ErrContended) {
		return nil // another caller created it, or is about to; the next iteration finds out
	}
	return err
}

// rejection returns the fault with the needed amount and the minimum that would have
// sufficed.
func rejection(l *Ledger, ctx context.Context, p *part, i int, left, need, least int64) error {
	m, s := slotMeasure[i], &p.plan.slots[i]
	until := ""
	if t, ok := s.schedule.Next(l.base.clock()); ok {
		until = "; it resets at " + t.Format(time.RFC3339)
	}
	text := fmt.Sprintf("The %s budget of %s is exhausted: limit %s", m, p.subject.name(), m.words(s.limit))
	if left > 0 {
		text = fmt.Sprintf("The %s budget of %s is too low for this request: limit %s, available %s, needed %s",
			m, p.subject.name(), m.words(s.limit), m.words(left), m.words(need))
	}
	f := fault.New(fault.BudgetExhausted, "", text+until)
	if states, err := l.State(ctx, p.subject); err == nil { // otherwise the message suffices
		f.Limit = p.subject.exhausted(m, states)
	} else {
		f.Limit = p.subject.limit(m)
	}
	f.Limit.Needed = least
	return f
}

// exhausted returns the state of the budget of a measure.
func (s *Subject) exhausted(m Measure, states []BudgetState) *fault.Limit {
	out := s.limit(m)
	for i := range states {
		b := &states[i]
		if b.Limit.Type != m {
			continue
		}
		out.CreditLimit, out.Usage, out.Reserved, out.Available = m.Amount(b.Limit.CreditLimit), m.Amount(b.Usage), m.Amount(b.Reserved), m.Amount(b.Available())
		if b.Raised > 0 {
			out.Raised = m.Amount(b.Raised)
		}
		if b.Limit.OnExceeded == Fallback {
			out.Fallback = b.Limit.FallbackModel
		}
		if !b.NextResetAt.IsZero() {
			out.ResetsAt = &b.NextResetAt
		}
	}
	return out
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

// lacks returns the first slot with less than needed, or -1.
func lacks(left, need amounts) int {
	for i := range need {
		if need[i] > 0 && left[i] < need[i] {
			return i
		}
	}
	return -1
}

// shrink lowers an assumed demand to the available amounts; false if a needed budget is empty.
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

// rowFor returns the row for a new entry of the head's subject.
func (l *rows) rowFor(head store.Key) store.Key {
	n := l.shards.get(head)
	if n <= 1 {
		return head
	}
	return shardKey(head, l.spread(head, n))
}

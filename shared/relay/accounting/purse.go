package accounting

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// Purse holds everything that one request counts, reserves and spends, from the first count to
// its settlement. It is the only place that records money. The zero value has reserved nothing.
// It is not safe for concurrent use.
type Purse struct {
	Attempts []usage.Attempt // the calls so far, each with what it was charged
	Usage    pricing.Usage   // of all of them
	Cost     pricing.NanoDollars
	Priced   bool           // all of the last charge had a price
	Tariff   string         // lines of the price list that were used
	Entries  []usage.Settle // settlements of budgets

	admitted        *ledger.Admission   // of the caller's rates
	admittedTargets []*ledger.Admission // of those of targets
	reserved        *ledger.Reservation // of key and workspace, for the complete request
	held            targetHold          // of the target being tried
	inherited       []ledger.Held       // of earlier requests, for work that ended during this one
	covered         ledger.Used         // usage that the reservations cover beyond the target's bound
	second          bool                // of a second attempt: the first one counts the request
	failed          []error             // of settlements
}

// targetHold is what the budgets of one target hold. Its provider and its integration pay
// only for what this target used.
type targetHold struct {
	reserved *ledger.Reservation
	attempts int         // of the request before this target
	before   ledger.Used // of the request before this target
}

// maxCharge limits the charge of one response to ten million dollars, so that budgets and cubes
// can sum thousands of these without overflow.
const maxCharge pricing.NanoDollars = 10_000_000 * 1_000_000_000

// Try begins a call. The result is valid until the next one.
func (p *Purse) Try(a usage.Attempt) *usage.Attempt {
	p.Attempts = append(p.Attempts, a)
	return p.Last()
}

// Forget drops the calls after the first n, which were not calls of the request itself.
func (p *Purse) Forget(n int) { p.Attempts = p.Attempts[:n] }

// Unpriced marks a request with a cost known to be zero.
func (p *Purse) Unpriced() { p.Priced = true }

// Last returns the call that was started last; nil if there was none.
func (p *Purse) Last() *usage.Attempt {
	if len(p.Attempts) == 0 {
		return nil
	}
	return &p.Attempts[len(p.Attempts)-1]
}

// Charge counts the usage of the last call; known reports that it has a price.
func (p *Purse) Charge(u pricing.Usage, price pricing.Price, known bool) {
	add(p, u, price, known)
	p.Priced = known && price.Covers(u)
}

// ChargeAlso counts what a further model used within the last charge.
func (p *Purse) ChargeAlso(u pricing.Usage, price pricing.Price, known bool) {
	add(p, u, price, known)
	p.Priced = p.Priced && known && price.Covers(u)
}

func add(p *Purse, u pricing.Usage, price pricing.Price, known bool) {
	var cost pricing.NanoDollars
	if known {
		cost = min(price.Cost(u), maxCharge)
		note(p, price.Line())
	}
	p.Usage = p.Usage.Plus(u)
	p.Cost += cost
	if last := p.Last(); last != nil {
		last.Usage, last.Cost = last.Usage.Plus(u), last.Cost+cost
	}
}

// note adds a line of the price list, once.
func note(p *Purse, line string) {
	switch {
	case p.Tariff == "":
		p.Tariff = line
	case p.Tariff != line && !slices.Contains(strings.Split(p.Tariff, lines), line) && len(p.Tariff) < maxTariff:
		p.Tariff += lines + line
	}
}

const (
	lines     = "; "
	maxTariff = 2048 // bytes; further lines are those of more models in one batch
)

// spent is what the request was charged so far.
func (p *Purse) spent() ledger.Used { return ledger.Used{Cost: p.Cost, Tokens: p.Usage.TotalTokens()} }

// CountRequest counts the request against the rates of its caller; nil subjects have
// none.
func (p *Purse) CountRequest(ctx context.Context, l *ledger.Ledger, caller string, of ...*ledger.Subject) (err error) {
	p.admitted, err = l.Admit(ctx, caller, of)
	return err
}

// CountTarget counts the request against the rates of a target.
func (p *Purse) CountTarget(ctx context.Context, l *ledger.Ledger, caller string, subjects []*ledger.Subject) error {
	rates := withRates(subjects)
	if len(rates) == 0 {
		return nil
	}
	admitted, err := l.Admit(ctx, caller, rates)
	if err == nil {
		p.admittedTargets = append(p.admittedTargets, admitted)
	}
	return err
}

// Counted is how many targets were counted; see GiveBack.
func (p *Purse) Counted() int { return len(p.admittedTargets) }

// GiveBack returns the counts of targets after the first n, so that a rejection by one limit
// does not count against others.
func (p *Purse) GiveBack(ctx context.Context, n int) {
	for _, a := range p.admittedTargets[n:] {
		a.GiveBack(ctx)
	}
	p.admittedTargets = p.admittedTargets[:n]
}

// NeedsCost reports whether the cost of a target must be known: because of budgets of the caller or
// of the target, or of rates that count tokens.
func (p *Purse) NeedsCost(own, its []*ledger.Subject) bool {
	return len(own) > 0 || len(its) > 0 || p.admitted != nil || len(p.admittedTargets) > 0
}

// Reserve reserves the most that a target may cost. The caller's budgets (own) are reserved once
// per request, and raised if this target is more expensive; the target's own budgets (its) are
// reserved after those of the previous target are settled.
func (p *Purse) Reserve(ctx, base context.Context, l *ledger.Ledger, id string, own, its []*ledger.Subject, bound ledger.Bound) error {
	if err := p.ReserveTokens(ctx, bound.Tokens); err != nil {
		return err
	}
	var err error
	p.covered = p.spent()
	if len(own) > 0 {
		all := bound
		all.Charged, all.Counted = p.covered, p.second
		if p.reserved == nil {
			p.reserved, err = l.Reserve(ctx, id, own, all)
		} else {
			err = p.reserved.Raise(ctx, all)
		}
		if err != nil {
			return err
		}
	}
	settleTarget(p, base)
	if len(its) == 0 {
		return nil
	}
	p.held.attempts, p.held.before = len(p.Attempts), p.covered
	bound.Before = p.covered
	p.held.reserved, err = l.Reserve(ctx, id, its, bound)
	return err
}

// Holds reports whether a budget has a reservation: one of the caller's or of the target being
// tried.
func (p *Purse) Holds() bool { return p.reserved != nil || p.held.reserved != nil }

// Short reports whether another call of the target needs larger reservations, because the
// earlier calls were charged. See CoverAgain.
func (p *Purse) Short() bool {
	return p.spent() != p.covered && p.Holds()
}

// CoverAgain raises the reservations to cover one more call of the target in addition to the
// charges for earlier calls. It fails if a budget is exhausted.
func (p *Purse) CoverAgain(ctx context.Context, bound ledger.Bound) error {
	spent := p.spent()
	bound.Charged = spent
	if err := p.reserved.Raise(ctx, bound); err != nil {
		return err
	}
	before := p.held.before
	bound.Charged, bound.Before = ledger.Used{Cost: spent.Cost - before.Cost, Tokens: spent.Tokens - before.Tokens}, before
	if err := p.held.reserved.Raise(ctx, bound); err != nil {
		return err
	}
	p.covered = spent
	return nil
}

// Cover raises the reservations to a larger bound of the call in progress. If a budget is
// exhausted, the existing reservation remains, so that the call is charged at its end.
func (p *Purse) Cover(ctx context.Context, bound ledger.Bound) error {
	if err := p.ReserveTokens(ctx, bound.Tokens); err != nil {
		return err
	}
	return p.CoverAgain(ctx, bound)
}

// Spend charges the request's cost to the budgets of the subjects without a reservation: the
// money is already spent, so no limit is checked, and a budget that exceeds its limit rejects
// the next request.
func (p *Purse) Spend(base context.Context, l *ledger.Ledger, id string, of ...[]*ledger.Subject) {
	for _, subjects := range of {
		r, err := l.Charge(base, id, subjects, p.spent())
		p.settle(r, err)
	}
}

// CountHit counts a request that costs nothing against budgets of requests. It fails if one is
// exhausted.
func (p *Purse) CountHit(base context.Context, l *ledger.Ledger, id string, own, its []*ledger.Subject) error {
	if p.reserved != nil {
		own = nil // they count it with what an earlier target cost
	}
	for _, subjects := range [...][]*ledger.Subject{byRequests(own), byRequests(its)} {
		r, err := l.Reserve(base, id, subjects, ledger.Bound{Priced: true})
		if err != nil {
			return err
		}
		p.settle(r, r.Settle(base, 0, 0))
	}
	return nil
}

// Hold holds the reservations beyond the request, for work that continues at a provider. It
// returns the argument for Inherit; see ledger.Reservation.Hold.
func (p *Purse) Hold(base context.Context, until time.Time) ([]ledger.Held, error) {
	spent := p.spent()
	held, err := p.reserved.Hold(base, until, spent)
	before := p.held.before
	its, err2 := p.held.reserved.Hold(base, until, ledger.Used{Cost: spent.Cost - before.Cost, Tokens: spent.Tokens - before.Tokens})
	p.reserved, p.held.reserved = nil, nil
	return append(held, its...), errors.Join(err, err2)
}

// Inherit takes over the reservations of an earlier request for work that ended during this one.
// Settle settles them at this request's charge.
func (p *Purse) Inherit(held []ledger.Held) { p.inherited = append(p.inherited, held...) }

// Inherited reports whether an earlier request has reserved what this one is charged.
func (p *Purse) Inherited() bool { return len(p.inherited) > 0 }

// settleInherited settles the reservations of earlier requests. If this request has its own
// reservation, that is charged, and the inherited ones are released.
func settleInherited(p *Purse, base context.Context, l *ledger.Ledger) {
	if len(p.inherited) == 0 {
		return
	}
	used := p.spent()
	if p.Holds() {
		used = ledger.Used{}
	}
	entries, err := l.SettleHeld(base, p.inherited, used)
	if err != nil {
		p.failed = append(p.failed, err)
	}
	p.Entries, p.inherited = append(p.Entries, entries...), nil
}

// Settle settles the request's reservations, once: budgets get back the unused part, rates count
// the tokens. failure is the reason why the client got no successful response; if a limit
// rejected the request before anything was sent, it counts against no limit. The errors come
// from budgets that the repair will settle.
//
// other is that of the attempt whose response is not used; nil if there was none. It settles its own
// reservations, and its calls, usage and cost become part of p.
func (p *Purse) Settle(base context.Context, l *ledger.Ledger, failure *fault.Fault, other *Purse) []error {
	settleInherited(p, base, l)
	settleReserved(p, base)
	if other != nil {
		settleReserved(other, base)
		join(p, other)
	}
	if failure != nil && ofLimit(failure.Code) && len(p.Attempts) == 0 {
		p.admitted.GiveBack(base)
	}
	p.admitted.SettleTokens(base, p.Usage.TotalTokens())
	return p.failed
}

// settleReserved settles the budgets of one attempt, and the rates of its targets.
func settleReserved(p *Purse, base context.Context) {
	settleTarget(p, base)
	if r := p.reserved; r != nil {
		if len(p.Attempts) == 0 {
			p.settle(r, r.Release(base)) // nothing was sent
		} else {
			p.settle(r, r.Settle(base, p.Cost, p.Usage.TotalTokens()))
		}
	}
	for _, a := range p.admittedTargets {
		a.SettleTokens(base, p.Usage.TotalTokens())
	}
}

// join adds what another attempt of the same request has called, used and settled. Both have
// settled their budgets; the rates of the caller count the sum.
func join(p, other *Purse) {
	p.Attempts = append(p.Attempts, other.Attempts...)
	slices.SortStableFunc(p.Attempts, func(a, b usage.Attempt) int { return cmp.Compare(a.Start, b.Start) })
	p.Usage, p.Cost = p.Usage.Plus(other.Usage), p.Cost+other.Cost
	if other.Tariff != "" {
		for line := range strings.SplitSeq(other.Tariff, lines) {
			note(p, line)
		}
	}
	p.Priced = p.Priced && (other.Priced || other.Cost == 0 && other.Usage == pricing.Usage{})
	p.Entries, p.failed = append(p.Entries, other.Entries...), append(p.failed, other.failed...)
	if p.admitted == nil {
		p.admitted, other.admitted = other.admitted, nil
	}
}

// Second makes p that of a second attempt of a request, which the first one counts.
func (p *Purse) Second() { p.second = true }

// Supersede records in the last call that the response of another attempt is used.
func (p *Purse) Supersede() {
	if at := p.Last(); at != nil {
		at.ErrorCode = usage.Superseded
	}
}

// ofLimit reports whether a fault is a limit's rejection.
func ofLimit(code fault.Code) bool {
	switch code {
	case fault.RateLimited, fault.BudgetExhausted, fault.UnpricedModel, fault.UnboundedRequest:
		return true
	}
	return false
}

// settleTarget settles the budgets of the target that was tried last.
func settleTarget(p *Purse, base context.Context) {
	h := &p.held
	if h.reserved == nil {
		return
	}
	if len(p.Attempts) == h.attempts {
		p.settle(h.reserved, h.reserved.Release(base))
	} else {
		p.settle(h.reserved, h.reserved.Settle(base, p.Cost-h.before.Cost, p.Usage.TotalTokens()-h.before.Tokens))
	}
	h.reserved = nil
}

// settle records the result of a settlement.
func (p *Purse) settle(r *ledger.Reservation, err error) {
	if err != nil {
		p.failed = append(p.failed, err)
	}
	p.Entries = append(p.Entries, r.Entries()...)
}

// ReserveTokens reserves what a request may need from the rates that count tokens, once.
func (p *Purse) ReserveTokens(ctx context.Context, bound int64) error {
	if err := p.admitted.ReserveTokens(ctx, bound); err != nil {
		return err
	}
	for _, a := range p.admittedTargets {
		if err := a.ReserveTokens(ctx, bound); err != nil {
			return err
		}
	}
	return nil
}

func withRates(subjects []*ledger.Subject) []*ledger.Subject {
	var out []*ledger.Subject
	for _, s := range subjects {
		if len(s.Rates) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// Budgeted are the subjects with a budget in force; nil subjects have none.
func Budgeted(of ...*ledger.Subject) (budgeted []*ledger.Subject) {
	for _, s := range of {
		if s != nil && len(s.Budgets) > 0 {
			budgeted = append(budgeted, s)
		}
	}
	return budgeted
}

// Leftover is the memory of the calls, emptied, for another request.
func (p *Purse) Leftover() []usage.Attempt {
	clear(p.Attempts)
	return p.Attempts[:0]
}

// byRequests are those of the subjects that have a budget of requests.
func byRequests(of []*ledger.Subject) (out []*ledger.Subject) {
	for _, s := range of {
		for i := range s.Budgets {
			if s.Budgets[i].Type == ledger.Requests {
				out = append(out, s)
				break
			}
		}
	}
	return out
}

package accounting

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/usage"
)

// Spending holds everything that one request counts, reserves and spends, from the first count to
// its settlement. It is the only place that records money. The zero value has reserved nothing.
// It is not safe for concurrent use.
type Spending struct {
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

// used is the part of what the request has spent that this target used.
func (h *targetHold) used(spent ledger.Used) ledger.Used {
	return ledger.Used{Cost: spent.Cost - h.before.Cost, Tokens: spent.Tokens - h.before.Tokens}
}

// maxCharge limits the charge of one response to ten million dollars, so that budgets and cubes
// can sum thousands of these without overflow.
const maxCharge pricing.NanoDollars = 10_000_000 * 1_000_000_000

// Try begins a call. The result is valid until the next one.
func (s *Spending) Try(a usage.Attempt) *usage.Attempt {
	s.Attempts = append(s.Attempts, a)
	return s.Last()
}

// TruncateAttempts drops the calls after the first n, which were not calls of the request itself.
func (s *Spending) TruncateAttempts(n int) { s.Attempts = s.Attempts[:n] }

// Unpriced marks a request with a cost known to be zero.
func (s *Spending) Unpriced() { s.Priced = true }

// Last returns the call that was started last; nil if there was none.
func (s *Spending) Last() *usage.Attempt {
	if len(s.Attempts) == 0 {
		return nil
	}
	return &s.Attempts[len(s.Attempts)-1]
}

// Charge counts the usage of the last call; known reports that it has a price.
func (s *Spending) Charge(u pricing.Usage, price pricing.Price, known bool) {
	add(s, u, price, known)
	s.Priced = known && price.Covers(u)
}

// ChargeAlso counts what a further model used within the last charge.
func (s *Spending) ChargeAlso(u pricing.Usage, price pricing.Price, known bool) {
	add(s, u, price, known)
	s.Priced = s.Priced && known && price.Covers(u)
}

func add(s *Spending, u pricing.Usage, price pricing.Price, known bool) {
	var cost pricing.NanoDollars
	if known {
		cost = min(price.Cost(u), maxCharge)
		note(s, price.Line())
	}
	s.Usage = s.Usage.Sum(u)
	s.Cost += cost
	if last := s.Last(); last != nil {
		last.Usage, last.Cost = last.Usage.Sum(u), last.Cost+cost
	}
}

// note adds a line of the price list, once.
func note(s *Spending, line string) {
	switch {
	case s.Tariff == "":
		s.Tariff = line
	case s.Tariff != line && !slices.Contains(strings.Split(s.Tariff, lines), line) && len(s.Tariff) < maxTariff:
		s.Tariff += lines + line
	}
}

const (
	lines     = "; "
	maxTariff = 2048 // bytes; further lines are those of more models in one batch
)

// spent is what the request was charged so far.
func (s *Spending) spent() ledger.Used {
	return ledger.Used{Cost: s.Cost, Tokens: s.Usage.TotalTokens()}
}

// CountRequest counts the request against the rates of its caller; nil subjects have
// none.
func (s *Spending) CountRequest(ctx context.Context, l *ledger.Ledger, caller string, of ...*ledger.Subject) (err error) {
	s.admitted, err = l.Admit(ctx, caller, of)
	return err
}

// CountTarget counts the request against the rates of a target.
func (s *Spending) CountTarget(ctx context.Context, l *ledger.Ledger, caller string, subjects []*ledger.Subject) error {
	rates := withRates(subjects)
	if len(rates) == 0 {
		return nil
	}
	admitted, err := l.Admit(ctx, caller, rates)
	if err == nil {
		s.admittedTargets = append(s.admittedTargets, admitted)
	}
	return err
}

// Counted is how many targets were counted; see ReturnCounts.
func (s *Spending) Counted() int { return len(s.admittedTargets) }

// ReturnCounts returns the counts of targets after the first n, so that a rejection by one limit
// does not count against others.
func (s *Spending) ReturnCounts(ctx context.Context, n int) {
	for _, a := range s.admittedTargets[n:] {
		a.Return(ctx)
	}
	s.admittedTargets = s.admittedTargets[:n]
}

// NeedsCost reports whether the cost of a target must be known: because of budgets of the caller or
// of the target, or of rates that count tokens.
func (s *Spending) NeedsCost(own, its []*ledger.Subject) bool {
	return len(own) > 0 || len(its) > 0 || s.admitted != nil || len(s.admittedTargets) > 0
}

// Reserve reserves the most that a target may cost. The caller's budgets (own) are reserved once
// per request, and raised if this target is more expensive; the target's own budgets (its) are
// reserved after those of the previous target are settled.
func (s *Spending) Reserve(ctx, base context.Context, l *ledger.Ledger, id string, own, its []*ledger.Subject, bound ledger.Bound) error {
	if err := s.ReserveTokens(ctx, bound.Tokens); err != nil {
		return err
	}
	var err error
	s.covered = s.spent()
	if len(own) > 0 {
		all := bound.After(s.covered, ledger.Used{}, s.second)
		if s.reserved == nil {
			s.reserved, err = l.Reserve(ctx, id, own, all)
		} else {
			err = s.reserved.Raise(ctx, all)
		}
		if err != nil {
			return err
		}
	}
	settleTarget(s, base)
	if len(its) == 0 {
		return nil
	}
	reserved, err := l.Reserve(ctx, id, its, bound.After(ledger.Used{}, s.covered, false))
	s.held = targetHold{reserved, len(s.Attempts), s.covered}
	return err
}

// HasReservation reports whether a budget has a reservation: one of the caller's or of the target being
// tried.
func (s *Spending) HasReservation() bool { return s.reserved != nil || s.held.reserved != nil }

// NeedsExtension reports whether another call of the target needs larger reservations, because the
// earlier calls were charged. See CoverAgain.
func (s *Spending) NeedsExtension() bool {
	return s.spent() != s.covered && s.HasReservation()
}

// ExtendReservation raises the reservations to cover one more call of the target in addition to the
// charges for earlier calls. It fails if a budget is exhausted.
func (s *Spending) ExtendReservation(ctx context.Context, bound ledger.Bound) error {
	spent := s.spent()
	if err := s.reserved.Raise(ctx, bound.After(spent, ledger.Used{}, false)); err != nil {
		return err
	}
	if err := s.held.reserved.Raise(ctx, bound.After(s.held.used(spent), s.held.before, false)); err != nil {
		return err
	}
	s.covered = spent
	return nil
}

// Cover raises the reservations to a larger bound of the call in progress. If a budget is
// exhausted, the existing reservation remains, so that the call is charged at its end.
func (s *Spending) Cover(ctx context.Context, bound ledger.Bound) error {
	if err := s.ReserveTokens(ctx, bound.Tokens); err != nil {
		return err
	}
	return s.ExtendReservation(ctx, bound)
}

// Spend charges the request's cost to the budgets of the subjects without a reservation: the
// money is already spent, so no limit is checked, and a budget that exceeds its limit rejects
// the next request.
func (s *Spending) Spend(base context.Context, l *ledger.Ledger, id string, of ...[]*ledger.Subject) {
	for _, subjects := range of {
		r, err := l.Charge(base, id, subjects, s.spent())
		s.settle(r, err)
	}
}

// CountHit counts a request that costs nothing against budgets of requests. It fails if one is
// exhausted.
func (s *Spending) CountHit(base context.Context, l *ledger.Ledger, id string, own, its []*ledger.Subject) error {
	if s.reserved != nil {
		own = nil // they count it with what an earlier target cost
	}
	for _, subjects := range [...][]*ledger.Subject{byRequests(own), byRequests(its)} {
		r, err := l.Reserve(base, id, subjects, ledger.Bound{Priced: true})
		if err != nil {
			return err
		}
		s.settle(r, r.Settle(base, 0, 0))
	}
	return nil
}

// Hold holds the reservations beyond the request, for work that continues at a provider. It
// returns the argument for Inherit; see ledger.Reservation.Hold.
func (s *Spending) Hold(base context.Context, until time.Time) ([]ledger.Held, error) {
	spent := s.spent()
	held, err := s.reserved.Hold(base, until, spent)
	its, err2 := s.held.reserved.Hold(base, until, s.held.used(spent))
	s.reserved, s.held = nil, targetHold{}
	return append(held, its...), errors.Join(err, err2)
}

// Inherit takes over the reservations of an earlier request for work that ended during this one.
// Settle settles them at this request's charge.
func (s *Spending) Inherit(held []ledger.Held) { s.inherited = append(s.inherited, held...) }

// Inherited reports whether an earlier request has reserved what this one is charged.
func (s *Spending) Inherited() bool { return len(s.inherited) > 0 }

// settleInherited settles the reservations of earlier requests. If this request has its own
// reservation, that is charged, and the inherited ones are released.
func settleInherited(s *Spending, base context.Context, l *ledger.Ledger) {
	if len(s.inherited) == 0 {
		return
	}
	used := s.spent()
	if s.HasReservation() {
		used = ledger.Used{}
	}
	entries, err := l.SettleHeld(base, s.inherited, used)
	if err != nil {
		s.failed = append(s.failed, err)
	}
	s.Entries, s.inherited = append(s.Entries, entries...), nil
}

// Settle settles the request's reservations, once: budgets get back the unused part, rates count
// the tokens. failure is the reason why the client got no successful response; if a limit
// rejected the request before anything was sent, it counts against no limit. The errors come
// from budgets that the repair will settle.
//
// other is that of the attempt whose response is not used; nil if there was none. It settles its own
// reservations, and its calls, usage and cost become part of s.
func (s *Spending) Settle(base context.Context, l *ledger.Ledger, failure *fault.Fault, other *Spending) []error {
	settleInherited(s, base, l)
	settleReserved(s, base)
	if other != nil {
		settleReserved(other, base)
		join(s, other)
	}
	if failure != nil && ofLimit(failure.Code) && len(s.Attempts) == 0 {
		s.admitted.Return(base)
	}
	s.admitted.SettleTokens(base, s.Usage.TotalTokens())
	return s.failed
}

// settleReserved settles the budgets of one attempt, and the rates of its targets.
func settleReserved(s *Spending, base context.Context) {
	settleTarget(s, base)
	if r := s.reserved; r != nil {
		if len(s.Attempts) == 0 {
			s.settle(r, r.Release(base)) // nothing was sent
		} else {
			s.settle(r, r.Settle(base, s.Cost, s.Usage.TotalTokens()))
		}
	}
	for _, a := range s.admittedTargets {
		a.SettleTokens(base, s.Usage.TotalTokens())
	}
}

// join adds what another attempt of the same request has called, used and settled. Both have
// settled their budgets; the rates of the caller count the sum.
func join(s, other *Spending) {
	s.Attempts = append(s.Attempts, other.Attempts...)
	sort.SliceStable(s.Attempts, func(i, j int) bool { return s.Attempts[i].Start < s.Attempts[j].Start })
	s.Usage, s.Cost = s.Usage.Sum(other.Usage), s.Cost+other.Cost
	if other.Tariff != "" {
		for line := range strings.SplitSeq(other.Tariff, lines) {
			note(s, line)
		}
	}
	s.Priced = s.Priced && (other.Priced || other.Cost == 0 && other.Usage == pricing.Usage{})
	s.Entries, s.failed = append(s.Entries, other.Entries...), append(s.failed, other.failed...)
	if s.admitted == nil {
		s.admitted, other.admitted = other.admitted, nil
	}
}

// Second makes s that of a second attempt of a request, which the first one counts.
func (s *Spending) Second() { s.second = true }

// MarkSuperseded records in the last call that the response of another attempt is used.
func (s *Spending) MarkSuperseded() {
	if at := s.Last(); at != nil {
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
func settleTarget(s *Spending, base context.Context) {
	h := &s.held
	if h.reserved == nil {
		return
	}
	if len(s.Attempts) == h.attempts {
		s.settle(h.reserved, h.reserved.Release(base))
	} else {
		used := h.used(s.spent())
		s.settle(h.reserved, h.reserved.Settle(base, used.Cost, used.Tokens))
	}
	s.held = targetHold{}
}

// settle records the result of a settlement.
func (s *Spending) settle(r *ledger.Reservation, err error) {
	if err != nil {
		s.failed = append(s.failed, err)
	}
	s.Entries = append(s.Entries, r.Entries()...)
}

// ReserveTokens reserves what a request may need from the rates that count tokens, once.
func (s *Spending) ReserveTokens(ctx context.Context, bound int64) error {
	if err := s.admitted.ReserveTokens(ctx, bound); err != nil {
		return err
	}
	for _, a := range s.admittedTargets {
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
			if budgeted == nil {
				budgeted = make([]*ledger.Subject, 0, len(of))
			}
			budgeted = append(budgeted, s)
		}
	}
	return budgeted
}

// TakeAttempts is the memory of the calls, emptied, for another request.
func (s *Spending) TakeAttempts() []usage.Attempt {
	clear(s.Attempts)
	return s.Attempts[:0]
}

// Reuse gives the request the memory that TakeAttempts of another one returned.
func (s *Spending) Reuse(attempts []usage.Attempt) { s.Attempts = attempts }

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

package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// Before more is spent, what the request was already charged and what can still come must
// fit; what does not fit is rejected and leaves the reservation as it was: for every
// measure, and whether or not repair has settled the entry.
func TestAFurtherAttemptIsReservedBesideWhatWasSpent(t *testing.T) {
	t.Parallel()
	of := map[Measure]func(n, spent int64) Bound{
		Cost: func(n, spent int64) Bound {
			return Bound{Priced: true, Cost: pricing.NanoDollars(n), Charged: Used{Cost: pricing.NanoDollars(spent)}}
		},
		Tokens: func(n, spent int64) Bound { return Bound{Priced: true, Tokens: n, Charged: Used{Tokens: spent}} },
	}
	for m, bound := range of {
		for _, repaired := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, repaired %t", m, repaired), func(t *testing.T) {
				t.Parallel()
				h := clockAt("2026-11-20T14:00:00Z")
				l := New(newMemory(), h.now, Hooks{})
				s := budgeted(Key, "k", UsageLimit{Type: m, CreditLimit: 100})
				r, err := l.Reserve(ctx, "r", []*Subject{s}, bound(40, 0))
				if err != nil {
					t.Fatal(err)
				}
				if repaired {
					h.add(2 * SettleAfter)
					if b := stateOf(t, l, s); b.Usage != 40 {
						t.Fatalf("%+v", b)
					}
				}
				for _, turn := range []struct {
					spent, held int64 // held is reserved or settled by repair
					fits        bool
				}{{0, 40, true}, {30, 70, true}, {60, 100, true}, {61, 100, false}, {1000, 100, false}} {
					err := r.Raise(ctx, bound(40, turn.spent))
					if turn.fits != (err == nil) || err != nil && !fault.Is(err, fault.BudgetExhausted) {
						t.Errorf("%d spent: %v", turn.spent, err)
					}
					if b := stateOf(t, l, s); b.Reserved+b.Usage != turn.held {
						t.Errorf("%d spent: %+v; want %d", turn.spent, b, turn.held)
					}
				}
				if err := r.Settle(ctx, pricing.NanoDollars(90), 90); err != nil {
					t.Fatal(err)
				}
				if b := stateOf(t, l, s); b.Usage != 90 || b.Reserved != 0 {
					t.Errorf("%+v", b)
				}
			})
		}
	}
}

// The record of an entry that is never settled contains the earlier charges of other budgets of
// the request.
func TestTheRecordOfAnEntryHasWhatWasChargedBefore(t *testing.T) {
	t.Parallel()
	h := clockAt("2026-11-20T14:00:00Z")
	var got []Unconfirmed
	l := New(newMemory(), h.now, Hooks{Unconfirmed: func(_ context.Context, u Unconfirmed) error { got = append(got, u); return nil }})
	s := budgeted(Key, "k", UsageLimit{Type: Cost, CreditLimit: 1000})
	b := Bound{Priced: true, Cost: 40, Tokens: 4, Before: Used{Cost: 7, Tokens: 3}}
	if _, err := l.Reserve(ctx, "r", []*Subject{s}, b); err != nil {
		t.Fatal(err)
	}
	h.add(SettleAfter + time.Second)
	if state := stateOf(t, l, s); state.Usage != 40 {
		t.Errorf("%+v", state)
	}
	if len(got) != 1 || got[0].Cost != 47 || got[0].Tokens != 7 || got[0].Requests != 1 {
		t.Errorf("%+v", got)
	}
}

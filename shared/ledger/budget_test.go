package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
)

var ctx = context.Background()

func budgeted(kind Kind, id string, budgets ...UsageLimit) *Subject {
	return &Subject{Scope: tenant, Kind: kind, ID: id, Label: id + "-label", Budgets: budgets}
}

func dollars(n float64) UsageLimit { return UsageLimit{Type: Cost, CreditLimit: int64(n * dollar)} }

func cost(n float64) Bound { return Bound{Cost: pricing.NanoDollars(n * dollar), Priced: true} }

func (b Bound) tokens(n int64) Bound { b.Tokens = n; return b }

// spend reserves and settles one request.
func spend(t *testing.T, l *Ledger, amount float64, subjects ...*Subject) bool {
	t.Helper()
	r, err := l.Reserve(ctx, "req", subjects, cost(amount))
	if err != nil {
		if !fault.Is(err, fault.BudgetExhausted) {
			t.Fatal(err)
		}
		return false
	}
	if err := r.Settle(ctx, pricing.NanoDollars(amount*dollar), 0); err != nil {
		t.Fatal(err)
	}
	return true
}

// stateOf is the state of the subject's only budget.
func stateOf(t *testing.T, l *Ledger, s *Subject) BudgetState {
	t.Helper()
	states, err := l.State(ctx, s)
	if err != nil || len(states) != 1 {
		t.Fatalf("%v, %v", states, err)
	}
	return states[0]
}

func TestPeriodsRollOnTouch(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		l := New(st, h.now, Hooks{})
		limit := UsageLimit{Type: Cost, CreditLimit: dollar, Cadence: Monthly}
		limit.Prepare(nil, h.now())
		s := budgeted(Key, "k", limit)
		if b := stateOf(t, l, s); !b.NextResetAt.Equal(at("2026-12-01")) || !b.LastResetAt.IsZero() || b.Status != Active {
			t.Errorf("before the first request: %+v", b)
		}
		spend(t, l, 1, s)
		h.set("2026-11-30T23:59:59Z")
		if spend(t, l, 0.1, s) {
			t.Error("the period has not ended")
		}
		open, err := l.Reserve(ctx, "r", []*Subject{budgeted(Key, "other", limit)}, cost(0.5))
		if err != nil {
			t.Fatal(err)
		}
		h.set("2026-12-01T00:00:00Z")
		if b := stateOf(t, l, s); b.Usage != 0 || b.Status != Active || !b.LastResetAt.Equal(at("2026-12-01")) || !b.NextResetAt.Equal(at("2027-01-01")) {
			t.Errorf("at the reset, untouched: %+v", b)
		}
		if !spend(t, l, 0.7, s) {
			t.Error("refused in a new period")
		}
		if b := stateOf(t, l, s); b.Usage != 0.7*dollar || !b.LastResetAt.Equal(at("2026-12-01")) {
			t.Errorf("%+v", b)
		}
		// Requests in flight over the end keep their reservation, and count when settled.
		other := budgeted(Key, "other", limit)
		if spend(t, l, 0.6, other) || !spend(t, l, 0.5, other) {
			t.Error("an open entry holds its money in the new period")
		}
		if err := open.Settle(ctx, 0.2*dollar, 0); err != nil {
			t.Fatal(err)
		}
		if b := stateOf(t, l, other); b.Usage != 0.7*dollar || b.Reserved != 0 {
			t.Errorf("%+v", b)
		}
		// Missed periods are caught up.
		h.set("2027-05-17T08:00:00Z")
		if !spend(t, l, 1, s) {
			t.Error("refused months later")
		}
		if b := stateOf(t, l, s); !b.LastResetAt.Equal(at("2027-05-01")) || !b.NextResetAt.Equal(at("2027-06-01")) {
			t.Errorf("%+v", b)
		}
	})
}

func TestChangesOfLimits(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		var alerts []string
		l := New(st, h.now, Hooks{Alert: func(_ context.Context, a Alert) error {
			kind := "threshold"
			if a.Exhausted {
				kind = "exhausted"
			}
			alerts = append(alerts, fmt.Sprintf("%s %s at %s", a.ID, kind, a.Budget.Amount(a.Usage)))
			return nil
		}})
		version := int64(0)
		var limit *UsageLimit
		set := func(credit, threshold float64) *Subject {
			u := UsageLimit{Type: Cost, CreditLimit: int64(credit * dollar), AlertThreshold: int64(threshold * dollar)}
			u.Prepare(limit, h.now())
			limit = &u
			version++
			s := budgeted(Key, "k", u)
			s.Revision = version
			return s
		}
		expect := func(what string, s *Subject, spent float64, status string, flags ...bool) {
			t.Helper()
			b := stateOf(t, l, s)
			if b.Usage != int64(spent*dollar) || b.Status != status || b.ThresholdAlert != flags[0] || b.ExhaustedAlert != flags[1] {
				t.Errorf("%s: %+v", what, b)
			}
		}
		s := set(1, 0.5)
		spend(t, l, 0.4, s)
		expect("below", s, 0.4, Active, false, false)
		spend(t, l, 0.2, s)
		spend(t, l, 0.1, s)
		expect("over the threshold", s, 0.7, Active, true, false)
		spend(t, l, 0.3, s)
		expect("exhausted", s, 1, Exhausted, true, true)

		old := s
		s = set(2, 0.5)
		expect("raised", s, 1, Active, false, false)
		if !spend(t, l, 0.1, s) {
			t.Error("a raised limit refuses")
		}
		expect("raised, used: the threshold is crossed again", s, 1.1, Active, true, false)
		if !spend(t, l, 0.1, old) {
			t.Error("a process that still has the old limits lowers the new ones")
		}
		s = set(2, 1.5)
		expect("threshold raised", s, 1.2, Active, false, false)
		s = set(2, 0)
		expect("threshold removed", s, 1.2, Active, false, false)
		s = set(1, 0)
		expect("lowered below usage", s, 1.2, Exhausted, false, false)
		if spend(t, l, 0.01, s) {
			t.Error("a lowered limit lets through")
		}
		limit.ResetUsage(h.now())
		s = set(1, 0)
		expect("reset by hand", s, 0, Active, false, false)
		if b := stateOf(t, l, s); !b.LastResetAt.Equal(h.now()) {
			t.Errorf("last reset %s", b.LastResetAt)
		}
		if !spend(t, l, 1, s) || spend(t, l, 0.1, s) {
			t.Error("after the reset there is one dollar again")
		}
		h.add(time.Second)
		limit = nil // removed, and set again: the previous count is cleared
		s = set(1, 0)
		expect("set anew", s, 0, Active, false, false)
		if !spend(t, l, 0.9, s) {
			t.Error("a limit set anew refuses")
		}
		if err := l.Reset(ctx, s); err != nil {
			t.Fatal(err)
		}
		expect("reset of the row", s, 0, Active, false, false)
		if err := l.Apply(ctx, set(3, 0)); err != nil {
			t.Fatal(err)
		}
		want := []string{"k threshold at 0.6", "k exhausted at 1", "k threshold at 1.1", "k exhausted at 1.2", "k exhausted at 1"}
		if fmt.Sprint(alerts) != fmt.Sprint(want) {
			t.Errorf("alerts %q, want %q", alerts, want)
		}
	})
}

func TestAFailedAlertIsRepeated(t *testing.T) {
	fail, sent := true, 0
	l := New(newMemory(), time.Now, Hooks{Alert: func(context.Context, Alert) error {
		if fail {
			return errors.New("no queue")
		}
		sent++
		return nil
	}})
	s := budgeted(Key, "k", UsageLimit{Type: Cost, CreditLimit: dollar, AlertThreshold: dollar / 2})
	spend(t, l, 0.6, s)
	fail = false
	spend(t, l, 0.1, s)
	spend(t, l, 0.1, s)
	if sent != 1 {
		t.Errorf("given %d times", sent)
	}
}

func TestBudgetsAddedAndRemovedUnderWay(t *testing.T) {
	h := clockAt("2026-11-20T14:00:00Z")
	m := newMemory()
	l := New(m, h.now, Hooks{})
	both := []UsageLimit{{Type: Cost, CreditLimit: dollar, SetAt: h.now()}, {Type: Tokens, CreditLimit: 1000, SetAt: h.now()}}
	one := budgeted(Workspace, "w", both[0])
	first, err := l.Reserve(ctx, "r", []*Subject{one}, cost(0.3).tokens(100))
	if err != nil {
		t.Fatal(err)
	}
	two := budgeted(Workspace, "w", both...)
	second, err := l.Reserve(ctx, "r", []*Subject{two}, cost(0.3).tokens(600))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Settle(ctx, 0.1*dollar, 80); err != nil { // set after it began: not counted
		t.Fatal(err)
	}
	states, _ := l.State(ctx, two)
	if states[0].Usage != 0.1*dollar || states[1].Usage != 0 || states[1].Reserved != 600 {
		t.Errorf("%+v", states)
	}
	one = budgeted(Workspace, "w", both[0]) // tokens removed with an entry open
	if !spend(t, l, 0.1, one) {
		t.Fatal("refused")
	}
	if err := second.Settle(ctx, 0.2*dollar, 500); err != nil {
		t.Fatal(err)
	}
	h.add(time.Minute)
	both[1].SetAt = h.now() // and set again
	two = budgeted(Workspace, "w", both...)
	r, err := l.Reserve(ctx, "r", []*Subject{two}, cost(0.1).tokens(1000))
	if err != nil {
		t.Fatalf("a limit set anew has all of its tokens: %v", err)
	}
	if err := r.Settle(ctx, 0.1*dollar, 900); err != nil {
		t.Fatal(err)
	}
	states, _ = l.State(ctx, two)
	if states[0].Usage != 0.5*dollar || states[1].Usage != 900 {
		t.Errorf("%+v", states)
	}
	checkBalance(t, m, two)
}

func checkBalance(t *testing.T, m *memory, s *Subject) totals {
	t.Helper()
	got, _ := m.totals(s.derive().head)
	for i := range got.limit {
		if got.available[i] != got.limit[i]-got.spent[i]-got.open[i] {
			t.Fatalf("%s: available %d = limit %d - spent %d - open %d does not hold", slotMeasure[i], got.available[i], got.limit[i], got.spent[i], got.open[i])
		}
	}
	return got
}

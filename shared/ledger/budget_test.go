package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
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

func TestReserveSettle(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		l := New(st, h.now, Hooks{})
		s := &Subject{Scope: tenant, Kind: Key, ID: "k", Label: "ci", Budgets: []UsageLimit{dollars(1), {Type: Tokens, CreditLimit: 1000}}}
		r, err := l.Reserve(ctx, "01J9ZQ5M8T3V4W5X6Y7Z8A9B0C", []*Subject{s}, cost(0.4).tokens(300))
		if err != nil {
			t.Fatal(err)
		}
		if r.Entries() != nil {
			t.Error("entries before the settle have no amounts")
		}
		states, err := l.State(ctx, s)
		if err != nil || states[0].Reserved != 0.4*dollar || states[1].Reserved != 300 || states[0].Usage != 0 {
			t.Errorf("%+v, %v", states, err)
		}
		_, err = l.Reserve(ctx, "r2", []*Subject{s}, cost(0.61).tokens(1))
		if f := fault.From(err); f.Code != fault.BudgetExhausted || f.Status() != 412 || !strings.Contains(f.Message, `cost budget of API key "ci"`) || !strings.Contains(f.Message, "$0.6,") {
			t.Errorf("cost: %v", err)
		}
		_, err = l.Reserve(ctx, "r3", []*Subject{s}, cost(0.1).tokens(701))
		if !fault.Is(err, fault.BudgetExhausted) || !strings.Contains(err.Error(), "tokens budget") {
			t.Errorf("tokens: %v", err)
		}
		for range 2 {
			if err := r.Settle(ctx, 0.25*dollar, 120); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Release(ctx); err != nil {
			t.Fatal(err)
		}
		entries := r.Entries()
		if len(entries) != 1 || entries[0].Amount != 0.25*dollar {
			t.Fatalf("entries %+v", entries)
		}
		for range 3 { // the backstop finds nothing to do
			if err := l.SettleEntry(ctx, entries[0]); err != nil {
				t.Fatal(err)
			}
		}
		states, err = l.State(ctx, s)
		if err != nil || states[0].Usage != 0.25*dollar || states[1].Usage != 120 || states[0].Reserved != 0 || states[0].Status != Active {
			t.Errorf("%+v, %v", states, err)
		}
		if r, err = l.Reserve(ctx, "r4", []*Subject{s}, cost(0.75).tokens(880)); err != nil {
			t.Fatal(err)
		}
		if err := r.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if r, err = l.Reserve(ctx, "r5", []*Subject{s}, cost(0.75)); err != nil {
			t.Fatal(err)
		}
		if err := r.Settle(ctx, 0.75*dollar, 0); err != nil {
			t.Fatal(err)
		}
		states, _ = l.State(ctx, s)
		if states[0].Status != Exhausted || states[1].Status != Active {
			t.Errorf("%+v", states)
		}
		if err := l.Clear(ctx, s); err != nil {
			t.Fatal(err)
		}
		if states, _ = l.State(ctx, s); states[0].Usage != 0 {
			t.Errorf("cleared: %+v", states)
		}
	})
}

func TestReserveCostsOneOperation(t *testing.T) {
	m := newMemory()
	l := New(m, time.Now, Hooks{})
	s := budgeted(Key, "k", dollars(10))
	spend(t, l, 0.1, s)
	before := m.ops.Load()
	r, err := l.Reserve(ctx, "r", []*Subject{s}, cost(1))
	if n := m.ops.Load() - before; err != nil || n != 1 {
		t.Errorf("%d operations to reserve, %v", n, err)
	}
	before = m.ops.Load()
	if err := r.Raise(ctx, cost(0.5)); err != nil || m.ops.Load() != before {
		t.Errorf("a raise to less costs something, %v", err)
	}
	if err := r.Raise(ctx, cost(2)); err != nil || m.ops.Load() != before+1 {
		t.Errorf("%d operations to raise, %v", m.ops.Load()-before, err)
	}
	before = m.ops.Load()
	if err := r.Settle(ctx, dollar, 0); err != nil || m.ops.Load() != before+1 {
		t.Errorf("%d operations to settle, %v", m.ops.Load()-before, err)
	}
}

func TestARefusedBudgetGivesTheOthersBack(t *testing.T) {
	l := New(newMemory(), time.Now, Hooks{})
	key, workspace, policy := budgeted(Key, "k", dollars(1)), budgeted(Workspace, "w", dollars(0.5)), budgeted(Policy, "p", dollars(0.5))
	for range 3 {
		_, err := l.Reserve(ctx, "r", []*Subject{policy, workspace, key}, cost(0.6))
		if !fault.Is(err, fault.BudgetExhausted) || !strings.Contains(err.Error(), `workspace "w-label"`) {
			t.Fatalf("the first in the documented order is the workspace: %v", err)
		}
	}
	if !spend(t, l, 1, key) || !spend(t, l, 0.5, workspace, policy) {
		t.Error("a refused request kept money")
	}
}

func TestFreeAndUnpricedRequests(t *testing.T) {
	l := New(newMemory(), time.Now, Hooks{})
	s := budgeted(Key, "k", dollars(1))
	if !spend(t, l, 1, s) || spend(t, l, 0.01, s) {
		t.Fatal("one dollar is one dollar")
	}
	free, err := l.Reserve(ctx, "r", []*Subject{s}, Bound{Priced: true, Tokens: 5000})
	if err != nil {
		t.Fatalf("a free request on an exhausted budget: %v", err)
	}
	if err := free.Settle(ctx, 0, 100); err != nil || free.Entries() != nil {
		t.Errorf("%v, %v", err, free.Entries())
	}
	if _, err := l.Reserve(ctx, "r", []*Subject{s}, Bound{Tokens: 5}); !fault.Is(err, fault.UnpricedModel) {
		t.Errorf("an unknown price: %v", err)
	}
	allow := budgeted(Key, "k2", dollars(1))
	allow.Unpriced = UnpricedAllow
	for range 2 {
		r, err := l.Reserve(ctx, "r", []*Subject{allow}, Bound{Tokens: 5})
		if err != nil {
			t.Fatalf("an unknown price, allowed: %v", err)
		}
		// It turned out to cost something after all.
		if err := r.Settle(ctx, 0.5*dollar, 5); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Reserve(ctx, "r", []*Subject{allow}, Bound{Tokens: 5}); !fault.Is(err, fault.BudgetExhausted) {
		t.Errorf("an unknown price on an exhausted budget: %v", err)
	}
	tokens := budgeted(Key, "k3", UsageLimit{Type: Tokens, CreditLimit: 100})
	if _, err := l.Reserve(ctx, "r", []*Subject{tokens}, Bound{Tokens: 5}); err != nil {
		t.Errorf("an unknown price without a cost budget: %v", err)
	}
}

func TestAChargeThatWasNotForeseenIsMade(t *testing.T) {
	l := New(newMemory(), time.Now, Hooks{})
	s := budgeted(Key, "k", dollars(1))
	r, err := l.Reserve(ctx, "r", []*Subject{s}, Bound{Priced: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Settle(ctx, 1.5*dollar, 0); err != nil {
		t.Fatal(err)
	}
	if b := stateOf(t, l, s); b.Usage != 1.5*dollar || b.Status != Exhausted {
		t.Errorf("%+v", b)
	}
}

func TestAssumedBoundsTakeWhatIsLeft(t *testing.T) {
	l := New(newMemory(), time.Now, Hooks{})
	s := budgeted(Key, "k", UsageLimit{Type: Tokens, CreditLimit: 100})
	guess := Bound{Priced: true, Tokens: 4096, Assumed: true}
	r, err := l.Reserve(ctx, "r", []*Subject{s}, guess)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reserve(ctx, "r", []*Subject{s}, guess); !fault.Is(err, fault.BudgetExhausted) {
		t.Errorf("nothing is left: %v", err)
	}
	if err := r.Raise(ctx, Bound{Priced: true, Tokens: 8192, Assumed: true}); !fault.Is(err, fault.BudgetExhausted) {
		t.Errorf("a raise with nothing left: %v", err)
	}
	if err := r.Settle(ctx, 0, 30); err != nil {
		t.Fatal(err)
	}
	if r, err = l.Reserve(ctx, "r", []*Subject{s}, guess); err != nil {
		t.Fatalf("70 are left: %v", err)
	}
	if err := r.Settle(ctx, 0, 70); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Reserve(ctx, "r", []*Subject{s}, guess); !fault.Is(err, fault.BudgetExhausted) {
		t.Errorf("exhausted: %v", err)
	}
}

func TestRaise(t *testing.T) {
	h := clockAt("2026-11-20T14:00:00Z")
	m := newMemory()
	l := New(m, h.now, Hooks{})
	s, other := budgeted(Key, "k", dollars(1)), budgeted(Workspace, "w", dollars(0.5))
	r, err := l.Reserve(ctx, "r", []*Subject{s, other}, cost(0.2))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Raise(ctx, cost(0.5)); err != nil {
		t.Fatal(err)
	}
	if err := r.Raise(ctx, cost(0.6)); !fault.Is(err, fault.BudgetExhausted) || !strings.Contains(err.Error(), "workspace") {
		t.Errorf("%v", err)
	}
	if err := r.Raise(ctx, Bound{}); !fault.Is(err, fault.UnpricedModel) {
		t.Errorf("a fallback without a price: %v", err)
	}
	// Renewing keeps repair away from a long session.
	for range 4 {
		h.add(Due/2 + time.Minute)
		if err := r.Raise(ctx, cost(0.5)); err != nil {
			t.Fatal(err)
		}
		if b := stateOf(t, l, other); b.Reserved != 0.5*dollar || b.Usage != 0 {
			t.Fatalf("%+v", b)
		}
	}
	if err := r.Settle(ctx, 0.3*dollar, 0); err != nil {
		t.Fatal(err)
	}
	if b := stateOf(t, l, s); b.Usage != 0.3*dollar || b.Reserved != 0 {
		t.Errorf("%+v", b)
	}
	// A free first target, then a priced one.
	if r, err = l.Reserve(ctx, "r", []*Subject{s}, Bound{Priced: true}); err != nil {
		t.Fatal(err)
	}
	if err := r.Raise(ctx, cost(0.7)); err != nil {
		t.Fatal(err)
	}
	if b := stateOf(t, l, s); b.Reserved != 0.7*dollar {
		t.Errorf("%+v", b)
	}
	if err := r.Release(ctx); err != nil {
		t.Fatal(err)
	}
}

func TestRepairSettlesAtTheBound(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		var reported []Unconfirmed
		refuse := true
		l := New(st, h.now, Hooks{Unconfirmed: func(_ context.Context, u Unconfirmed) error {
			if refuse {
				return errors.New("the queue is down")
			}
			reported = append(reported, u)
			return nil
		}})
		s := budgeted(Key, "k", dollars(1))
		var lost []*Reservation
		for i := range 10 {
			r, err := l.Reserve(ctx, fmt.Sprintf("lost-%d", i), []*Subject{s}, cost(0.05))
			if err != nil {
				t.Fatal(err)
			}
			lost = append(lost, r)
		}
		h.add(Due - time.Second)
		if b := stateOf(t, l, s); b.Usage != 0 || b.Reserved != 0.5*dollar {
			t.Errorf("repaired too early: %+v", b)
		}
		h.add(time.Second)
		if b := stateOf(t, l, s); b.Usage != 0 || b.Reserved != 0.5*dollar {
			t.Errorf("repaired without a record: %+v", b)
		}
		refuse = false
		if !spend(t, l, 0.1, s) { // the touch of a reserve
			t.Fatal("refused")
		}
		if b := stateOf(t, l, s); b.Usage != 0.6*dollar || b.Reserved != 0 {
			t.Errorf("%+v", b)
		}
		ids := map[string]bool{}
		for _, u := range reported {
			if ids[u.RequestID] = true; u.Cost != 0.05*dollar || u.Scope != tenant || u.Kind != Key || u.ID != "k" || !u.Reserved.Equal(at("2026-11-20T14:00:00Z")) {
				t.Errorf("%+v", u)
			}
		}
		if len(ids) != 10 {
			t.Errorf("%d records of 10", len(ids))
		}
		for _, r := range lost { // a settle that comes too late does not count twice
			if err := r.Settle(ctx, 0.01*dollar, 0); err != nil {
				t.Fatal(err)
			}
		}
		if b := stateOf(t, l, s); b.Usage != 0.6*dollar {
			t.Errorf("%+v", b)
		}
	})
}

func TestASessionLongerThanRepairIsChargedOnce(t *testing.T) {
	h := clockAt("2026-11-20T14:00:00Z")
	l := New(newMemory(), h.now, Hooks{})
	s := budgeted(Key, "k", dollars(1))
	r, err := l.Reserve(ctx, "r", []*Subject{s}, cost(0.2))
	if err != nil {
		t.Fatal(err)
	}
	h.add(2 * Due)
	if b := stateOf(t, l, s); b.Usage != 0.2*dollar {
		t.Fatalf("%+v", b)
	}
	if err := r.Raise(ctx, cost(0.5)); err != nil {
		t.Fatal(err)
	}
	if b := stateOf(t, l, s); b.Usage != 0.2*dollar || b.Reserved != 0.3*dollar {
		t.Fatalf("%+v", b)
	}
	if err := r.Settle(ctx, 0.4*dollar, 0); err != nil {
		t.Fatal(err)
	}
	if b := stateOf(t, l, s); b.Usage != 0.4*dollar || b.Reserved != 0 {
		t.Errorf("%+v", b)
	}
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
		// What is under way over the end holds its money, and counts when settled.
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
		limit = nil // removed, and set again: what was counted before is gone
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
		want := []string{"k threshold at 0.6", "k exhausted at 1", "k threshold at 1.1", "k exhausted at 1"}
		if fmt.Sprint(alerts) != fmt.Sprint(want) {
			t.Errorf("alerts %q, want %q", alerts, want)
		}
	})
}

func TestAnAlertThatFailsIsGivenAgain(t *testing.T) {
	fail, given := true, 0
	l := New(newMemory(), time.Now, Hooks{Alert: func(context.Context, Alert) error {
		if fail {
			return errors.New("no queue")
		}
		given++
		return nil
	}})
	s := budgeted(Key, "k", UsageLimit{Type: Cost, CreditLimit: dollar, AlertThreshold: dollar / 2})
	spend(t, l, 0.6, s)
	fail = false
	spend(t, l, 0.1, s)
	spend(t, l, 0.1, s)
	if given != 1 {
		t.Errorf("given %d times", given)
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

func TestMoneyFailsClosed(t *testing.T) {
	m := newMemory()
	l := New(m, time.Now, Hooks{})
	s := budgeted(Key, "k", dollars(1))
	for _, err := range []error{store.ErrThrottled, store.ErrContended, errors.New("no route")} {
		m.before = func(context.Context, bool) fate { return fate{drop: err} }
		_, got := l.Reserve(ctx, "r", []*Subject{s}, cost(0.1))
		if !fault.Is(got, fault.ServiceUnavailable) || fault.From(got).Status() != 503 || !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	// A settle that fails may be called again, and the worker may do it.
	m.before = nil
	r, err := l.Reserve(ctx, "r", []*Subject{s}, cost(0.5))
	if err != nil {
		t.Fatal(err)
	}
	m.before = func(context.Context, bool) fate { return fate{lose: store.ErrUncertain} }
	if err := r.Settle(ctx, 0.4*dollar, 0); !fault.Is(err, fault.ServiceUnavailable) {
		t.Errorf("%v", err)
	}
	m.before = nil
	if err := r.Settle(ctx, 0.4*dollar, 0); err != nil {
		t.Error(err)
	}
	for _, e := range r.Entries() {
		if err := l.SettleEntry(ctx, e); err != nil {
			t.Error(err)
		}
	}
	if b := stateOf(t, l, s); b.Usage != 0.4*dollar || b.Reserved != 0 {
		t.Errorf("%+v", b)
	}
	for _, e := range []usage.Settle{{}, {PK: "ORG#a", Entry: "x"}, {PK: "SYS#a", Entry: "x:1:1:-#0"}, {PK: "ORG#a", Entry: "x:-1:1:-#0"}} {
		if err := l.SettleEntry(ctx, e); err == nil {
			t.Errorf("%+v is taken", e)
		}
	}
}

func TestASettleGoesOnWhenTheClientHasLeft(t *testing.T) {
	m := newMemory()
	m.before = func(ctx context.Context, _ bool) fate { return fate{drop: ctx.Err()} }
	l := New(m, time.Now, Hooks{})
	s := budgeted(Key, "k", dollars(1))
	gone, leave := context.WithCancel(ctx)
	r, err := l.Reserve(gone, "r", []*Subject{s}, cost(0.5))
	if err != nil {
		t.Fatal(err)
	}
	leave()
	if err := r.Settle(gone, 0.4*dollar, 0); err != nil {
		t.Fatal(err)
	}
	if b := stateOf(t, l, s); b.Usage != 0.4*dollar {
		t.Errorf("%+v", b)
	}
}

// 500 calls on one dollar that are good for 100 at their bounds.
func TestParallelCallsNeverSettleAboveTheBudget(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		l := New(st, time.Now, Hooks{Failed: func(_ context.Context, what string, err error) { t.Error(what, err) }})
		calls := crowd(st, 500)
		limit := int64(calls) * dollar / 500
		s := budgeted(Key, "k", UsageLimit{Type: Cost, CreditLimit: limit})
		var wg sync.WaitGroup
		var done, refused, bill atomic.Int64
		for i := range calls {
			wg.Go(func() {
				r, err := l.Reserve(ctx, fmt.Sprint(i), []*Subject{s}, cost(0.01))
				if fault.Is(err, fault.BudgetExhausted) {
					refused.Add(1)
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				actual := int64(0.01*dollar) - int64(i%3)*1_000_000
				if err := r.Settle(ctx, pricing.NanoDollars(actual), 0); err != nil {
					t.Error(err)
				}
				bill.Add(actual)
				done.Add(1)
			})
		}
		wg.Wait()
		b := stateOf(t, l, s)
		if b.Usage > limit || b.Usage != bill.Load() || b.Reserved != 0 || done.Load() < int64(calls/5) || done.Load()+refused.Load() != int64(calls) {
			t.Errorf("%d done, %d refused, bill %d, %+v", done.Load(), refused.Load(), bill.Load(), b)
		}
		t.Logf("%d done, %d refused, $%s of $%s settled", done.Load(), refused.Load(), formatDecimal(b.Usage, 9), formatDecimal(limit, 9))
	})
}

func TestBucketsOfAPolicy(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		l := New(st, time.Now, Hooks{})
		policy := budgeted(Policy, "p", UsageLimit{Type: Requests, CreditLimit: 2})
		for i, name := range []string{"user:a", "user:b#1", "user:c"} {
			s := budgeted(Policy, "p", policy.Budgets...)
			s.Bucket = name
			for range i {
				spend(t, l, 0, s)
			}
			spend(t, l, 0, s)
		}
		var got []string
		for after := ""; ; {
			page, next, err := l.Buckets(ctx, policy, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range page {
				got = append(got, fmt.Sprint(b.ValueKey, " ", b.Budgets[0].Usage, " ", b.Budgets[0].Status))
			}
			if after = next; after == "" {
				break
			}
		}
		if want := "[user:a 1 active user:b#1 2 exhausted user:c 2 exhausted]"; fmt.Sprint(got) != want {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestStatesReadsMany(t *testing.T) {
	l := New(newMemory(), time.Now, Hooks{})
	subjects := []*Subject{budgeted(Key, "a", dollars(1)), budgeted(Key, "b"), budgeted(Key, "c", dollars(2))}
	spend(t, l, 0.5, subjects[2])
	got, err := l.States(ctx, subjects)
	if err != nil || len(got) != 3 || got[0][0].Usage != 0 || got[1] != nil || got[2][0].Usage != 0.5*dollar {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestStateInTheAPI(t *testing.T) {
	var out []byte
	for _, b := range []BudgetState{
		{Limit: dollars(10), Status: Active},
		{Limit: UsageLimit{Type: Cost, CreditLimit: 10.5 * dollar, AlertThreshold: 8 * dollar, Cadence: Monthly, NextReset: at("2026-12-01"), SetAt: at("2026-11-20")},
			Usage: 1_234_567, Status: Active, NextResetAt: at("2027-01-01"), LastResetAt: at("2026-12-01"), ThresholdAlert: true},
		{Limit: UsageLimit{Type: Tokens, CreditLimit: 100, Cadence: Days, Days: 7}, Usage: 100, Status: Exhausted, ExhaustedAlert: true},
	} {
		raw, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, raw...), '\n')
	}
	golden(t, "state.json", out)
}

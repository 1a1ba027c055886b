package ledger

import (
	"context"
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

// Such a charge is made by the limits that are in force when it is made.
func TestAChargeThatWasNotForeseenMeetsALimitThatIsNew(t *testing.T) {
	t.Parallel()
	l := New(newMemory(), time.Now, Hooks{})
	before := budgeted(Key, "k", dollars(1))
	r, err := l.Reserve(ctx, "r", []*Subject{before}, Bound{Priced: true})
	if err != nil {
		t.Fatal(err)
	}
	after := budgeted(Key, "k", dollars(1), UsageLimit{Type: Tokens, CreditLimit: 100})
	after.Revision = before.Revision + 1
	if !spend(t, l, 0.1, before) {
		t.Fatal("refused")
	}
	if err := l.Apply(ctx, after); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Settle(ctx, 0.2*dollar, 39); err != nil {
			t.Fatal(err)
		}
	}
	all, err := l.State(ctx, after)
	if err != nil || all[0].Usage != 0.3*dollar || all[1].Usage != 39 || all[1].Reserved != 0 {
		t.Errorf("%+v, %v", all, err)
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
	if err := r.Raise(ctx, Bound{Priced: true, Tokens: 8192, Assumed: true}); err != nil {
		t.Errorf("a raise while the request holds all that is left: %v", err)
	}
	if err := r.Raise(ctx, Bound{Priced: true, Tokens: 8192, Assumed: true, Charged: Used{Tokens: 99}}); err != nil {
		t.Errorf("a further attempt with 1 left: %v", err)
	}
	if err := r.Raise(ctx, Bound{Priced: true, Tokens: 8192, Assumed: true, Charged: Used{Tokens: 100}}); !fault.Is(err, fault.BudgetExhausted) {
		t.Errorf("a further attempt with nothing left: %v", err)
	}
	if b := stateOf(t, l, s); b.Reserved != 100 {
		t.Errorf("%+v", b)
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
	// Renewing prevents the repair of a long session.
	for range 4 {
		h.add(SettleAfter/2 + time.Minute)
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

func TestMoneyFailsClosed(t *testing.T) {
	m := newMemory()
	l := New(m, time.Now, Hooks{})
	s := budgeted(Key, "k", dollars(1))
	for _, err := range []error{store.ErrThrottled, store.ErrContended, errors.New("no route")} {
		m.before = func(context.Context, operation) fate { return fate{drop: err} }
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
	m.before = func(context.Context, operation) fate { return fate{lose: store.ErrUncertain} }
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
	m.before = func(ctx context.Context, _ operation) fate { return fate{drop: ctx.Err()} }
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

package accounting

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage"
)

var ctx = context.Background()

func book(t *testing.T) *ledger.Ledger {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return ledger.New(s, time.Now, ledger.Hooks{})
}

// tokens is a subject that may use n tokens.
func tokens(kind ledger.Kind, id string, n int64) *ledger.Subject {
	return &ledger.Subject{Scope: store.Scope{Org: "o", Workspace: "w"}, Kind: kind, ID: id, Label: id, Budgets: []ledger.UsageLimit{{Type: ledger.Tokens, CreditLimit: n}}}
}

func standing(t *testing.T, l *ledger.Ledger, s *ledger.Subject) (used, reserved int64) {
	t.Helper()
	states, err := l.State(ctx, s)
	if err != nil || len(states) != 1 {
		t.Fatalf("%v %v", states, err)
	}
	return states[0].Usage, states[0].Reserved
}

func used(n int64) (u pricing.Usage) {
	u.Set(pricing.Output, n)
	return u
}

func bound(n int64) ledger.Bound { return ledger.Bound{Tokens: n, Priced: true} }

// call tries a target and charges it.
func (p *Spending) call(n int64) {
	p.Try(usage.Attempt{})
	p.Charge(used(n), pricing.Price{}, false)
}

// The caller pays for everything that was tried, each target for its own part; no reservation is
// left after settlement.
func TestEachPaysForItsOwn(t *testing.T) {
	t.Parallel()
	l, p := book(t), new(Spending)
	key, first, second := tokens(ledger.Key, "k", 1000), tokens(ledger.Provider, "a", 1000), tokens(ledger.Provider, "b", 1000)
	own := Budgeted(key, nil, &ledger.Subject{})
	for i, its := range []*ledger.Subject{first, second} {
		if !p.NeedsCost(own, nil) {
			t.Fatal("nobody asks what it costs")
		}
		if err := p.Reserve(ctx, ctx, l, "r", own, Budgeted(its), bound(100)); err != nil || !p.HasReservation() {
			t.Fatal(err)
		}
		p.call(int64(10 * (i + 1)))
		p.call(1) // again
	}
	if n, held := standing(t, l, first); n != 11 || held != 0 {
		t.Errorf("the first target: %d used, %d reserved", n, held)
	}
	if errs := p.Settle(ctx, l, nil, nil); len(errs) > 0 || len(p.Entries) != 3 {
		t.Errorf("%v, %d entries", errs, len(p.Entries))
	}
	for name, c := range map[string]struct {
		s    *ledger.Subject
		want int64
	}{"the key": {key, 32}, "the first target": {first, 11}, "the second": {second, 21}} {
		if n, held := standing(t, l, c.s); n != c.want || held != 0 {
			t.Errorf("%s: %d used, %d reserved", name, n, held)
		}
	}
	if p.Usage.TotalTokens() != 32 || len(p.Attempts) != 4 || p.Attempts[2].Usage.TotalTokens() != 20 || p.Priced {
		t.Errorf("%+v", p.Attempts)
	}
}

// Without a request to a provider nothing is charged; a request rejected by a limit counts
// against no rate, one rejected for another reason does.
func TestNothingSentIsNothingPaid(t *testing.T) {
	t.Parallel()
	for code, counted := range map[fault.Code]bool{fault.BudgetExhausted: false, fault.RateLimited: false, fault.UnpricedModel: false, fault.InvalidRequest: true} {
		l, p := book(t), new(Spending)
		key := tokens(ledger.Key, "k", 50)
		key.Rates = []ledger.RateLimit{{Type: ledger.Requests, Unit: ledger.PerDay, Value: 1}}
		if err := p.CountRequest(ctx, l, "", nil, key, nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Reserve(ctx, ctx, l, "r", Budgeted(key), nil, bound(40)); err != nil {
			t.Fatal(err)
		}
		if _, held := standing(t, l, key); held != 40 {
			t.Errorf("%d reserved", held)
		}
		p.Settle(ctx, l, fault.New(code, "", "x"), nil)
		if n, held := standing(t, l, key); n != 0 || held != 0 {
			t.Errorf("%s: %d used, %d reserved", code, n, held)
		}
		if err := new(Spending).CountRequest(ctx, l, "", key); (err != nil) != counted {
			t.Errorf("%s: the next request: %v", code, err)
		}
	}
}

// A request rejected by one target's limit is not charged to the others.
func TestTargetsThatAreRefusedAreGivenBack(t *testing.T) {
	t.Parallel()
	l, p := book(t), new(Spending)
	rated := &ledger.Subject{Scope: store.Scope{Org: "o", Workspace: "w"}, Kind: ledger.Provider, ID: "a", Label: "a", Rates: []ledger.RateLimit{{Type: ledger.Requests, Unit: ledger.PerDay, Value: 1}}}
	before := p.Counted()
	if err := p.CountTarget(ctx, l, "", []*ledger.Subject{rated, tokens(ledger.Integration, "i", 1)}); err != nil || p.Counted() != 1 {
		t.Fatal(err)
	}
	if err := new(Spending).CountTarget(ctx, l, "", []*ledger.Subject{rated}); !fault.Is(err, fault.RateLimited) {
		t.Errorf("a second request: %v", err)
	}
	p.ReturnCounts(ctx, before)
	if err := new(Spending).CountTarget(ctx, l, "", []*ledger.Subject{rated}); err != nil || p.Counted() != 0 {
		t.Errorf("what was given back: %v", err)
	}
}

// A further call is covered in addition to the charges for earlier calls, or rejected.
func TestAFurtherCallIsCovered(t *testing.T) {
	t.Parallel()
	l, p := book(t), new(Spending)
	key, its := tokens(ledger.Key, "k", 100), tokens(ledger.Provider, "a", 1000)
	if err := p.Reserve(ctx, ctx, l, "r", Budgeted(key), Budgeted(its), bound(40)); err != nil || p.NeedsExtension() {
		t.Fatal(err)
	}
	p.call(50)
	if !p.NeedsExtension() {
		t.Error("what was charged is not missed")
	}
	if err := p.ExtendReservation(ctx, bound(40)); err != nil || p.NeedsExtension() {
		t.Errorf("%v", err)
	}
	p.call(30)
	if err := p.ExtendReservation(ctx, bound(40)); !fault.Is(err, fault.BudgetExhausted) || !p.NeedsExtension() {
		t.Errorf("80 spent and 40 more of 100: %v", err)
	}
	p.Settle(ctx, l, nil, nil)
	if n, held := standing(t, l, key); n != 80 || held != 0 {
		t.Errorf("%d used, %d reserved", n, held)
	}
	if new(Spending).NeedsExtension() {
		t.Error("nothing reserved is short of nothing")
	}
}

// The usage of a call in progress is charged to its target, too, if the budget does not allow
// more of it.
func TestACallThatOutgrowsItsBudgetIsCharged(t *testing.T) {
	t.Parallel()
	l, p := book(t), new(Spending)
	its := tokens(ledger.Provider, "a", 100)
	if err := p.Reserve(ctx, ctx, l, "r", nil, Budgeted(its), bound(40)); err != nil {
		t.Fatal(err)
	}
	if !p.HasReservation() {
		t.Error("the budget of a target holds nothing")
	}
	if err := p.Cover(ctx, bound(80)); err != nil {
		t.Fatal(err)
	}
	if _, held := standing(t, l, its); held != 80 {
		t.Errorf("%d reserved, want 80", held)
	}
	if err := p.Cover(ctx, bound(120)); !fault.Is(err, fault.BudgetExhausted) {
		t.Errorf("120 of 100: %v", err)
	}
	if _, held := standing(t, l, its); held < 80 || !p.HasReservation() {
		t.Errorf("%d reserved once more was refused", held)
	}
	p.call(90)
	if errs := p.Settle(ctx, l, nil, nil); len(errs) > 0 || len(p.Entries) != 1 {
		t.Errorf("%v, %d entries", errs, len(p.Entries))
	}
	if n, held := standing(t, l, its); n != 90 || held != 0 {
		t.Errorf("%d used, %d reserved", n, held)
	}
}

// Spending without a reservation is charged in full: the budget that exceeds its limit rejects
// the next request.
func TestSpentMoneyIsAlwaysCharged(t *testing.T) {
	t.Parallel()
	l, p := book(t), new(Spending)
	key, workspace := tokens(ledger.Key, "k", 100), tokens(ledger.Workspace, "w", 10)
	p.call(60)
	p.Spend(ctx, l, "r", Budgeted(key), nil, Budgeted(workspace))
	if errs := p.Settle(ctx, l, nil, nil); len(errs) > 0 || len(p.Entries) != 2 {
		t.Errorf("%v, %d entries", errs, len(p.Entries))
	}
	for _, e := range p.Entries { // the record's settlements change nothing
		if err := l.SettleEntry(ctx, e); err != nil {
			t.Error(err)
		}
	}
	for _, s := range []*ledger.Subject{key, workspace} {
		if n, held := standing(t, l, s); n != 60 || held != 0 {
			t.Errorf("%s: %d used, %d reserved", s.ID, n, held)
		}
	}
	if states, err := l.State(ctx, workspace); err != nil || states[0].Status != ledger.Exhausted {
		t.Errorf("%+v %v", states, err)
	}
	if _, err := l.Reserve(ctx, "next", []*ledger.Subject{workspace}, bound(1)); !fault.Is(err, fault.BudgetExhausted) {
		t.Errorf("the next request: %v", err)
	}
}

// A cache hit counts against budgets of requests, once, and is rejected if one is exhausted.
func TestHitsCountAgainstBudgetsOfRequests(t *testing.T) {
	t.Parallel()
	l := book(t)
	requests := tokens(ledger.Key, "r", 2)
	requests.Budgets[0].Type = ledger.Requests
	for i, want := range []int64{1, 2, 2} {
		p := new(Spending)
		if err := p.CountHit(ctx, l, "r", []*ledger.Subject{requests, tokens(ledger.Workspace, "w", 1)}, nil); (err != nil) != (i == 2) || err != nil && !fault.Is(err, fault.BudgetExhausted) {
			t.Fatal(i, err)
		}
		if n, held := standing(t, l, requests); n != want || held != 0 {
			t.Errorf("%d used, %d reserved, want %d", n, held, want)
		}
	}
}

// The reused memory of one request's calls does not affect the next.
func TestMemoryIsEmptied(t *testing.T) {
	t.Parallel()
	p := new(Spending)
	p.Try(usage.Attempt{ErrorCode: "x"})
	left := p.TakeAttempts()
	if len(left) != 0 || left[:1][0].ErrorCode != "" || (&Spending{Attempts: left}).Last() != nil {
		t.Errorf("%+v", left[:1])
	}
}

// Two attempts at the same time reserve for both; each target pays for its own part, the caller for
// both, and the request is one request. It does not matter which of them is used.
func TestTwoAttemptsAreOneRequest(t *testing.T) {
	t.Parallel()
	for _, firstUsed := range []bool{true, false} {
		l := book(t)
		key, first, second := tokens(ledger.Key, "k", 1000), tokens(ledger.Provider, "a", 1000), tokens(ledger.Provider, "b", 1000)
		counted := tokens(ledger.Policy, "p", 2)
		counted.Budgets[0].Type = ledger.Requests
		key.Rates = []ledger.RateLimit{{Type: ledger.Tokens, Unit: ledger.PerDay, Value: 1000}}
		one, two := new(Spending), new(Spending)
		two.Second()
		if err := one.CountRequest(ctx, l, "", key); err != nil {
			t.Fatal(err)
		}
		own := Budgeted(key, counted)
		for p, its := range map[*Spending]*ledger.Subject{one: first, two: second} {
			id := map[bool]string{true: "r1", false: "r2"}[p == one]
			if err := p.Reserve(ctx, ctx, l, id, own, Budgeted(its), bound(100)); err != nil {
				t.Fatal(err)
			}
		}
		if _, held := standing(t, l, key); held != 200 {
			t.Errorf("%d reserved", held)
		}
		one.call(10)
		two.call(20)
		used, other := one, two
		if !firstUsed {
			used, other = two, one
		}
		if errs := used.Settle(ctx, l, nil, other); len(errs) > 0 || used.Usage.TotalTokens() != 30 || len(used.Attempts) != 2 {
			t.Errorf("%v, %+v", errs, used.Attempts)
		}
		for _, e := range used.Entries { // the record repeats all settlements
			if err := l.SettleEntry(ctx, e); err != nil {
				t.Error(err)
			}
		}
		for s, want := range map[*ledger.Subject]int64{key: 30, first: 10, second: 20, counted: 1} {
			if n, held := standing(t, l, s); n != want || held != 0 {
				t.Errorf("first used %t, %s %s: %d used, %d reserved, want %d", firstUsed, s.Kind, s.ID, n, held, want)
			}
		}
	}
}

package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/fault"
	"gateway/shared/store"
)

func TestAHeadWithManyOpenEntriesSplits(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		var alerts atomic.Int64
		l := New(st, h.now, Hooks{
			Alert:  func(context.Context, Alert) error { alerts.Add(1); return nil },
			Failed: func(_ context.Context, what string, err error) { t.Error(what, err) },
		})
		l.rows.splitAbove = 16
		limit := UsageLimit{Type: Cost, CreditLimit: dollar, AlertThreshold: dollar / 2}
		s := budgeted(Key, "k", limit)
		var open []*Reservation
		for i := range 100 { // the entire budget, in open entries
			r, err := l.Reserve(ctx, fmt.Sprint(i), []*Subject{s}, cost(0.01))
			if err != nil {
				t.Fatalf("request %d: %v", i, err)
			}
			open = append(open, r)
		}
		v, err := l.rows.view(ctx, s.derive().head)
		if err != nil || len(v.rows) < firstShards {
			t.Fatalf("%d rows, %v", len(v.rows), err)
		}
		for i, row := range v.rows {
			if n := len(row.Map(attrOpen)); n > 50 {
				t.Errorf("row %d has %d of 100 entries", i, n)
			}
		}
		if spend(t, l, 0.000000001, s) {
			t.Error("more than the limit is reserved")
		}
		if b := stateOf(t, l, s); b.Reserved != dollar {
			t.Errorf("%+v", b)
		}
		for i, r := range open[:60] {
			if err := r.Settle(ctx, 0.009*dollar, 0); err != nil {
				t.Fatalf("settle %d: %v", i, err)
			}
		}
		if b := stateOf(t, l, s); b.Usage != 0.54*dollar || b.Reserved != 0.4*dollar || !b.ThresholdAlert || alerts.Load() != 1 {
			t.Errorf("%+v, %d alerts", b, alerts.Load())
		}
		// The returned amounts are spread over all rows; one request can still have all of
		// them.
		if !spend(t, l, 0.06, s) || spend(t, l, 0.000000001, s) {
			t.Error("what is left in all rows together is one budget")
		}
		// A lowered limit holds in every row at once.
		for _, r := range open[60:90] {
			if err := r.Release(ctx); err != nil {
				t.Fatal(err)
			}
		}
		limit.CreditLimit = 0.7 * dollar
		low := budgeted(Key, "k", limit)
		if b := stateOf(t, l, low); b.Usage != 0.6*dollar || b.Reserved != 0.1*dollar {
			t.Errorf("%+v", b)
		}
		for range 3 {
			if spend(t, l, 0.01, low) {
				t.Error("a row lets through what a lowered limit forbids")
			}
		}
		for _, r := range open[90:] {
			if err := r.Release(ctx); err != nil {
				t.Fatal(err)
			}
		}
		// The daily pass folds the shards back.
		done, err := l.RepairAll(ctx)
		if err != nil || done.Shrunk != 1 || done.Heads != 1 {
			t.Errorf("%+v, %v", done, err)
		}
		it, _, _ := l.rows.spend.Get(ctx, s.derive().head, true)
		if it.Int("shards") != 1 || it.Int("cost_available") < 0.1*dollar {
			t.Errorf("head after the pass: %d shards, %d available", it.Int("shards"), it.Int("cost_available"))
		}
		if !spend(t, l, 0.1, low) || spend(t, l, 0.000000001, low) {
			t.Error("after the pass a tenth of a dollar is left")
		}
		if b := stateOf(t, l, low); b.Usage != 0.7*dollar || b.Status != Exhausted || alerts.Load() != 2 {
			t.Errorf("%+v, %d alerts", b, alerts.Load())
		}
		if err := l.Reset(ctx, low); err != nil {
			t.Fatal(err)
		}
		if b := stateOf(t, l, low); b.Usage != 0 || !spend(t, l, 0.7, low) || spend(t, l, 0.01, low) {
			t.Errorf("after a reset of all rows: %+v", b)
		}
		if err := l.Clear(ctx, low); err != nil {
			t.Fatal(err)
		}
		if page, err := l.rows.spend.Query(ctx, store.Query{Partition: s.derive().head.Partition()}); err != nil || len(page.Rows) != 0 {
			t.Errorf("%d rows are left, %v", len(page.Rows), err)
		}
	})
}

// From many goroutines and two processes; at the default size where a crowd is
// possible.
func TestParallelCallsOnAHeadThatSplits(t *testing.T) {
	onEach(t, func(t *testing.T, st store.Store) {
		processes := []*Ledger{New(st, time.Now, Hooks{}), New(st, time.Now, Hooks{})}
		callers := crowd(st, 300)
		fit := callers * 5 / 6
		for _, l := range processes {
			l.rows.splitAbove = crowd(st, SplitAbove)
		}
		s := budgeted(Workspace, "w", dollars(float64(fit)/1000))
		var gate, all sync.WaitGroup
		var taken atomic.Int64
		gate.Add(callers)
		for i := range callers {
			all.Go(func() {
				r, err := processes[i%2].Reserve(ctx, fmt.Sprint(i), []*Subject{s}, cost(0.001))
				gate.Done()
				gate.Wait() // all are open at once
				if fault.Is(err, fault.BudgetExhausted) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				taken.Add(1)
				if err := r.Settle(ctx, 0.001*dollar, 0); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		b := stateOf(t, processes[0], s)
		if taken.Load() != int64(fit) || b.Usage != b.Limit.CreditLimit || b.Reserved != 0 || b.Status != Exhausted {
			t.Errorf("%d taken of %d, %+v", taken.Load(), fit, b)
		}
		v, err := processes[0].rows.view(ctx, s.derive().head)
		if err != nil || len(v.rows) < firstShards {
			t.Errorf("%d rows, %v", len(v.rows), err)
		}
	})
}

// Whatever the rows contain, a sequential request is never rejected while the budget has
// enough.
func TestShardsTogetherAreOneBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory()
		l := New(m, time.Now, Hooks{})
		l.rows.splitAbove = rapid.IntRange(1, 8).Draw(t, "split above")
		limit := rapid.Int64Range(1, 2000).Draw(t, "limit")
		s := &Subject{Scope: tenant, Kind: Key, ID: "k", Budgets: []UsageLimit{{Type: Tokens, CreditLimit: limit}}}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		left, open := limit, map[*Reservation]int64{}
		for range 80 {
			n := 1 + random.Int64N(1+limit/10)
			r, err := l.Reserve(ctx, "r", []*Subject{s}, Bound{Tokens: n, Priced: true})
			if fits := n <= left; (err == nil) != fits {
				t.Fatalf("%d of %d left: %v", n, left, err)
			}
			if err == nil {
				left, open[r] = left-n, n
			}
			for r, n := range open {
				if random.IntN(len(open)+20) < 4 {
					used := random.Int64N(n + 1)
					if err := r.Settle(ctx, 0, used); err != nil {
						t.Fatal(err)
					}
					left += n - used
					delete(open, r)
				}
			}
			if random.IntN(20) == 0 {
				if _, err := l.RepairAll(ctx); err != nil {
					t.Fatal(err)
				}
			}
		}
		got, _ := m.totals(s.derive().head)
		if got.available[slotTokens] != left {
			t.Fatalf("available %d, want %d", got.available[slotTokens], left)
		}
	})
}

package app_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/app"
	"gateway/shared/blob/files"
	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// books are a ledger, the log that its repairs write to, and faults of both.
type books struct {
	store   store.Store
	archive *segment.Archive
	now     time.Time
	random  *rand.Rand
	mu      sync.Mutex
}

// Emit keeps one record for each batch. Now and then it keeps it twice, and now and then it
// reports that it did not: the process died in between.
func (b *books) Emit(ctx context.Context, r *usage.Record) error {
	b.mu.Lock()
	again, dies := b.random.IntN(3) == 0, b.random.IntN(8)
	b.mu.Unlock()
	if dies == 0 {
		return errors.New("killed before it was written")
	}
	for range 1 + map[bool]int{true: 1}[again] {
		if err := b.archive.Ingest(ctx, []usage.Record{*r}); err != nil {
			return err
		}
	}
	if dies == 1 {
		return errors.New("killed after it was written")
	}
	return nil
}

func (b *books) ledger() *ledger.Ledger {
	return ledger.New(b.store, func() time.Time { return b.now }, app.LedgerHooks(b, func() app.Recorder { return nil }, b.store))
}

func openBooks(t *testing.T, seed uint64) *books {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	bucket, err := files.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &books{store: s, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), random: rand.New(rand.NewPCG(seed, 9))}
	b.archive = segment.New(s, bucket, segment.Options{Clock: func() time.Time { return b.now }})
	return b
}

// logged sums what the log has of requests, in nano-dollars and tokens.
func (b *books) logged(t *testing.T) (records int64, cost pricing.NanoDollars, tokens int64) {
	t.Helper()
	ctx := context.Background()
	list, err := b.archive.List(ctx, "o", 0, math.MaxInt64/4)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range segment.Parts(list) {
		left, err := b.archive.Duplicates(ctx, &p)
		if err != nil {
			t.Fatal(err)
		}
		out := map[uint64]bool{}
		for _, id := range left {
			out[id] = true
		}
		f, err := b.archive.File(ctx, &p.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		for g, group := range f.Groups {
			rows := make([]int, group.Rows)
			for i := range rows {
				rows[i] = i
			}
			all, err := f.Records(ctx, g, rows)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range all {
				if !out[segment.HashID(r.ID)] {
					records, cost, tokens = records+1, cost+r.Cost, tokens+r.Usage.TotalTokens()
				}
			}
		}
	}
	return records, cost, tokens
}

// A charge that repair makes is in the log once. This holds whatever dies between the
// report and the charge, however many repair at once, and however often repair found one
// request; and both before and after segments are merged.
func TestTheLogHasWhatRepairCharges(t *testing.T) {
	t.Parallel()
	limit := func(m ledger.Measure) []ledger.UsageLimit {
		return []ledger.UsageLimit{{Type: m, CreditLimit: 1 << 40}}
	}
	scope := store.Scope{Org: "o", Workspace: "w"}
	for name, subjects := range map[string][]*ledger.Subject{
		"one subject":                            {{Scope: scope, Kind: ledger.Key, ID: "k", Budgets: limit(ledger.Cost)}},
		"two subjects":                           {{Scope: scope, Kind: ledger.Key, ID: "k", Budgets: limit(ledger.Cost)}, {Scope: scope, Kind: ledger.Workspace, ID: "w", Budgets: limit(ledger.Cost)}},
		"the first has no budget of cost":        {{Scope: scope, Kind: ledger.Key, ID: "k", Budgets: limit(ledger.Tokens)}, {Scope: scope, Kind: ledger.Workspace, ID: "w", Budgets: limit(ledger.Cost)}},
		"the last has a budget of requests only": {{Scope: scope, Kind: ledger.Key, ID: "k", Budgets: limit(ledger.Cost)}, {Scope: scope, Kind: ledger.Workspace, ID: "w", Budgets: limit(ledger.Requests)}},
	} {
		for met := 1; met <= 3; met++ { // so often repair meets each request
			t.Run(fmt.Sprintf("%s, met %d times", name, met), func(t *testing.T) {
				t.Parallel()
				b := openBooks(t, uint64(met))
				ctx := context.Background()
				const requests = 6
				var want ledger.Bound
				var held []*ledger.Reservation
				for i := range requests {
					bound := ledger.Bound{Cost: pricing.NanoDollars(100 + i), Tokens: int64(10 + i), Priced: true}
					r, err := b.ledger().Reserve(ctx, ulid.MustNew(ulid.Timestamp(b.now.Add(time.Duration(i)*time.Millisecond)), ulid.DefaultEntropy()).String(), subjects, bound)
					if err != nil {
						t.Fatal(err)
					}
					held = append(held, r)
				}
				for turn := range met {
					for i, r := range held {
						bound := ledger.Bound{Cost: pricing.NanoDollars((100 + i) * (turn + 1)), Tokens: int64((10 + i) * (turn + 1)), Priced: true}
						if err := r.Raise(ctx, bound); err != nil {
							t.Fatal(err)
						}
						if turn == met-1 {
							want.Cost, want.Tokens = want.Cost+bound.Cost, want.Tokens+bound.Tokens
						}
					}
					b.now = b.now.Add(2 * ledger.SettleAfter)
					b.repair(t)
				}
				for range 2 {
					n, cost, tokens := b.logged(t)
					if n != requests*int64(met) || cost != want.Cost || tokens != want.Tokens {
						t.Errorf("the log has %d records, %d nano-dollars, %d tokens; charged were %d requests %d times, %d, %d", n, cost, tokens, requests, met, want.Cost, want.Tokens)
					}
					b.now = b.now.Add(26 * time.Hour)
					if err := b.archive.Compact(ctx); err != nil {
						t.Fatal(err)
					}
				}
				for _, s := range subjects {
					states, err := b.ledger().State(ctx, s)
					if err != nil {
						t.Fatal(err)
					}
					charged := map[ledger.Measure]int64{ledger.Cost: int64(want.Cost), ledger.Tokens: want.Tokens, ledger.Requests: requests}[states[0].Limit.Type]
					if states[0].Usage != charged || states[0].Reserved != 0 {
						t.Errorf("%s: %+v; want %d", s.Kind, states[0], charged)
					}
				}
			})
		}
	}
}

// repair has three processes repair at once until nothing is left to do.
func (b *books) repair(t *testing.T) {
	t.Helper()
	for range 1000 {
		var wg sync.WaitGroup
		errs := make([]error, 3)
		for i := range errs {
			wg.Go(func() { _, errs[i] = b.ledger().RepairAll(context.Background()) })
		}
		wg.Wait()
		if errors.Join(errs...) == nil {
			return
		}
	}
	t.Fatal("repair does not come to its end")
}

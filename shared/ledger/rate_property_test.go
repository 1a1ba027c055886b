package ledger

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gateway/shared/store"
)

// Whatever the interleaving, no window counts more than its limit, and without
// faults it counts exactly the requests that were admitted.
func TestRatesHoldUnderAnyInterleaving(t *testing.T) {
	var refusals atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		faults := rapid.SampledFrom([]int{0, 0, 20}).Draw(rt, "faults")
		callers := rapid.IntRange(1, 12).Draw(rt, "callers")
		random := rand.New(rand.NewPCG(seed, 1))
		m, h := newMemory(), clockAt("2026-11-20T14:00:30Z")
		per := []RateLimit{{Requests, PerMinute, 1 + random.Int64N(8)}, {Requests, PerHour, 1 + random.Int64N(20)}, {Tokens, PerMinute, 1 + random.Int64N(100)}}
		subjects := []*Subject{rated(Key, "k", per...), rated(Workspace, "w", per[0])}
		var admitted, open atomic.Int64
		s := &schedule{m: m, random: random, faults: faults, check: func() error {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, s := range subjects {
				row := m.row(store.Rate, s.derive().rate)
				for _, n := range s.derive().counts {
					if used := row.Int(n.n.Attr); used > n.Value || used < 0 {
						return fmt.Errorf("%s: %d of %s", s.ID, used, n.RateLimit)
					}
				}
			}
			return nil
		}}
		run := map[string]func(context.Context){}
		for i := range callers {
			own := rand.New(rand.NewPCG(seed, uint64(i)+2))
			l := New(m, h.now, Hooks{FailedOpen: func(context.Context, *Subject, error) { open.Add(1) }})
			run[fmt.Sprint(i)] = func(ctx context.Context) {
				for range 3 {
					a, err := l.rates.Admit(ctx, "", subjects)
					if err != nil {
						refusals.Add(1)
						continue
					}
					admitted.Add(1)
					bound := own.Int64N(per[2].Value + 1) // a larger one may overshoot
					if a.ReserveTokens(ctx, bound) == nil {
						a.SettleTokens(ctx, own.Int64N(bound+1))
					} else {
						a.Return(ctx)
						admitted.Add(-1)
					}
					if own.IntN(4) == 0 && faults > 0 {
						h.add(time.Duration(own.IntN(40)) * time.Second)
					}
				}
			}
		}
		if err := s.run(t, run); err != nil {
			rt.Fatalf("%v after\n%s", err, s.story())
		}
		if faults > 0 {
			return
		}
		row := m.row(store.Rate, subjects[0].derive().rate)
		if got := row.Int("rpm_n"); got != admitted.Load() || open.Load() != 0 {
			rt.Fatalf("%d counted, %d admitted, %d failed open", got, admitted.Load(), open.Load())
		}
	})
	if refusals.Load() == 0 {
		t.Error("nothing was refused")
	}
}

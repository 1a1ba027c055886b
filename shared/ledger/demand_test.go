package ledger

import (
	"context"
	"fmt"
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/store/dynamo"
)

// A budget with a remainder that is too small for a usual request reads exhausted, and its
// alert is sent once, although the budget is never spent completely.
//
//lane:property
func TestExhaustedIsWhatNoUsualRequestFits(t *testing.T) {
	t.Parallel()
	type call struct {
		bound, spent int64 // spent < 0: stays open
		assumed      bool
		refused      bool
	}
	many := func(n int, c call) (all []call) {
		for range n {
			all = append(all, c)
		}
		return all
	}
	cases := []struct {
		name   string
		calls  []call
		status string
		alerts int
	}{
		{"no request yet", nil, Active, 0},
		{"much is left", many(10, call{bound: 50, spent: 20}), Active, 0},
		{"little is left, nobody was refused", many(48, call{bound: 50, spent: 20}), Active, 0},
		{"the next is refused", append(many(48, call{bound: 50, spent: 20}), call{bound: 50, refused: true}), Exhausted, 1},
		{"many are refused", append(many(48, call{bound: 50, spent: 20}), many(9, call{bound: 50, refused: true})...), Exhausted, 1},
		{"one far larger is refused", append(many(10, call{bound: 50, spent: 20}), call{bound: 990, refused: true}), Active, 0},
		{"one far larger is refused, then usual ones up to the rest", append(append(many(10, call{bound: 50, spent: 20}), call{bound: 990, refused: true}), many(38, call{bound: 50, spent: 20})...), Active, 0},
		{"the first is far larger, then usual ones until one is refused", append(append([]call{{bound: 1200, refused: true}}, many(48, call{bound: 50, spent: 20})...), call{bound: 50, refused: true}), Exhausted, 1},
		{"the first is far larger, then larger and smaller ones", []call{{bound: 1200, refused: true}, {bound: 400, spent: 400}, {bound: 400, spent: 400}, {bound: 190, spent: 190}}, Active, 0},
		{"the first is far larger, then smaller ones to the end", []call{{bound: 1200, refused: true}, {bound: 400, spent: 400}, {bound: 400, spent: 400}, {bound: 190, spent: 190}, {bound: 9, spent: 9}, {bound: 10, refused: true}}, Exhausted, 1},
		{"charged beyond the limit", []call{{bound: 50, spent: 1100}, {bound: 1, refused: true}}, Exhausted, 1},
		{"one smaller still fits", append(append(many(48, call{bound: 50, spent: 20}), call{bound: 50, refused: true}), call{bound: 5, spent: 5}), Active, 1},
		{"each is larger than the limit", many(2, call{bound: 1001, refused: true}), Active, 0},
		{"what is open may come back", []call{{bound: 900, spent: -1}, {bound: 200, refused: true}}, Active, 0},
		{"assumed bounds pass while anything is left", many(40, call{bound: 500, spent: 20, assumed: true}), Active, 0},
		{"assumed bounds to the end", append(many(50, call{bound: 500, spent: 20, assumed: true}), call{bound: 500, assumed: true, refused: true}), Exhausted, 1},
		{"spent to the end", many(20, call{bound: 50, spent: 50}), Exhausted, 1},
	}
	onEach(t, func(t *testing.T, st store.Store) {
		for _, m := range []Measure{Cost, Tokens} {
			for _, split := range []int{SplitAbove, 1} {
				for i, c := range cases {
					if _, remote := st.(*dynamo.Store); remote && (m == Cost) == (split == 1) {
						continue // each measure in one of the two forms, for an emulator is slow
					}
					t.Run(fmt.Sprintf("%s, %s, split above %d", c.name, m, split), func(t *testing.T) {
						t.Parallel()
						h, alerts := clockAt("2026-11-20T14:00:00Z"), 0
						l := New(st, h.now, Hooks{
							Alert: func(_ context.Context, a Alert) error {
								if a.Exhausted {
									alerts++
								}
								return nil
							},
							Failed: func(_ context.Context, what string, err error) { t.Error(what, err) },
						})
						l.rows.splitAbove = split
						s := budgeted(Key, fmt.Sprintf("%s-%d-%d", m, split, i), UsageLimit{Type: m, CreditLimit: 1000, Cadence: Monthly})
						if split == 1 { // so many open at once that there are shards
							var crowd []*Reservation
							for range 4 {
								r, err := l.Reserve(ctx, "crowd", []*Subject{s}, Bound{Cost: 1, Tokens: 1, Priced: true})
								if err != nil {
									t.Fatal(err)
								}
								crowd = append(crowd, r)
							}
							for _, r := range crowd {
								if err := r.Release(ctx); err != nil {
									t.Fatal(err)
								}
							}
							if err := l.Reset(ctx, s); err != nil { // the crowd's requests do not count
								t.Fatal(err)
							}
						}
						for n, call := range c.calls {
							r, err := l.Reserve(ctx, fmt.Sprint(n), []*Subject{s}, Bound{Cost: pricing.NanoDollars(call.bound), Tokens: call.bound, Priced: true, Assumed: call.assumed})
							if (err != nil) != call.refused {
								t.Fatalf("call %d: %v", n, err)
							}
							if err == nil && call.spent >= 0 {
								if err := r.Settle(ctx, pricing.NanoDollars(call.spent), call.spent); err != nil {
									t.Fatal(err)
								}
							}
						}
						if b := stateOf(t, l, s); b.Status != c.status || b.ExhaustedAlert != (c.alerts > 0) || alerts != c.alerts {
							t.Errorf("%s with %d alerts, want %s with %d: %+v", b.Status, alerts, c.status, c.alerts, b)
						}
						h.set("2026-12-01T00:00:01Z")
						if b := stateOf(t, l, s); b.Status != Active || b.ExhaustedAlert {
							t.Errorf("in the next period: %+v", b)
						}
					})
				}
			}
		}
	})
}

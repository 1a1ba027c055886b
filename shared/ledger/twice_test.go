package ledger

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// When a period ends, the spent amount is subtracted once, even if two readers of the same row
// end the period by different clocks or different limits: twice would add money to the budget.
func TestAPeriodEndsOnce(t *testing.T) {
	t.Parallel()
	before, after := at("2026-11-30T23:55:00Z"), at("2026-12-01T00:05:00Z")
	limit := UsageLimit{Type: Cost, CreditLimit: dollar, AlertThreshold: dollar / 2, Cadence: Monthly, SetAt: at("2026-11-01T00:00:00Z")}
	with := func(rev int64, change func(*UsageLimit)) *Subject {
		u := limit
		change(&u)
		s := budgeted(Key, "k", u)
		s.Revision = rev
		return s
	}
	apply := func(now time.Time, s *Subject) func(context.Context, *memory) error {
		return func(ctx context.Context, m *memory) error {
			return New(m, func() time.Time { return now }, Hooks{}).Apply(ctx, s)
		}
	}
	reset := func(now time.Time) func(context.Context, *memory) error {
		return func(ctx context.Context, m *memory) error {
			return New(m, func() time.Time { return now }, Hooks{}).Reset(ctx, with(0, func(*UsageLimit) {}))
		}
	}
	ends := []struct {
		name string
		do   func(context.Context, *memory) error
	}{
		{"the period is over", apply(after, with(0, func(*UsageLimit) {}))},
		{"a reset of one counter before midnight", reset(before)},
		{"a reset of one counter after midnight", reset(after)},
		{"a reset by a change", apply(before, with(1, func(u *UsageLimit) { u.ResetAt = before }))},
		{"a reset by a change, after midnight", apply(after, with(2, func(u *UsageLimit) { u.ResetAt = after }))},
		{"a limit that is new", apply(before, with(3, func(u *UsageLimit) { u.SetAt = before }))},
		{"a limit that is new, after midnight", apply(after, with(4, func(u *UsageLimit) { u.SetAt = after; u.CreditLimit = 2 * dollar }))},
	}
	for _, one := range ends {
		for _, two := range ends {
			for _, more := range []float64{0, 0.1, 0.4} { // spent between the two
				t.Run(fmt.Sprintf("%s, %s, %v between", one.name, two.name, more), func(t *testing.T) {
					t.Parallel()
					m := newMemory()
					l := New(m, func() time.Time { return before }, Hooks{})
					s := with(0, func(*UsageLimit) {})
					if !spend(t, l, 0.3, s) {
						t.Fatal("refused")
					}
					slow := context.WithValue(ctx, actorKey{}, &actor{name: "slow"})
					stopped := false
					m.before = func(c context.Context, op operation) fate {
						if a := actorOf(c); a == nil || !op.write || stopped {
							return fate{}
						}
						stopped = true // between its read and its write
						if err := two.do(ctx, m); err != nil {
							t.Error(err)
						}
						if more > 0 && !spend(t, l, more, s) {
							t.Error("refused")
						}
						return fate{}
					}
					if err := one.do(slow, m); err != nil || !stopped {
						t.Fatal(stopped, err)
					}
					got, _ := m.totals(s.derive().head)
					if got.spent[slotCost] < 0 || float64(got.spent[slotCost]) > more*dollar || got.available[slotCost] != got.limit[slotCost]-got.spent[slotCost] {
						t.Errorf("spent %d, available %d of %d", got.spent[slotCost], got.available[slotCost], got.limit[slotCost])
					}
				})
			}
		}
	}
}

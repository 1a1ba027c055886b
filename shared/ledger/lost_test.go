package ledger

import (
	"context"
	"fmt"
	"testing"

	"gateway/shared/store"
)

// If the response to writing an entry was lost, and the entry could not be released either, it
// is not reserved and charged in addition to the entry with which the request continues.
func TestALostEntryIsNotChargedBesideItsSuccessor(t *testing.T) {
	t.Parallel()
	free := Bound{Priced: true}
	raise := func(l *Ledger, r *Reservation) error { return r.Raise(ctx, cost(0.4)) }
	settle := func(l *Ledger, r *Reservation) error { return r.Settle(ctx, 0.3*dollar, 0) }
	backstop := func(l *Ledger, r *Reservation) error {
		for _, e := range r.Entries() {
			if err := l.SettleEntry(ctx, e); err != nil {
				return err
			}
		}
		return nil
	}
	type step = func(*Ledger, *Reservation) error
	ways := []struct {
		name    string
		reserve Bound
		lossy   step   // its write reaches the store, and nothing after it does
		then    []step // with a store that answers
		spent   int64
	}{
		{"raised from nothing, raised again, settled", free, raise, []step{raise, settle}, 0.3 * dollar},
		{"raised from nothing, settled", free, raise, []step{settle}, 0.3 * dollar},
		{"raised from nothing, released", free, raise, []step{func(l *Ledger, r *Reservation) error { return r.Release(ctx) }}, 0},
		{"settled without an entry, settled again", free, settle, []step{settle}, 0.3 * dollar},
		{"raised, raised again, settled", cost(0.1), raise, []step{raise, settle}, 0.3 * dollar},
		{"raised, settled", cost(0.1), raise, []step{settle}, 0.3 * dollar},
		{"settled, settled again", cost(0.1), settle, []step{settle}, 0.3 * dollar},
		{"settled, then by its record", cost(0.1), settle, []step{backstop}, 0.3 * dollar},
	}
	for _, w := range ways {
		for _, late := range []error{store.ErrUncertain, store.ErrClosed, context.DeadlineExceeded} {
			t.Run(fmt.Sprint(w.name, ", ", late), func(t *testing.T) {
				t.Parallel()
				m, h := newMemory(), clockAt("2026-11-20T14:00:00Z")
				l := New(m, h.now, Hooks{})
				s := budgeted(Key, "k", dollars(1))
				if err := create(l, ctx, s, s.derive().plan); err != nil {
					t.Fatal(err)
				}
				r, err := l.Reserve(ctx, "r", []*Subject{s}, w.reserve)
				if err != nil {
					t.Fatal(err)
				}
				writes := 0
				m.before = func(_ context.Context, op operation) fate {
					if op.write {
						writes++
					}
					if writes == 1 && op.write {
						return fate{lose: late}
					}
					return fate{drop: late}
				}
				if err := w.lossy(l, r); err == nil {
					t.Fatal("the lost answer was not noticed")
				}
				m.before = nil
				for _, next := range w.then {
					if err := next(l, r); err != nil {
						t.Fatal(err)
					}
				}
				if got, _ := m.totals(s.derive().head); got.entries != 0 {
					t.Errorf("%d entries are left open", got.entries)
				}
				h.add(2 * SettleAfter)
				if b := stateOf(t, l, s); b.Usage != w.spent || b.Reserved != 0 {
					t.Errorf("%d spent, want %d; %d held", b.Usage, w.spent, b.Reserved)
				}
			})
		}
	}
}

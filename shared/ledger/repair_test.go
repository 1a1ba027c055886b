package ledger

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"gateway/shared/store"
)

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
		h.add(SettleAfter - time.Second)
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
	h.add(2 * SettleAfter)
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

package storetest_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/testkit/storetest"
)

func open(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "gateway.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestFaultyWithoutFaultsFollowsTheContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return storetest.Faulty(open(t), storetest.Faults{}) })
}

func TestFaultsAreAppliedOrNotAsReported(t *testing.T) {
	key := store.Scope{Org: "o"}.Partition().Key("k")
	cases := map[string]struct {
		faults storetest.Faults
		err    error
		done   bool
	}{
		"throttled": {storetest.Faults{Throttled: 1}, store.ErrThrottled, false},
		"contended": {storetest.Faults{Contended: 1}, store.ErrContended, false},
		"dropped":   {storetest.Faults{Dropped: 1}, store.ErrUncertain, false},
		"lost":      {storetest.Faults{LostAck: 1}, store.ErrUncertain, true},
	}
	u := store.Update{Key: key, Add: []store.Increment{{Path: store.At("n"), By: 1}}}
	writes := map[string]func(store.Store) error{
		"update":   func(s store.Store) error { _, _, err := s.Table(store.Rate).Update(t.Context(), u); return err },
		"transact": func(s store.Store) error { return s.Transact(t.Context(), store.Action{Table: store.Rate, Update: &u}) },
		"put": func(s store.Store) error {
			return s.Table(store.Rate).Put(t.Context(), store.Row{Key: key, Item: store.Item{"n": int64(1)}})
		},
		"put many": func(s store.Store) error {
			return s.Table(store.Rate).PutMany(t.Context(), []store.Row{{Key: key, Item: store.Item{"n": int64(1)}}})
		},
	}
	for name, c := range cases {
		for call, write := range writes {
			t.Run(name+" "+call, func(t *testing.T) {
				s := storetest.Faulty(open(t), c.faults)
				if err := write(s); !errors.Is(err, c.err) {
					t.Errorf("error is %v, want %v", err, c.err)
				}
				_, _, err := s.Table(store.Rate).Get(t.Context(), key, true)
				if throttled := errors.Is(err, store.ErrThrottled); throttled != (c.err == store.ErrThrottled) {
					t.Errorf("a read's error is %v", err)
				}
				s.Set(storetest.Faults{})
				if _, ok, err := s.Table(store.Rate).Get(t.Context(), key, true); err != nil || ok != c.done {
					t.Errorf("the row is there: %v, want %v; %v", ok, c.done, err)
				}
			})
		}
	}
}

func TestFaultsRepeatBySeedAndFollowOnly(t *testing.T) {
	run := func(seed uint64) string {
		s := storetest.Faulty(open(t), storetest.Faults{
			Seed: seed, Throttled: 0.2, LostAck: 0.2,
			Only: func(table store.TableName, call storetest.Call) bool {
				return table == store.Rate && call == storetest.CallUpdate
			},
		})
		log := ""
		for i := range 50 {
			key := store.Scope{Org: "o"}.Partition().Key(fmt.Sprint(i))
			_, _, err := s.Table(store.Rate).Update(t.Context(), store.Update{Key: key, Set: []store.Assign{{Path: store.At("a"), Value: "b"}}})
			log += fmt.Sprintln(err)
			if err := s.Table(store.Spend).Put(t.Context(), store.Row{Key: key}); err != nil {
				t.Errorf("a call outside Only failed: %v", err)
			}
		}
		if n := s.InjectedFaults(); n < 5 || n > 45 {
			t.Errorf("%d of 50 calls failed, with a chance of 0.4", n)
		}
		return log
	}
	first := run(7)
	if first != run(7) {
		t.Error("the same seed gave other faults")
	}
	if first == run(8) {
		t.Error("another seed gave the same faults")
	}
}

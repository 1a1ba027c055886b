package ledger

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/store"
)

// reading counts the reads of a store.
type reading struct {
	store.Store
	reads atomic.Int64
}

func (r *reading) Table(name store.TableName) store.Table {
	return readingTable{r.Store.Table(name), r}
}

type readingTable struct {
	store.Table
	of *reading
}

func (t readingTable) Get(ctx context.Context, key store.Key, consistent bool) (store.Item, bool, error) {
	t.of.reads.Add(1)
	return t.Table.Get(ctx, key, consistent)
}

func (t readingTable) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	t.of.reads.Add(1)
	return t.Table.GetMany(ctx, keys)
}

// If a thousand callers check one budget within a short time, the store is read as often as for
// one caller. Another budget, and another version of its limits, is read separately.
func TestConcurrentChecksOfABudgetReadItOnce(t *testing.T) {
	inner := openSQLite(t)
	h := clockAt("2026-11-20T14:00:00Z")
	st := &reading{Store: inner}
	l := New(st, h.now, Hooks{})
	s, other := budgeted(Workspace, "w", UsageLimit{Type: Requests, CreditLimit: 1}), budgeted(Workspace, "v", dollars(1))
	w := l.ExhaustionCache(time.Second)
	check := func(s *Subject, want bool) {
		t.Helper()
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() {
				if got, err := w.Exhausted(ctx, s); err != nil || got != want {
					t.Errorf("%v %v, want %v", got, err, want)
				}
			})
		}
		all.Wait()
	}
	from := st.reads.Load()
	if _, err := l.State(ctx, s); err != nil {
		t.Fatal(err)
	}
	one := st.reads.Load() - from
	costs := func(what string, times int64, do func()) {
		t.Helper()
		from := st.reads.Load()
		if do(); st.reads.Load()-from != times*one {
			t.Errorf("%s: %d reads, want %d times %d", what, st.reads.Load()-from, times, one)
		}
	}
	costs("the first", 1, func() { check(s, false) })
	costs("another subject", 1, func() { check(other, false) })
	if !spend(t, l, 0, s) {
		t.Fatal("nothing could be spent")
	}
	h.add(999 * time.Millisecond)
	costs("within a second", 0, func() { check(s, false) })
	h.add(time.Millisecond)
	costs("after it", 1, func() { check(s, true) })
	now := budgeted(Workspace, "w", UsageLimit{Type: Requests, CreditLimit: 100})
	now.Revision = 7
	costs("other limits", 1, func() { check(now, false) })
}

// An error is not cached.
func TestAFailureIsNotCached(t *testing.T) {
	inner := openSQLite(t)
	h := clockAt("2026-11-20T14:00:00Z")
	l := New(inner, h.now, Hooks{})
	w := l.ExhaustionCache(time.Second)
	s := budgeted(Workspace, "w", dollars(1))
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := w.Exhausted(over, s); err == nil {
		t.Fatal("no error")
	}
	if got, err := w.Exhausted(ctx, s); got || err != nil {
		t.Errorf("%v %v", got, err)
	}
}

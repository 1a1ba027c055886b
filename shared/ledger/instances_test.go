package ledger

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"gateway/shared/store"
)

// Instances of the gateway communicate only through the store: together they admit exactly the
// limit.
func TestTwentyInstancesAdmitExactlyTheLimit(t *testing.T) {
	const instances = 20
	onEach(t, func(t *testing.T, s store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		calls := crowd(s, 50)
		limit := int64(instances * calls * 3 / 4)
		for range 2 {
			var admitted atomic.Int64
			var wg sync.WaitGroup
			for range instances {
				l := New(s, h.now, Hooks{FailedOpen: func(_ context.Context, _ *Subject, err error) { t.Error(err) }})
				subject := rated(Workspace, "w", RateLimit{Requests, PerHour, limit})
				wg.Go(func() {
					for range calls {
						if _, err := l.rates.Admit(ctx, "", []*Subject{subject}); err == nil {
							admitted.Add(1)
						}
					}
				})
			}
			wg.Wait()
			if n := admitted.Load(); n != limit {
				t.Errorf("%d of %d were let through", n, limit)
			}
			h.add(3600_000_000_000)
		}
	})
}

// counting counts the writes of a store.
type counting struct {
	store.Store
	writes atomic.Int64
}

func (c *counting) Table(name store.TableName) store.Table {
	return countingTable{c.Store.Table(name), c}
}

func (c *counting) Transact(ctx context.Context, actions ...store.Action) error {
	c.writes.Add(1)
	return c.Store.Transact(ctx, actions...)
}

type countingTable struct {
	store.Table
	of *counting
}

func (t countingTable) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	t.of.writes.Add(1)
	return t.Table.Put(ctx, row, conds...)
}

func (t countingTable) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	t.of.writes.Add(1)
	return t.Table.Update(ctx, u)
}

// A request costs one conditional write for each limited subject before it is sent,
// and one for each budget after; one that nothing limits costs none.
func TestWritesOfARequest(t *testing.T) {
	onEach(t, func(t *testing.T, inner store.Store) {
		h := clockAt("2026-11-20T14:00:00Z")
		c := &counting{Store: inner}
		l := New(c, h.now, Hooks{})
		rate := RateLimit{Requests, PerHour, 1000}
		budgeted := func(kind Kind, id string) *Subject { return budgeted(kind, id, dollars(100)) }
		for _, x := range []struct {
			name          string
			subjects      []*Subject
			before, after int64
		}{
			{"nothing limited", []*Subject{rated(Key, "free"), rated(Workspace, "free")}, 0, 0},
			{"two rates", []*Subject{rated(Key, "rk", rate), rated(Workspace, "rw", rate)}, 2, 0},
			{"two budgets", []*Subject{budgeted(Key, "bk"), budgeted(Workspace, "bw")}, 2, 2},
			{"a rate and a budget", []*Subject{rated(Key, "rk2", rate), budgeted(Workspace, "bw2")}, 2, 1},
			{"three policies beside them", []*Subject{rated(Key, "rk3", rate), budgeted(Workspace, "bw3"), rated(Policy, "p1", rate), budgeted(Policy, "p2"), budgeted(Policy, "p3")}, 5, 3},
		} {
			for turn := range 2 { // the first makes the rows
				from := c.writes.Load()
				if _, err := l.rates.Admit(ctx, "", x.subjects); err != nil {
					t.Fatal(err)
				}
				r, err := l.Reserve(ctx, "r", x.subjects, cost(0.01))
				if err != nil {
					t.Fatal(err)
				}
				before := c.writes.Load() - from
				if err := r.Settle(ctx, 5, 0); err != nil {
					t.Fatal(err)
				}
				if after := c.writes.Load() - from - before; turn > 0 && (before != x.before || after != x.after) {
					t.Errorf("%s: %d writes before and %d after, want %d and %d", x.name, before, after, x.before, x.after)
				}
			}
		}
	})
}

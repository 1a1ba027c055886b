package ledger

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"gateway/shared/store"
)

// memory is a store in a map, with the conditions and updates of package store,
// and a hook before each operation to order, count, fail or lose it.
type memory struct {
	mu   sync.Mutex
	rows map[store.TableName]map[store.Key]store.Item
	ops  atomic.Int64
	done int // writes that changed a row
	// sums are the totals of each head, kept with every write; see totals.
	sums map[store.Key]*totals
	// before, when set, decides what happens to an operation.
	before func(ctx context.Context, op operation) fate
}

// operation is one call of the store: the row or partition that it names first.
type operation struct {
	key   string
	write bool
}

func onRow(k store.Key, write bool) operation { return operation{k.PK() + "|" + k.SK(), write} }

// fate is what happens to one operation.
type fate struct {
	drop error // not done, and this is the answer
	lose error // done, but this is the answer
}

func newMemory() *memory {
	return &memory{rows: map[store.TableName]map[store.Key]store.Item{}, sums: map[store.Key]*totals{}}
}

func (m *memory) Close() error { return nil }

func (m *memory) Table(n store.TableName) store.Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows[n] == nil {
		m.rows[n] = map[store.Key]store.Item{}
	}
	return &memoryTable{m, n}
}

func (m *memory) Transact(ctx context.Context, actions ...store.Action) error {
	_, _, err := m.do(ctx, onRow(actions[0].Target(), true), func() (store.Item, store.Item, error) {
		if err := store.ValidateActions(actions); err != nil {
			return nil, nil, err
		}
		next := make([]store.Item, len(actions))
		for i, a := range actions {
			old := m.rows[a.Table][a.Target()]
			if !store.Holds(a.Conds(), old) {
				return nil, nil, &store.ConditionError{Action: i, Key: a.Target(), Current: old}
			}
			var err error
			switch {
			case a.Put != nil:
				next[i] = a.Put.Row.Item
			case a.Update != nil:
				next[i], err = a.Update.Apply(old)
			}
			if err != nil {
				return nil, nil, err
			}
		}
		for i, a := range actions {
			if a.Check == nil {
				m.write(a.Table, a.Target(), next[i])
			}
		}
		return nil, nil, nil
	})
	return err
}

func (m *memory) write(t store.TableName, k store.Key, it store.Item) {
	m.done++
	old := m.rows[t][k]
	if t == store.Spend && !strings.HasPrefix(k.PK(), "SYS#") {
		m.count(k, old, it)
	}
	if it == nil {
		delete(m.rows[t], k)
		return
	}
	m.rows[t][k] = it
}

// count brings the totals of a head up to date with a write of one of its rows.
func (m *memory) count(k store.Key, old, it store.Item) {
	head := headOf(k)
	t := m.sums[head]
	if t == nil {
		t = &totals{}
		m.sums[head] = t
	}
	t.writes++
	if old == nil {
		t.rows++
	}
	if it == nil {
		t.rows--
	}
	if k == head && old.String(attrPlan.Attr) != it.String(attrPlan.Attr) {
		for i, s := range rowPlan(it).slots {
			t.limit[i] = s.limit
		}
	}
	was, is := spentOf(old), spentOf(it)
	had, has := availableOf(old), availableOf(it)
	held, holds := reserved(old), reserved(it)
	for i := range is {
		t.spent[i] += is[i] - was[i]
		t.available[i] += has[i] - had[i]
		t.open[i] += holds[i] - held[i]
		if it != nil {
			t.rolled[i] += max(was[i]-is[i], 0)
		}
		t.least[i] = min(t.least[i], has[i])
	}
	t.entries += len(it.Map(attrOpen)) - len(old.Map(attrOpen))
}

func (m *memory) do(ctx context.Context, op operation, f func() (store.Item, store.Item, error)) (a, b store.Item, err error) {
	m.ops.Add(1)
	var fate fate
	if m.before != nil {
		fate = m.before(ctx, op)
	}
	if fate.drop != nil {
		return nil, nil, fate.drop
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a, b, err = f()
	if fate.lose != nil && err == nil {
		return nil, nil, fate.lose
	}
	return a, b, err
}

type memoryTable struct {
	m    *memory
	name store.TableName
}

func (t *memoryTable) Get(ctx context.Context, key store.Key, _ bool) (store.Item, bool, error) {
	it, _, err := t.m.do(ctx, onRow(key, false), func() (store.Item, store.Item, error) { return t.m.rows[t.name][key], nil, nil })
	return it, it != nil, err
}

func (t *memoryTable) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	out := map[store.Key]store.Item{}
	for _, k := range keys { // one by one: a batch read is not a snapshot
		if it, ok, err := t.Get(ctx, k, true); err != nil {
			return nil, err
		} else if ok {
			out[k] = it
		}
	}
	return out, nil
}

func (t *memoryTable) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	return t.m.Transact(ctx, store.Action{Table: t.name, Put: &store.Put{Row: row, If: conds}})
}

func (t *memoryTable) PutMany(ctx context.Context, rows []store.Row) error {
	for _, r := range rows {
		if err := t.Put(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (t *memoryTable) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	return t.m.do(ctx, onRow(u.Key, true), func() (store.Item, store.Item, error) {
		if err := u.Validate(); err != nil {
			return nil, nil, err
		}
		old := t.m.rows[t.name][u.Key]
		if !store.Holds(u.If, old) {
			return nil, nil, &store.ConditionError{Key: u.Key, Current: old}
		}
		it, err := u.Apply(old)
		if err != nil {
			return nil, nil, err
		}
		t.m.write(t.name, u.Key, it)
		return old, it, nil
	})
}

func (t *memoryTable) Delete(ctx context.Context, key store.Key, conds ...store.Cond) error {
	return t.m.Transact(ctx, store.Action{Table: t.name, Delete: &store.Delete{Key: key, If: conds}})
}

func (t *memoryTable) Query(ctx context.Context, q store.Query) (store.Page, error) {
	var p store.Page
	_, _, err := t.m.do(ctx, operation{key: q.Partition.String()}, func() (store.Item, store.Item, error) {
		for k, it := range t.m.rows[t.name] {
			if k.Partition() == q.Partition && strings.HasPrefix(k.SK(), q.Prefix) && k.SK() > q.After {
				p.Rows = append(p.Rows, store.Row{Key: k, Item: it})
			}
		}
		slices.SortFunc(p.Rows, func(a, b store.Row) int { return strings.Compare(a.Key.SK(), b.Key.SK()) })
		if q.Limit > 0 && len(p.Rows) > q.Limit {
			p.Rows = p.Rows[:q.Limit]
			p.Next = p.Rows[q.Limit-1].Key.SK()
		}
		return nil, nil, nil
	})
	return p, err
}

// totals adds up all rows of a head.
type totals struct {
	limit, available, spent, open amounts
	rolled                        amounts // what spent was lowered by: usage of periods that ended
	least                         amounts // the smallest available that a row ever had, or 0
	entries, rows                 int
	writes                        int
}

func (m *memory) totals(head store.Key) (t totals, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if sums := m.sums[head]; sums != nil {
		return *sums, sums.rows > 0
	}
	return t, false
}

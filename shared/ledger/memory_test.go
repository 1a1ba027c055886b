package ledger

import (
	"cmp"
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
	rows map[store.TableName]map[string]partition
	ops  atomic.Int64
	done int // writes that changed a row
	// sums are the totals of each head, updated with every write; see totals.
	sums map[store.Key]*totals
	// before, when set, decides what happens to an operation.
	before func(ctx context.Context, op operation) fate
}

// partition is the rows of one partition key by their sort keys.
type partition map[string]store.Item

func (m *memory) size(t store.TableName) (n int) {
	for _, rows := range m.rows[t] {
		n += len(rows)
	}
	return n
}

func (m *memory) row(t store.TableName, k store.Key) store.Item { return m.rows[t][k.PK()][k.SK()] }

// operation is one call of the store: the row or partition that it names first.
type operation struct {
	pk, sk string // sk is empty for a partition
	write  bool
}

func onRow(k store.Key, write bool) operation { return operation{k.PK(), k.SK(), write} }

func (op operation) String() string {
	if op.sk == "" {
		return op.pk
	}
	return op.pk + "|" + op.sk
}

// compare orders operations by their String, without making it.
func (op operation) compare(other operation) int {
	if op.pk == other.pk {
		return strings.Compare(op.sk, other.sk)
	}
	if n := min(len(op.pk), len(other.pk)); op.pk[:n] != other.pk[:n] {
		return strings.Compare(op.pk, other.pk)
	}
	return strings.Compare(op.String(), other.String())
}

// fate is what happens to one operation.
type fate struct {
	drop error // not done, and this is the response
	lose error // done, but this is the response
}

func newMemory() *memory {
	return &memory{rows: map[store.TableName]map[string]partition{}, sums: map[store.Key]*totals{}}
}

func (m *memory) Close() error { return nil }

func (m *memory) Table(n store.TableName) store.Table {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows[n] == nil {
		m.rows[n] = map[string]partition{}
	}
	return &memoryTable{m, n}
}

func (m *memory) Transact(ctx context.Context, actions ...store.Action) error {
	f, err := m.meet(ctx, onRow(actions[0].Target(), true))
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.transact(actions); err != nil {
		return err
	}
	return f.lose
}

func (m *memory) transact(actions []store.Action) error {
	if err := store.ValidateActions(actions); err != nil {
		return err
	}
	next := make([]store.Item, len(actions))
	for i := range actions {
		a := &actions[i]
		old := m.row(a.Table, a.Target())
		if !store.Satisfies(a.Conds(), old) {
			return &store.ConditionError{Action: i, Key: a.Target(), Current: old}
		}
		var err error
		switch {
		case a.Put != nil:
			next[i] = a.Put.Row.Item
		case a.Update != nil:
			next[i], err = a.Update.Apply(old)
		}
		if err != nil {
			return err
		}
	}
	for i := range actions {
		if a := &actions[i]; a.Check == nil {
			m.write(a.Table, a.Target(), next[i])
		}
	}
	return nil
}

func (m *memory) write(t store.TableName, k store.Key, it store.Item) {
	m.done++
	rows := m.rows[t][k.PK()]
	if rows == nil {
		rows = partition{}
		m.rows[t][k.PK()] = rows
	}
	old := rows[k.SK()]
	if t == store.Spend && !strings.HasPrefix(k.PK(), "SYS#") {
		m.add(k, old, it)
	}
	if it == nil {
		delete(rows, k.SK())
		return
	}
	rows[k.SK()] = it
}

// add brings the totals of a head up to date with a write of one of its rows.
func (m *memory) add(k store.Key, old, it store.Item) {
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

// meet counts an operation, waits for its turn and gives its fate; an error is
// the response of one that does not happen.
func (m *memory) meet(ctx context.Context, op operation) (f fate, err error) {
	m.ops.Add(1)
	if m.before != nil {
		f = m.before(ctx, op)
	}
	return f, f.drop
}

type memoryTable struct {
	m    *memory
	name store.TableName
}

func (t *memoryTable) Get(ctx context.Context, key store.Key, _ bool) (store.Item, bool, error) {
	f, err := t.m.meet(ctx, onRow(key, false))
	if err != nil || f.lose != nil {
		return nil, false, cmp.Or(err, f.lose)
	}
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	it := t.m.row(t.name, key)
	return it, it != nil, nil
}

func (t *memoryTable) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	out := make(map[store.Key]store.Item, len(keys))
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
	f, err := t.m.meet(ctx, onRow(u.Key, true))
	if err != nil {
		return nil, nil, err
	}
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	if err := u.Validate(); err != nil {
		return nil, nil, err
	}
	old := t.m.row(t.name, u.Key)
	if !store.Satisfies(u.If, old) {
		return nil, nil, &store.ConditionError{Key: u.Key, Current: old}
	}
	it, err := u.Apply(old)
	if err != nil {
		return nil, nil, err
	}
	t.m.write(t.name, u.Key, it)
	if f.lose != nil {
		return nil, nil, f.lose
	}
	before, after = u.Result(old, it)
	return before, after, nil
}

func (t *memoryTable) Delete(ctx context.Context, key store.Key, conds ...store.Cond) error {
	return t.m.Transact(ctx, store.Action{Table: t.name, Delete: &store.Delete{Key: key, If: conds}})
}

func (t *memoryTable) Query(ctx context.Context, q store.Query) (store.Page, error) {
	var p store.Page
	f, err := t.m.meet(ctx, operation{pk: q.Partition.String()})
	if err != nil {
		return p, err
	}
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	for sk, it := range t.m.rows[t.name][q.Partition.String()] {
		if strings.HasPrefix(sk, q.Prefix) && sk > q.After {
			p.Rows = append(p.Rows, store.Row{Key: q.Partition.Key(sk), Item: it})
		}
	}
	slices.SortFunc(p.Rows, func(a, b store.Row) int { return strings.Compare(a.Key.SK(), b.Key.SK()) })
	if q.Limit > 0 && len(p.Rows) > q.Limit {
		p.Rows = p.Rows[:q.Limit]
		p.Next = p.Rows[q.Limit-1].Key.SK()
	}
	return p, f.lose
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

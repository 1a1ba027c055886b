package ledger

import (
	"context"
	"errors"
	"slices"
	"sort"
	"sync"

	"gateway/shared/store"
)

// A row with many open entries is large, and each update of it costs by its size. Above
// SplitAbove open entries a head therefore splits: shards are rows of the same form that
// each hold a part of the budget, and a new entry goes to a random one. In each row
// available = grant - spent - sum(open), where the grants of all rows add up to the
// limit. Money moves between rows only from available to available, in a transaction, so
// no row can spend another's.
//
// A row with too little takes from the others (gather); a request is rejected only if all
// together have too little. Rows are never deleted while the subject exists: shrinking
// sends new entries to the head only and moves the money there.

// firstShards and maxShards are the numbers of rows after a split.
const (
	firstShards = 8
	maxShards   = 64
)

// shardCounts are the numbers of rows over which this process spreads the entries of
// heads known to be split. A wrong number only costs an operation.
type shardCounts struct {
	mu sync.RWMutex
	of map[store.Key]int
}

func (c *shardCounts) get(head store.Key) int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return max(c.of[head], 1)
}

func (c *shardCounts) set(head store.Key, n int) {
	if c.get(head) == max(n, 1) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[store.Key]int{}
	}
	if c.of[head] = n; n <= 1 {
		delete(c.of, head)
	}
}

func (l *rows) learn(head store.Key, shards int64) { l.shards.set(head, int(shards)) }

// view is all rows of a subject, the head first. It is not a snapshot: money may move
// while it is read.
type view struct {
	keys []store.Key
	rows []store.Item
}

// view reads the rows of a head; nil if there are none.
func (l *rows) view(ctx context.Context, head store.Key) (*view, error) {
	it, ok, err := l.spend.Get(ctx, head, true)
	if err != nil || !ok {
		return nil, err
	}
	l.learn(head, it.Int(attrShards.Attr))
	n := max(int(it.Int(attrRows.Attr)), 1)
	v := &view{keys: append(make([]store.Key, 0, n), head), rows: append(make([]store.Item, 0, n), it)}
	if n == 1 {
		return v, nil
	}
	keys := make([]store.Key, 0, n-1)
	for i := 1; i < n; i++ {
		keys = append(keys, shardKey(head, i))
	}
	found, err := l.spend.GetMany(ctx, keys)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if row, ok := found[k]; ok {
			v.keys, v.rows = append(v.keys, k), append(v.rows, row)
		}
	}
	return v, nil
}

// bringAll brings every row of the view to the plan, the head first.
func (l *rows) bringAll(ctx context.Context, v *view, p *plan) (*plan, error) {
	for i := range v.rows {
		row, counts, err := l.bring(ctx, v.keys[i], v.rows[i], p)
		if err != nil {
			return p, err
		}
		v.rows[i], p = row, counts
	}
	return p, nil
}

func (v *view) available() (all []amounts, total amounts) {
	all = make([]amounts, 0, len(v.rows))
	for _, row := range v.rows {
		a := availableOf(row)
		all, total = append(all, a), sum(total, a)
	}
	return all, total
}

// gather moves the needed amounts into the part's row, or the part to a row that has
// them. left is less than needed only if all rows together had too little in two reads
// that agree: a single read could miss money that is moving between two rows.
func (l *rows) gather(ctx context.Context, p *part, need amounts) (left amounts, err error) {
	head := p.subject.derive().head
	var before []amounts
	for range attempts {
		v, err := l.view(ctx, head)
		if err != nil {
			return left, err
		}
		if v == nil {
			p.key = head
			return need, nil
		}
		if p.plan, err = l.bringAll(ctx, v, p.plan); err != nil {
			if errors.Is(err, errGone) {
				continue
			}
			return left, err
		}
		all, total := v.available()
		if lacks(total, need) >= 0 {
			if slices.Equal(all, before) {
				return total, nil
			}
			before = all
			continue
		}
		at := slices.Index(v.keys, p.key)
		if at < 0 {
			p.key = head
			return need, nil
		}
		if lacks(all[at], need) < 0 {
			return all[at], nil
		}
		err = l.collect(ctx, v, all, at, need)
		if err == nil {
			return need, nil
		}
		if _, moved := store.AsCondition(err); !moved && !errors.Is(err, store.ErrContended) {
			return left, err
		}
	}
	return left, store.ErrContended
}

// collect moves what row at lacks from the others, the one with most first. It takes half
// of a row's amount if that is more, to need few moves.
func (l *rows) collect(ctx context.Context, v *view, all []amounts, at int, need amounts) error {
	give := make([]amounts, len(all))
	for i := range need {
		lack := need[i] - all[at][i]
		if need[i] == 0 || lack <= 0 {
			continue
		}
		donors := make([]int, 0, len(all))
		for d := range all {
			if d != at && all[d][i] > 0 {
				donors = append(donors, d)
			}
		}
		sort.Slice(donors, func(a, b int) bool { return all[donors[a]][i] > all[donors[b]][i] })
		for n, d := range donors {
			if lack <= 0 {
				break
			}
			g := min(all[d][i], lack)
			if n == 0 {
				g = max(g, all[d][i]/2)
			}
			give[d][i] = g
			lack -= g
		}
	}
	return l.move(ctx, v, give, at)
}

// move transfers amounts between rows in one transaction.
func (l *rows) move(ctx context.Context, v *view, give []amounts, to int) error {
	var total amounts
	var actions []store.Action
	for d, a := range give {
		if d == to || a.zero() {
			continue
		}
		u := &store.Update{Key: v.keys[d]}
		for i, n := range a {
			if n > 0 {
				u.Add = append(u.Add, store.Increment{Path: slotAttr[i].available, By: -n})
				u.If = append(u.If, store.IfAtLeast(slotAttr[i].available, n))
			}
		}
		actions, total = append(actions, store.Action{Table: store.Spend, Update: u}), sum(total, a)
	}
	if len(actions) == 0 {
		return nil
	}
	u := &store.Update{Key: v.keys[to]}
	for i, n := range total {
		if n > 0 {
			u.Add = append(u.Add, store.Increment{Path: slotAttr[i].available, By: n})
			u.If = append(u.If, store.IfHas(slotAttr[i].available))
		}
	}
	return l.store.Transact(ctx, append(actions, store.Action{Table: store.Spend, Update: u})...)
}

// drainOverdrawn moves the shards' money to a head with a negative amount, as after a
// limit was lowered: otherwise the shards could overspend.
func (l *rows) drainOverdrawn(ctx context.Context, head store.Key, row store.Item, p *plan) {
	if row.Int(attrRows.Attr) <= 1 {
		return
	}
	if overdrawn(row) {
		l.failed(ctx, "collect a lowered budget", l.drain(ctx, head, p))
	}
}

// level moves money from the other rows of a head to one with a negative amount after a charge
// beyond its reservation. Otherwise the other rows would still admit requests that exceed the
// total budget.
func (l *rows) level(ctx context.Context, key store.Key, after glance) error {
	if !after.several || !after.overdrawn {
		return nil
	}
	head := headOf(key)
	for range attempts {
		v, err := l.view(ctx, head)
		if err != nil || v == nil {
			return err
		}
		at := slices.Index(v.keys, key)
		if at < 0 {
			return nil
		}
		if !overdrawn(v.rows[at]) {
			return nil
		}
		all, _ := v.available()
		var need amounts
		left := false
		for i, n := range all[at] {
			if n >= 0 {
				continue
			}
			need[i] = 1
			for d := range all {
				left = left || all[d][i] > 0
			}
		}
		if !left {
			return nil
		}
		err = l.collect(ctx, v, all, at, need)
		if _, moved := store.AsCondition(err); err == nil || !moved && !errors.Is(err, store.ErrContended) {
			return err
		}
	}
	return store.ErrContended
}

// overdrawn reports whether the available amount of a budget is negative.
func overdrawn(row store.Item) bool {
	for _, n := range availableOf(row) {
		if n < 0 {
			return true
		}
	}
	return false
}

// drain moves all that is available in shards to the head.
func (l *rows) drain(ctx context.Context, head store.Key, p *plan) error {
	for range attempts {
		v, err := l.view(ctx, head)
		if err != nil || v == nil {
			return err
		}
		if _, err = l.bringAll(ctx, v, p); err != nil {
			return err
		}
		all, _ := v.available()
		for d := range all {
			for i, n := range all[d] {
				all[d][i] = max(n, 0)
			}
		}
		err = l.move(ctx, v, all, 0)
		if _, moved := store.AsCondition(err); !moved && !errors.Is(err, store.ErrContended) {
			return err
		}
	}
	return store.ErrContended
}

// split adds shards to a head and gives each its share of what is available.
func (l *rows) split(ctx context.Context, head store.Key) error {
	if _, busy := l.splitting.LoadOrStore(head, true); busy {
		return nil
	}
	defer l.splitting.Delete(head)
	v, err := l.view(ctx, head)
	if err != nil || v == nil {
		return err
	}
	row := v.rows[0]
	have, rows := row.Int(attrShards.Attr), row.Int(attrRows.Attr)
	want := int64(firstShards)
	if have >= firstShards {
		want = maxShards
	}
	if have >= maxShards {
		return nil
	}
	if rows < want {
		if err := l.addRows(ctx, head, row, int(want)); err != nil {
			return err
		}
	}
	head0 := &store.Update{
		Key: head,
		Set: []store.Assign{{Path: attrShards, Value: want}, {Path: attrRows, Value: max(rows, want)}},
		If:  []store.Cond{store.IfEqual(attrShards, have), store.IfEqual(attrRows, rows)},
	}
	err = l.store.Transact(ctx, shares(head0, row, int(have), int(want))...)
	if err != nil {
		// A head this busy may reject transactions; gather then moves the money later.
		head0.Add, head0.If = nil, head0.If[:2]
		_, _, err = l.spend.Update(ctx, *head0)
	}
	if _, raced := store.AsCondition(err); raced {
		return nil
	}
	if err == nil {
		l.shards.set(head, int(want))
	}
	return err
}

// addRows creates the missing shards, without money.
func (l *rows) addRows(ctx context.Context, head store.Key, row store.Item, want int) error {
	empty := newRow(shardKey(head, 1), rowPlan(row), row, l.clock()) // all of them are equal
	errs := make([]error, want)
	l.each(want-1, func(i int) {
		err := l.spend.Put(ctx, store.Row{Key: shardKey(head, i+1), Item: empty.Item}, store.IfAbsent())
		if _, exists := store.AsCondition(err); !exists {
			errs[i] = err
		}
	})
	return errors.Join(errs...)
}

// shares gives each of the new rows an equal part of the head's money.
func shares(head *store.Update, row store.Item, have, want int) []store.Action {
	updates := []*store.Update{head}
	for k := have; k < want; k++ {
		updates = append(updates, &store.Update{Key: shardKey(head.Key, k)})
	}
	for i, n := range availableOf(row) {
		share := n / int64(want-have+1)
		if share <= 0 {
			continue
		}
		a := slotAttr[i].available
		for k, u := range updates {
			by := share
			if k == 0 {
				by = -share * int64(want-have)
			}
			u.Add = append(u.Add, store.Increment{Path: a, By: by})
			u.If = append(u.If, store.IfHas(a))
		}
		head.If = append(head.If, store.IfAtLeast(a, share*int64(want-have)))
	}
	actions := make([]store.Action, 0, len(updates))
	for k, u := range updates {
		if k == 0 || len(u.Add) > 0 {
			actions = append(actions, store.Action{Table: store.Spend, Update: u})
		}
	}
	return actions
}

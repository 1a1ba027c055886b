package storetest

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gateway/shared/store"
)

// testRandom does random operations on a few rows, in the store and in the model, and
// compares every result.
func testRandom(t *testing.T, s *suite) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{t: rt, s: s, model: model{}, partitions: []store.Partition{partition(), partition()}}
		rt.Repeat(map[string]func(*rapid.T){
			"put":      w.put,
			"put many": w.putMany,
			"update":   w.update,
			"delete":   w.delete,
			"transact": w.transact,
			"get":      w.get,
			"get many": w.getMany,
			"query":    w.query,
		})
		for _, table := range tables {
			for _, p := range w.partitions {
				w.compareQuery(rt, table, store.Query{Partition: p})
			}
		}
	})
}

var tables = []store.TableName{store.Control, store.Rate}

type walk struct {
	t          *rapid.T
	s          *suite
	model      model
	partitions []store.Partition
}

var (
	drawTable  = rapid.SampledFrom(tables)
	drawSK     = rapid.SampledFrom([]string{"a", "a#1", "a#2", "b", "é"})
	drawAttr   = rapid.SampledFrom([]string{"a", "b", "m", "n.x", "size"})
	drawScalar = rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]int64{-1, 0, 1, 2, 10, math.MaxInt64, math.MinInt64}), func(v int64) store.Value { return v }),
		rapid.Map(rapid.Int64(), func(v int64) store.Value { return v }),
		rapid.Map(rapid.SampledFrom([]string{"", "1", "10", "x", "Ж🦊"}), func(v string) store.Value { return v }),
		rapid.Map(rapid.String(), func(v string) store.Value { return v }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(v []byte) store.Value { return append([]byte{}, v...) }),
		rapid.Map(rapid.Bool(), func(v bool) store.Value { return v }),
	)
	drawMap = rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"k", "l", "n.x"}), drawScalar, 0, 3),
		func(m map[string]store.Value) store.Value {
			out := store.Map{}
			for k, v := range m {
				out[k] = v
			}
			return out
		})
	drawValue = rapid.OneOf(drawScalar, drawScalar, drawMap)
	drawItem  = rapid.Map(rapid.MapOfN(drawAttr, drawValue, 0, 4), func(m map[string]store.Value) store.Item {
		out := store.Item{}
		for k, v := range m {
			out[k] = v
		}
		return out
	})
	drawPath = rapid.Custom(func(t *rapid.T) store.Path {
		p := store.At(drawAttr.Draw(t, "attribute"))
		if rapid.IntRange(0, 2).Draw(t, "nested") == 0 {
			p.Key = rapid.SampledFrom([]string{"k", "l", "n.x"}).Draw(t, "key")
		}
		return p
	})
	drawCond = rapid.Custom(func(t *rapid.T) store.Cond {
		c := store.Cond{Op: store.Op(rapid.IntRange(int(store.ItemAbsent), int(store.AtMost)).Draw(t, "op"))}
		if c.Op == store.ItemAbsent || c.Op == store.ItemPresent {
			return c
		}
		c.Path = drawPath.Draw(t, "path")
		switch c.Op {
		case store.Equal:
			c.Value = drawScalar.Draw(t, "value")
		case store.AtLeast, store.AtMost:
			c.Value = drawScalar.Filter(func(v store.Value) bool {
				switch v.(type) {
				case int64, string:
					return true
				}
				return false
			}).Draw(t, "value")
		}
		return c
	})
	// Mostly no condition: several random ones rarely hold together.
	drawConds = rapid.OneOf(rapid.Just[[]store.Cond](nil), rapid.SliceOfN(drawCond, 1, 1), rapid.SliceOfN(drawCond, 0, 3))
	drawTime  = rapid.Map(rapid.IntRange(0, 9), func(n int) time.Time {
		switch n {
		case 0:
			return earlier()
		case 1, 2:
			return later()
		}
		return time.Time{}
	})
)

func (w *walk) key(t *rapid.T) store.Key {
	return rapid.SampledFrom(w.partitions).Draw(t, "partition").Key(drawSK.Draw(t, "sort key"))
}

func (w *walk) row(t *rapid.T) store.Row {
	return store.Row{Key: w.key(t), Item: drawItem.Draw(t, "item"), Expires: drawTime.Draw(t, "expires")}
}

// change is an update with paths that do not overlap.
func (w *walk) change(t *rapid.T) store.Update {
	u := store.Update{Key: w.key(t), If: drawConds.Draw(t, "conditions"), Expires: drawTime.Draw(t, "expires")}
	used := map[string]bool{}
	for _, p := range rapid.SliceOfN(drawPath, 1, 4).Draw(t, "paths") {
		if used[p.Attr] {
			continue
		}
		used[p.Attr] = true
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		if kind == 1 && p.Key != "" && w.s.deviates(RemoveNeedsNoMap) {
			kind = 2
		}
		switch kind {
		case 0:
			v := drawScalar
			if p.Key == "" {
				v = drawValue
			}
			u.Set = append(u.Set, store.Assign{Path: p, Value: v.Draw(t, "value")})
		case 1:
			u.Remove = append(u.Remove, p)
		default:
			by := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64()).Draw(t, "by")
			u.Add = append(u.Add, store.Increment{Path: p, By: by})
		}
	}
	if len(u.Set)+len(u.Add) == 0 && w.s.deviates(RemoveMakesRow) {
		u.Expires = later()
	}
	return u
}

// classify turns an error of the store into an outcome.
func classify(t *rapid.T, err error) outcome {
	if err == nil {
		return outcome{}
	}
	if c, ok := store.AsCondition(err); ok {
		return outcome{Failed: true, Action: c.Action, Key: c.Key, Current: c.Current}
	}
	// The contract does not specify which of two rejections comes first.
	if !errors.Is(err, store.ErrNoMap) && !errors.Is(err, store.ErrInvalid) {
		t.Fatal(err)
	}
	return outcome{Refused: true}
}

func (w *walk) compare(t *rapid.T, want, got any) {
	if diff := cmp.Diff(want, got, compareKeys); diff != "" {
		t.Fatalf("-model +store:\n%s", diff)
	}
}

func (w *walk) put(t *rapid.T) {
	table, row, conds := drawTable.Draw(t, "table"), w.row(t), drawConds.Draw(t, "conditions")
	want := w.model.transact([]store.Action{{Table: table, Put: &store.Put{Row: row, If: conds}}})
	w.compare(t, want, classify(t, w.s.s.Table(table).Put(w.s.ctx, row, conds...)))
}

func (w *walk) putMany(t *rapid.T) {
	table := drawTable.Draw(t, "table")
	var rows []store.Row
	for range rapid.IntRange(0, 4).Draw(t, "rows") {
		rows = append(rows, w.row(t))
	}
	for _, r := range rows {
		w.model.transact([]store.Action{{Table: table, Put: &store.Put{Row: r}}})
	}
	w.compare(t, outcome{}, classify(t, w.s.s.Table(table).PutMany(w.s.ctx, rows)))
}

func (w *walk) update(t *rapid.T) {
	table, u := drawTable.Draw(t, "table"), w.change(t)
	want := w.model.transact([]store.Action{{Table: table, Update: &u}})
	before, after, err := w.s.s.Table(table).Update(w.s.ctx, u)
	got := classify(t, err)
	got.Before, got.After = before, after
	if len(want.Before)+len(got.Before) == 0 && w.s.deviates(EmptyIsAbsent) {
		want.Before, got.Before = nil, nil
	}
	w.compare(t, want, got)
}

func (w *walk) delete(t *rapid.T) {
	table, key, conds := drawTable.Draw(t, "table"), w.key(t), drawConds.Draw(t, "conditions")
	want := w.model.transact([]store.Action{{Table: table, Delete: &store.Delete{Key: key, If: conds}}})
	w.compare(t, want, classify(t, w.s.s.Table(table).Delete(w.s.ctx, key, conds...)))
}

func (w *walk) transact(t *rapid.T) {
	used := map[place]bool{}
	var actions []store.Action
	for range rapid.IntRange(1, 5).Draw(t, "actions") {
		a := store.Action{Table: drawTable.Draw(t, "table")}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			a.Put = &store.Put{Row: w.row(t), If: drawConds.Draw(t, "conditions")}
		case 1:
			u := w.change(t)
			a.Update = &u
		case 2:
			a.Delete = &store.Delete{Key: w.key(t), If: drawConds.Draw(t, "conditions")}
		case 3:
			a.Check = &store.Check{Key: w.key(t), If: []store.Cond{drawCond.Draw(t, "condition")}}
		}
		if at := (place{a.Table, a.Target()}); !used[at] {
			used[at] = true
			actions = append(actions, a)
		}
	}
	want := w.model.transact(actions)
	want.Before, want.After = nil, nil
	w.compare(t, want, classify(t, w.s.s.Transact(w.s.ctx, actions...)))
}

func (w *walk) get(t *rapid.T) {
	table, key := drawTable.Draw(t, "table"), w.key(t)
	var want store.Item
	if e, ok := w.model[place{table, key}]; ok && !e.dead() {
		want = e.item
	}
	got, ok, err := w.s.s.Table(table).Get(w.s.ctx, key, true)
	if err != nil || ok != (want != nil) {
		t.Fatal(ok, err)
	}
	w.compare(t, want, got)
}

func (w *walk) getMany(t *rapid.T) {
	table := drawTable.Draw(t, "table")
	want := map[store.Key]store.Item{}
	var keys []store.Key
	for range rapid.IntRange(0, 5).Draw(t, "keys") {
		key := w.key(t)
		keys = append(keys, key)
		if e, ok := w.model[place{table, key}]; ok && !e.dead() {
			want[key] = e.item
		}
	}
	got, err := w.s.s.Table(table).GetMany(w.s.ctx, keys)
	if err != nil {
		t.Fatal(err)
	}
	w.compare(t, want, got)
}

func (w *walk) query(t *rapid.T) {
	maybe := rapid.OneOf(rapid.Just(""), drawSK)
	q := store.Query{
		Partition: rapid.SampledFrom(w.partitions).Draw(t, "partition"),
		After:     maybe.Draw(t, "after"),
		Limit:     rapid.IntRange(0, 3).Draw(t, "limit"),
		Reverse:   rapid.Bool().Draw(t, "reverse"),
		CountOnly: rapid.Bool().Draw(t, "count only"),
	}
	if rapid.Bool().Draw(t, "by prefix") {
		q.Prefix = maybe.Draw(t, "prefix")
	} else {
		q.From, q.To = maybe.Draw(t, "from"), maybe.Draw(t, "to")
	}
	w.compareQuery(t, drawTable.Draw(t, "table"), q)
}

func (w *walk) compareQuery(t *rapid.T, table store.TableName, q store.Query) {
	want := w.model.query(table, q)
	count := len(want)
	if q.CountOnly {
		want = nil
	}
	var got []store.Row
	counted := 0
	for {
		p, err := w.s.s.Table(table).Query(w.s.ctx, q)
		if err != nil {
			t.Fatal(err)
		}
		if q.Limit > 0 && p.Count > q.Limit {
			t.Fatalf("%d rows in a page of %d", p.Count, q.Limit)
		}
		got, counted = append(got, p.Rows...), counted+p.Count
		if p.Next == "" {
			break
		}
		q.After = p.Next
	}
	w.compare(t, want, got)
	w.compare(t, count, counted)
}

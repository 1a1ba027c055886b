package storetest

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"gateway/shared/store"
)

// model is a store in a map, written as simply as possible and deliberately without the
// rules of package store, with which it is compared.
type model map[place]entry

type place struct {
	table store.TableName
	key   store.Key
}

type entry struct {
	item    store.Item
	expires time.Time
}

func (e entry) dead() bool { return !e.expires.IsZero() && e.expires.Before(time.Now()) }

// outcome is the result of a write, in a form that can be compared.
type outcome struct {
	Refused       bool // ErrNoMap, ErrInvalid
	Failed        bool // a condition
	Action        int
	Key           store.Key
	Current       store.Item
	Before, After store.Item
}

func deepCopy(it store.Item) store.Item {
	if it == nil {
		return nil
	}
	c := store.Item{}
	for k, v := range it {
		if m, ok := v.(store.Map); ok {
			v = maps.Clone(m)
		}
		c[k] = v
	}
	return c
}

// transact does all or none, for one action or many.
func (m model) transact(actions []store.Action) outcome {
	next := maps.Clone(m)
	var out outcome
	for i, a := range actions {
		at := place{a.Table, a.Target()}
		old, there := m[at]
		var current store.Item
		if there {
			current = old.item
		}
		for _, c := range a.Conds() {
			if !modelHolds(c, current, there) {
				return outcome{Failed: true, Action: i, Key: at.key, Current: deepCopy(current)}
			}
		}
		switch {
		case a.Put != nil:
			next[at] = entry{deepCopy(a.Put.Row.Item), a.Put.Row.Expires}
		case a.Delete != nil:
			delete(next, at)
		case a.Update != nil:
			item, ok := modelUpdate(a.Update, current)
			if !ok {
				return outcome{Refused: true}
			}
			if !there && len(a.Update.Set)+len(a.Update.Add) == 0 && a.Update.Expires.IsZero() {
				continue // removing from nothing
			}
			expires := old.expires
			if !a.Update.Expires.IsZero() {
				expires = a.Update.Expires
			}
			next[at] = entry{item, expires}
			out = outcome{Before: deepCopy(current), After: deepCopy(item)}
		}
	}
	clear(m)
	maps.Copy(m, next)
	return out
}

func modelFind(it store.Item, p store.Path) any {
	v := it[p.Attr]
	if p.Key == "" {
		return v
	}
	if inner, ok := v.(store.Map); ok {
		return inner[p.Key]
	}
	return nil
}

func modelHolds(c store.Cond, it store.Item, there bool) bool {
	v := modelFind(it, c.Path)
	same := false
	if b, ok := v.([]byte); ok {
		w, ok := c.Value.([]byte)
		same = ok && bytes.Equal(b, w)
	} else if _, isMap := v.(store.Map); !isMap && v != nil {
		if _, ok := c.Value.([]byte); !ok {
			same = v == c.Value
		}
	}
	order, ordered := 0, false
	switch x := v.(type) {
	case int64:
		if y, ok := c.Value.(int64); ok {
			ordered = true
			if x < y {
				order = -1
			} else if x > y {
				order = 1
			}
		}
	case string:
		if y, ok := c.Value.(string); ok {
			order, ordered = strings.Compare(x, y), true
		}
	}
	return map[store.Op]bool{
		store.ItemAbsent: !there, store.ItemPresent: there,
		store.Absent: v == nil, store.Present: v != nil,
		store.Equal:   same,
		store.AtLeast: ordered && order >= 0, store.AtMost: ordered && order <= 0,
	}[c.Op]
}

func modelUpdate(u *store.Update, current store.Item) (store.Item, bool) {
	item := deepCopy(current)
	if item == nil {
		item = store.Item{}
	}
	ok := true
	write := func(p store.Path, v store.Value) {
		if p.Key == "" {
			item[p.Attr] = v
			if v == nil {
				delete(item, p.Attr)
			}
			return
		}
		inner, isMap := item[p.Attr].(store.Map)
		if !isMap {
			ok = false
			return
		}
		inner[p.Key] = v
		if v == nil {
			delete(inner, p.Key)
		}
	}
	for _, a := range u.Set {
		write(a.Path, deepCopy(store.Item{"v": a.Value})["v"])
	}
	for _, a := range u.Add {
		v := modelFind(current, a.Path)
		n, isInt := v.(int64)
		if v != nil && !isInt || a.By > 0 && n > math.MaxInt64-a.By || a.By < 0 && n < math.MinInt64-a.By {
			ok = false
			continue
		}
		write(a.Path, n+a.By)
	}
	for _, p := range u.Remove {
		write(p, nil)
	}
	return item, ok
}

// query is all rows that a query finds, as if there were no pages.
func (m model) query(table store.TableName, q store.Query) []store.Row {
	var rows []store.Row
	for at, e := range m {
		sk := at.key.SK()
		if at.table != table || at.key.PK() != q.Partition.String() || e.dead() ||
			!strings.HasPrefix(sk, q.Prefix) || sk < q.From || q.To != "" && sk > q.To ||
			q.After != "" && (!q.Reverse && sk <= q.After || q.Reverse && sk >= q.After) {
			continue
		}
		rows = append(rows, store.Row{Key: at.key, Item: deepCopy(e.item), Expires: e.expires})
	}
	slices.SortFunc(rows, func(a, b store.Row) int {
		if q.Reverse {
			a, b = b, a
		}
		return strings.Compare(a.Key.SK(), b.Key.SK())
	})
	return rows
}

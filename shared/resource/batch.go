package resource

import "gateway/shared/store"

// batch are the actions of one transaction, at most one on a row.
type batch struct {
	staged []staged
	index  map[place]int
}

type place struct {
	table store.TableName
	key   store.Key
}

// staged is one action and the meaning of its failed condition: a fault, or nil for "read
// again and retry".
type staged struct {
	action store.Action
	onFail error
}

func (b *batch) put(table store.TableName, row store.Row, onFail error, conds ...store.Cond) {
	b.stage(place{table, row.Key}, staged{store.Action{Table: table, Put: &store.Put{Row: row, If: conds}}, onFail})
}

func (b *batch) delete(table store.TableName, key store.Key, onFail error, conds ...store.Cond) {
	b.stage(place{table, key}, staged{store.Action{Table: table, Delete: &store.Delete{Key: key, If: conds}}, onFail})
}

// stage adds an action. A second action on the same row replaces the first but retains its
// conditions, which are about the stored row. Only if a write of the entire row replaces an
// update, the conditions of the update are dropped, because the write has stricter ones.
func (b *batch) stage(p place, s staged) {
	i, ok := b.index[p]
	if !ok {
		b.index[p] = len(b.staged)
		b.staged = append(b.staged, s)
		return
	}
	first := b.staged[i]
	if first.action.Update != nil {
		b.staged[i] = s
		return
	}
	setConditions(&s.action, first.action.Conds())
	s.onFail = first.onFail
	b.staged[i] = s
}

func setConditions(a *store.Action, conds []store.Cond) {
	switch {
	case a.Put != nil:
		a.Put.If = conds
	case a.Update != nil:
		a.Update.If = conds
	case a.Delete != nil:
		a.Delete.If = conds
	default:
		a.Check.If = conds
	}
}

// has reports whether there is an action on a row.
func (b *batch) has(table store.TableName, key store.Key) bool {
	_, ok := b.index[place{table, key}]
	return ok
}

package sqlite

import (
	"fmt"

	"gateway/shared/store"
)

// change is what one action does to its row, decided before anything is written.
type change struct {
	kind    changeKind
	table   int
	key     store.Key
	item    store.Item
	expires int64
}

type changeKind uint8

const (
	changeNone    changeKind = iota // a check
	changePut                       // write item and expiry
	changeReplace                   // write the item of a row with an unchanged expiry
	changeDelete
)

// writeError is a failure of the database while writing. Its transaction must not
// continue, because SQLite may have rolled it back already.
type writeError struct{ cause error }

func (e *writeError) Error() string { return e.cause.Error() }
func (e *writeError) Unwrap() error { return e.cause }

// apply does one operation. It tests all conditions and computes all rows before the
// first write, so that a rejection has no effect, and only a *writeError can leave the
// operation half done.
func (w *writer) apply(o *op) error {
	if sw := o.sweep; sw != nil {
		var err error
		if sw.deleted, err = w.c.exec(sw.table, stmtSweep, sw.now, sw.limit); err != nil {
			return &writeError{err}
		}
		w.pages += int(sw.deleted)
		return nil
	}
	if f := o.flush; f != nil {
		return w.flush(f)
	}
	w.changes = w.changes[:0]
	defer func() { clear(w.changes) }()
	size := 0
	for i := range o.actions {
		ch, err := w.decide(o, i)
		if err != nil {
			return err
		}
		if ch.item != nil {
			size += ch.item.Size(ch.key)
		}
		if ch.kind != changeNone {
			w.changes = append(w.changes, ch)
		}
	}
	if size > store.MaxTransactBytes {
		return fmt.Errorf("%w, or a transaction larger than 4 MB", store.ErrTooLarge)
	}
	return w.write()
}

// decide tests the conditions of one action and decides what to write.
func (w *writer) decide(o *op, i int) (change, error) {
	a := &o.actions[i]
	ch := change{table: tableIndex(a.Table), key: a.Target()}
	conds := a.Conds()
	var current store.Item // nil when the row does not exist
	var expires int64
	if len(conds) > 0 || a.Update != nil {
		var err error
		if current, expires, _, err = w.c.get(ch.table, ch.key); err != nil {
			return ch, err
		}
		if !store.Satisfies(conds, current) {
			return ch, &store.ConditionError{Action: i, Key: ch.key, Current: current}
		}
	}
	switch {
	case a.Put != nil:
		ch.kind, ch.item, ch.expires = changePut, a.Put.Row.Item, store.Epoch(a.Put.Row.Expires)
		if ch.item == nil {
			ch.item = store.Item{}
		}
	case a.Delete != nil:
		ch.kind = changeDelete
	case a.Update != nil:
		after, err := a.Update.Apply(current)
		if err != nil {
			return ch, err
		}
		o.before, o.after = current, after
		if after == nil {
			return ch, nil
		}
		ch.item, ch.kind, ch.expires = after, changePut, expires
		if e := store.Epoch(a.Update.Expires); e != 0 {
			ch.expires = e
		}
		if current != nil && ch.expires == expires {
			ch.kind = changeReplace
		}
	}
	return ch, nil
}

// write does the decided changes in their order.
func (w *writer) write() error {
	for i := range w.changes {
		ch := &w.changes[i]
		if err := w.writeRow(ch); err != nil {
			return err
		}
		w.touched = append(w.touched, touched{ch.table, ch.key})
	}
	return nil
}

// flush writes rows that were changed in memory; their watchers have been called.
func (w *writer) flush(f *flushOp) error {
	for i := range f.rows {
		if err := w.writeRow(&f.rows[i]); err != nil {
			return err
		}
	}
	if f.seq == 0 {
		return nil
	}
	if err := w.c.setFlushed(f.seq); err != nil {
		return &writeError{err}
	}
	return nil
}

func (w *writer) writeRow(ch *change) error {
	pk, sk := []byte(ch.key.PK()), []byte(ch.key.SK())
	var err error
	w.buf = w.buf[:0]
	switch ch.kind {
	case changePut:
		w.buf = appendItem(w.buf, ch.item)
		_, err = w.c.exec(ch.table, stmtUpsert, pk, sk, w.buf, ch.expires)
	case changeReplace:
		w.buf = appendItem(w.buf, ch.item)
		_, err = w.c.exec(ch.table, stmtReplaceItem, w.buf, pk, sk)
	case changeDelete:
		_, err = w.c.exec(ch.table, stmtDelete, pk, sk)
	}
	if err != nil {
		return &writeError{err}
	}
	w.pages += 1 + len(w.buf)/pageBytes
	return nil
}

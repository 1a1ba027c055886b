package assembly_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"gateway/shared/store"
)

// outbox begins the partitions where the audit trail of rejected calls waits.
const outbox = "SYS#OUTBOX"

// attempts are the beginnings of the partitions where incoming calls are counted,
// especially rejected ones.
const attempts = "ATTEMPTS#"

// watched is a store that counts its calls and can report rows.
type watched struct {
	store.Store
	mu            sync.Mutex
	partitions    map[string]store.Partition
	reads, writes int
	done          int // writes that were done
}

func watch(s store.Store) *watched {
	return &watched{Store: s, partitions: map[string]store.Partition{}}
}

func (w *watched) Table(name store.TableName) store.Table {
	return watchedTable{w.Store.Table(name), w}
}

// wrote notes a write that was done, or was not for err.
func (w *watched) wrote(err error, keys ...store.Key) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if err != nil {
		return err
	}
	w.done++
	for _, k := range keys {
		w.partitions[k.Partition().String()] = k.Partition()
	}
	return nil
}

func (w *watched) read() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
}

// changes are the writes that were done so far.
func (w *watched) changes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

func (w *watched) Transact(ctx context.Context, actions ...store.Action) error {
	var keys []store.Key
	for _, a := range actions {
		switch {
		case a.Put != nil:
			keys = append(keys, a.Put.Row.Key)
		case a.Update != nil:
			keys = append(keys, a.Update.Key)
		case a.Delete != nil:
			keys = append(keys, a.Delete.Key)
		}
	}
	return w.wrote(w.Store.Transact(ctx, actions...), keys...)
}

// attempted begins the counts of attempts at ways in, which rejected ones are for.
const attempted = "ATTEMPTS#"

// dump is every row, in order, but those of the audit trail's outbox.
func (w *watched) dump(t testing.TB) string {
	t.Helper()
	var out strings.Builder
	w.mu.Lock()
	partitions := maps.Clone(w.partitions)
	w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(partitions)) {
		if strings.HasPrefix(name, outbox) {
			continue
		}
		for _, table := range []store.TableName{store.Control, store.Keys, store.Rate, store.Spend} {
			q := store.Query{Partition: partitions[name]}
			for {
				page, err := w.Store.Table(table).Query(context.Background(), q)
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range page.Rows {
					fmt.Fprintln(&out, table, row.Key, row.Expires.Unix(), row.Item)
				}
				if page.Next == "" {
					break
				}
				q.After = page.Next
			}
		}
	}
	return out.String()
}

type watchedTable struct {
	store.Table
	w *watched
}

func (t watchedTable) Get(ctx context.Context, k store.Key, consistent bool) (store.Item, bool, error) {
	t.w.read()
	return t.Table.Get(ctx, k, consistent)
}

func (t watchedTable) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	t.w.read()
	return t.Table.GetMany(ctx, keys)
}

func (t watchedTable) Query(ctx context.Context, q store.Query) (store.Page, error) {
	t.w.read()
	return t.Table.Query(ctx, q)
}

func (t watchedTable) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	if strings.HasPrefix(row.Key.Partition().String(), outbox) {
		return t.Table.Put(ctx, row, conds...)
	}
	return t.w.wrote(t.Table.Put(ctx, row, conds...), row.Key)
}

func (t watchedTable) PutMany(ctx context.Context, rows []store.Row) error {
	keys := make([]store.Key, len(rows))
	for i := range rows {
		keys[i] = rows[i].Key
	}
	return t.w.wrote(t.Table.PutMany(ctx, rows), keys...)
}

func (t watchedTable) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	if strings.HasPrefix(u.Key.Partition().String(), attempted) {
		return t.Table.Update(ctx, u)
	}
	before, after, err = t.Table.Update(ctx, u)
	if strings.HasPrefix(u.Key.Partition().String(), attempts) {
		return before, after, err
	}
	return before, after, t.w.wrote(err, u.Key)
}

func (t watchedTable) Delete(ctx context.Context, key store.Key, conds ...store.Cond) error {
	if strings.HasPrefix(key.Partition().String(), outbox) {
		return t.Table.Delete(ctx, key, conds...)
	}
	return t.w.wrote(t.Table.Delete(ctx, key, conds...), key)
}

package resource

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"gateway/shared/store"
)

// Row is what a list knows about a record: enough to filter, count and order.
type Row struct {
	ID, Slug, Name, Status string
	Created                time.Time
	Order                  string // of creation: later ones are greater
	Tags, Fields           map[string]string
	Rev                    int64 // the record's Rev when it was last written; 0 in rows of older versions
}

// Row is what the list knows about the record.
func (r *Record) Row() Row {
	return Row{ID: r.ID, Slug: r.Slug, Name: r.Name, Status: r.Status, Created: r.Created, Order: r.row, Tags: r.Tags, Fields: r.Fields, Rev: r.Rev}
}

// listItem is the list row of a record. Its attribute names are short because a list of
// 10,000 records reads them all.
func (r *Record) listItem() store.Item {
	it := store.Item{"i": r.ID, "r": r.Rev}
	setString(it, "s", r.Slug)
	setString(it, "n", r.Name)
	setString(it, "t", r.Status)
	setMap(it, "g", r.Tags)
	setMap(it, "f", r.Fields)
	return it
}

func decodeRow(sk string, it store.Item) Row {
	order := sk[strings.LastIndexByte(sk, '#')+1:]
	return Row{
		ID: it.String("i"), Slug: it.String("s"), Name: it.String("n"), Status: it.String("t"),
		Created: timeOf(order), Order: order,
		Tags: stringMap(it.Map("g")), Fields: stringMap(it.Map("f")), Rev: it.Int("r"),
	}
}

// List gives the rows of all live records, newest first. The slice is shared
// with other callers: do not change it.
func (r *Resources) List(ctx context.Context, sc store.Scope, k Kind) ([]Row, error) {
	return r.list(ctx, sc, k, false)
}

// ListArchived gives the rows of all archived records, newest first.
func (r *Resources) ListArchived(ctx context.Context, sc store.Scope, k Kind) ([]Row, error) {
	return r.list(ctx, sc, k, true)
}

// listReaders is how many lists are read at a time.
const listReaders = 16

// ListMany is List for many scopes of one organization, in their order; the generation is read
// once for all of them. archived adds archived records.
func (r *Resources) ListMany(ctx context.Context, scopes []store.Scope, k Kind, archived bool) ([][]Row, error) {
	if len(scopes) == 0 {
		return nil, nil
	}
	now, err := r.listStamp(ctx, scopes[0].Org)
	if err != nil {
		return nil, err
	}
	lists, errs := make([][]Row, len(scopes)), make([]error, len(scopes))
	if len(scopes) == 1 {
		lists[0], err = r.listUnder(ctx, now, scopes[0], k, archived)
		return lists, err
	}
	var wg sync.WaitGroup
	for first := range min(listReaders, len(scopes)) {
		wg.Go(func() {
			for n := first; n < len(scopes); n += listReaders {
				lists[n], errs[n] = r.listUnder(ctx, now, scopes[n], k, archived)
			}
		})
	}
	wg.Wait()
	return lists, errors.Join(errs...)
}

func (r *Resources) list(ctx context.Context, sc store.Scope, k Kind, archived bool) ([]Row, error) {
	now, err := r.listStamp(ctx, sc.Org)
	if err != nil {
		return nil, err
	}
	return r.listUnder(ctx, now, sc, k, archived)
}

// listUnder reads a list, or takes the cached one if it is still valid.
func (r *Resources) listUnder(ctx context.Context, now stamp, sc store.Scope, k Kind, archived bool) ([]Row, error) {
	key := listID{sc, k, archived}
	if rows, ok := r.lists.get(key, now); ok {
		return rows, nil
	}
	began, keep := r.lists.reading(key)
	rows, err := r.listNow(ctx, sc, k, archived)
	if err != nil {
		return nil, err
	}
	if keep {
		r.lists.put(key, began, now, rows)
	}
	return rows, nil
}

// listNow reads a list from the store.
func (r *Resources) listNow(ctx context.Context, sc store.Scope, k Kind, archived bool) ([]Row, error) {
	rows := make([]Row, 0, 64)
	q := store.Query{Partition: sc.Partition(), Prefix: listTop(archived) + "#" + string(k) + "#", Reverse: true}
	err := each(ctx, r.control, q, func(row store.Row) error {
		rows = append(rows, decodeRow(row.Key.SK(), row.Item))
		return nil
	})
	return rows, err
}

// List gives the rows of all live records as the store has them at this moment: with
// everything that was committed, but without what this change stages. It is for changes
// that depend on the number of records, and it reads them all.
func (t *Tx) List(sc store.Scope, k Kind) ([]Row, error) {
	if err := own(t, sc); err != nil {
		return nil, err
	}
	return t.r.listNow(t.ctx, sc, k, false)
}

// listStamp is the stamp that cached lists of the organisation are compared with. With an
// embedded store this process is the only writer, and it knows its own changes.
func (r *Resources) listStamp(ctx context.Context, org string) (stamp, error) {
	if r.embedded {
		return stamp{}, nil
	}
	before := r.lists.own(org)
	gen, err := r.Generation(ctx, org)
	if err != nil {
		return stamp{}, err
	}
	return stamp{gen: gen, own: before.done, steady: before.writers == 0 && r.lists.own(org) == before}, nil
}

package admin

import (
	"sync"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// maxOpened bounds the records of an openCache.
const maxOpened = 20_000

// openCache caches whether workspaces see a record of the organization, so that a list need not
// read every record to omit some. A list row contains the revision of its record; an entry of
// an older revision is not used.
type openCache[T any] struct {
	mu    sync.Mutex
	items map[resource.Ref]Item[T]
}

func opening(sc store.Scope, id string) resource.Ref { return resource.Ref{Scope: sc, ID: id} }

func (o *openCache[T]) get(sc store.Scope, row *resource.Row) (Item[T], bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	it, ok := o.items[opening(sc, row.ID)]
	return it, ok && row.Rev > 0 && it.Rev >= row.Rev
}

func (o *openCache[T]) put(it Item[T]) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.items) >= maxOpened || o.items == nil {
		o.items = make(map[resource.Ref]Item[T])
	}
	rec := *it.Record
	rec.Body, rec.Sealed = nil, nil
	o.items[opening(rec.Scope, rec.ID)] = Item[T]{&rec, it.Form}
}

package resource

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// DefaultQuota is how many live records of one kind a scope may hold.
const DefaultQuota = 10_000

// Resources reads and changes stored resources. It is safe for concurrent use.
type Resources struct {
	store    store.Store
	control  store.Table
	now      func() time.Time
	ids      *idSource
	quota    func(store.Scope, Kind) int64
	embedded bool
	lists    listCache

	mu       sync.Mutex
	changed  []func(org string)
	afterOut func(ctx context.Context, messages []Message)
	before   func(*Tx) error

	sequence atomic.Int64 // the last value of Tx.Sequence
}

// Option sets up Resources.
type Option func(*Resources)

// Embedded says that this process is the only writer of the store. The writer then drops
// cached lists and loaded records itself, and no generation is read.
func Embedded() Option { return func(r *Resources) { r.embedded = true } }

// Clock replaces time.Now.
func Clock(now func() time.Time) Option { return func(r *Resources) { r.now = now } }

// Quota replaces DefaultQuota by a value per scope and kind.
func Quota(q func(store.Scope, Kind) int64) Option { return func(r *Resources) { r.quota = q } }

// New makes Resources over a store.
func New(s store.Store, opts ...Option) *Resources {
	r := &Resources{
		store: s, control: s.Table(store.Control), now: time.Now, ids: newIDSource(),
		quota: func(store.Scope, Kind) int64 { return DefaultQuota },
	}
	for _, o := range opts {
		o(r)
	}
	return r
}

// Store is the store below.
func (r *Resources) Store() store.Store { return r.store }

// Now is the time that is written into records.
func (r *Resources) Now() time.Time { return r.now() }

// OnChange calls f with the organisation after each commit of this process and
// before Change returns. Call it before the first Change.
func (r *Resources) OnChange(f func(org string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed, f)
}

// OnOutbox calls f with the messages of each commit, before Change returns. Messages that f
// does not send stay in the outbox for the sweeper.
func (r *Resources) OnOutbox(f func(ctx context.Context, messages []Message)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.afterOut = f
}

// BeforeCommit calls f for every change before it is committed. What f stages becomes part
// of the change. There is only one f.
func (r *Resources) BeforeCommit(f func(*Tx) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = f
}

// Get reads a record by id or slug, consistently. An id wins over a slug.
func (r *Resources) Get(ctx context.Context, sc store.Scope, k Kind, idOrSlug string) (Record, bool, error) {
	if !validID(idOrSlug) {
		return Record{}, false, nil
	}
	byID, bySlug := recordKey(sc, k, idOrSlug), slugKey(sc, k, idOrSlug)
	rows, err := r.control.GetMany(ctx, []store.Key{byID, bySlug})
	if err != nil {
		return Record{}, false, readError(err)
	}
	if it, ok := rows[byID]; ok {
		return decodeRecord(sc, k, idOrSlug, it), true, nil
	}
	it, ok := rows[bySlug]
	if !ok {
		return Record{}, false, nil
	}
	return getByID(ctx, r.control, sc, k, it.String("id"))
}

func getByID(ctx context.Context, table store.Table, sc store.Scope, k Kind, id string) (Record, bool, error) {
	it, ok, err := table.Get(ctx, recordKey(sc, k, id), true)
	if err != nil || !ok {
		return Record{}, false, readError(err)
	}
	return decodeRecord(sc, k, id, it), true, nil
}

// GetMany reads records by id, consistently, in the order of ids and each once; absent ones
// are left out.
func (r *Resources) GetMany(ctx context.Context, sc store.Scope, k Kind, ids []string) ([]Record, error) {
	keys, asked := make([]store.Key, 0, len(ids)), make([]string, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if validID(id) && !seen[id] {
			seen[id] = true
			keys, asked = append(keys, recordKey(sc, k, id)), append(asked, id)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	rows, err := r.control.GetMany(ctx, keys)
	if err != nil {
		return nil, readError(err)
	}
	out := make([]Record, 0, len(rows))
	for i, id := range asked {
		if it, ok := rows[keys[i]]; ok {
			out = append(out, decodeRecord(sc, k, id, it))
		}
	}
	return out, nil
}

// Version reads version n of a record's content.
func (r *Resources) Version(ctx context.Context, sc store.Scope, k Kind, id string, n int64) (Record, bool, error) {
	if !validID(id) {
		return Record{}, false, nil
	}
	it, ok, err := r.control.Get(ctx, versionKey(sc, k, id, n), true)
	if err != nil || !ok {
		return Record{}, false, readError(err)
	}
	return decodeRecord(sc, k, id, it), true, nil
}

// Versions reads all versions of a record's content, newest first.
func (r *Resources) Versions(ctx context.Context, sc store.Scope, k Kind, id string) ([]Record, error) {
	if !validID(id) {
		return nil, nil
	}
	var out []Record
	q := store.Query{Partition: sc.Partition(), Prefix: versionPrefix(k, id), Reverse: true}
	err := each(ctx, r.control, q, func(row store.Row) error {
		out = append(out, decodeRecord(sc, k, id, row.Item))
		return nil
	})
	return out, err
}

// Generation counts the organisation's changes; 0 before the first.
func (r *Resources) Generation(ctx context.Context, org string) (int64, error) {
	it, _, err := r.control.Get(ctx, generationKey(org), true)
	if err != nil {
		return 0, readError(err)
	}
	return it.Int("n"), nil
}

// each calls f for all rows of a query, over its pages.
func each(ctx context.Context, table store.Table, q store.Query, f func(store.Row) error) error {
	for {
		page, err := table.Query(ctx, q)
		if err != nil {
			return readError(err)
		}
		for _, row := range page.Rows {
			if err := f(row); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		q.After = page.Next
	}
}

// readError turns a failure of the store into an error that the caller may see.
func readError(err error) error {
	var f *fault.Fault
	switch {
	case err == nil, errors.As(err, &f), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, store.ErrThrottled), errors.Is(err, store.ErrContended), errors.Is(err, store.ErrUncertain),
		errors.Is(err, store.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		return fault.Unavailable(err)
	}
	return fmt.Errorf("resource: %w", err)
}

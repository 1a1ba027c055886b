package resource

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/oklog/ulid/v2"

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

// Embedded means that this process is the only writer of the store. The writer then drops
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

// OnChange calls f with the organization after each commit of this process and
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
// are omitted.
func (r *Resources) GetMany(ctx context.Context, sc store.Scope, k Kind, ids []string) ([]Record, error) {
	keys, requested := make([]store.Key, 0, len(ids)), make([]string, 0, len(ids))
	seen := make(map[string]bool, len(ids))
	for _, id := range ids {
		if validID(id) && !seen[id] {
			seen[id] = true
			keys, requested = append(keys, recordKey(sc, k, id)), append(requested, id)
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
	for i, id := range requested {
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

// Generation counts the organization's changes; 0 before the first.
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

// NewID is a random UUID.
func NewID() string { return uuid.NewString() }

// idSource makes ULIDs that increase, also within one millisecond.
type idSource struct {
	mu      sync.Mutex
	entropy *ulid.MonotonicEntropy
}

func newIDSource() *idSource { return &idSource{entropy: ulid.Monotonic(rand.Reader, 0)} }

func (s *idSource) next(at time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, err := ulid.New(ulid.Timestamp(at), s.entropy)
	if err != nil { // more than 2^79 ids in one millisecond
		id = ulid.MustNew(ulid.Timestamp(at), rand.Reader)
	}
	return id.String()
}

// timeOf is the time in a ULID; zero when s is not a ULID.
func timeOf(s string) time.Time {
	id, err := ulid.ParseStrict(s)
	if err != nil {
		return time.Time{}
	}
	return ulid.Time(id.Time()).UTC()
}

type credentialID struct {
	kind, hash string
	typ        reflect.Type
}

// credential is a known credential as it was under one View.
type credential struct {
	org   string
	view  uint64
	value any
}

// credentialPlace contains a known credential; nil once it is revoked.
type credentialPlace struct{ atomic.Pointer[credential] }

func (p *credentialPlace) get() *credential {
	if p == nil {
		return nil
	}
	return p.Load()
}

// LoadCredential gives the decoded row of a credential (store.Credential), found by the
// hash of a secret. ok is false when there is none. A known credential is valid as long as
// its organization's View is, so a revoked or changed one is noticed within MaxStale. An
// unknown one is remembered as unknown for 1.5 s.
//
// The row must have "org". The caller checks the expiry, which needs no read.
func LoadCredential[T any](ctx context.Context, l *Loader, kind, hash string, decode func(store.Item) (T, error)) (T, bool, error) {
	var none T
	id := credentialID{kind, hash, reflect.TypeFor[T]()}
	place, _ := l.credentials.get(id)
	if known := place.get(); known != nil {
		v, err := l.Fresh(ctx, known.org)
		if err != nil {
			return none, false, err
		}
		if v.id == known.view {
			val, _ := known.value.(T)
			return val, true, nil
		}
	}
	for {
		unknown, queried := l.isUnknown(id)
		if unknown && place.get() == nil {
			return none, false, nil
		}
		// A View that is older than the read cannot be newer than the read data. If the View is
		// younger, the row must be read again.
		newest := l.views.Load()
		it, found, err := l.keys.Get(ctx, store.Credential(kind, hash), true)
		if err != nil {
			return none, false, fault.Unavailable(err)
		}
		if !found {
			l.recordAbsent(id, place, queried)
			return none, false, nil
		}
		org := it.String("org")
		v, err := l.Fresh(ctx, org)
		if err != nil {
			return none, false, err
		}
		if v.id > newest {
			continue
		}
		val, err := decode(it)
		if err != nil {
			return none, false, err
		}
		l.remember(id, &credential{org: org, view: v.id, value: val})
		return val, true, nil
	}
}

func (l *Loader) remember(id credentialID, c *credential) {
	if l.credentials.size() >= maxCredentials {
		l.credentials.clear()
	}
	place, _ := l.credentials.getOrPut(id, new(credentialPlace))
	place.Store(c)
}

// moment is the time of a read of a credential, and how often changes of this process had
// cleared the unknown credentials by then.
type moment struct {
	at      time.Time
	cleared uint64
}

// recordAbsent remembers that a credential is absent, for a moment, counted from before the read
// that did not find it. If this process has made a change since then, nothing is
// remembered: the change may have made the credential, and the read may not have seen it.
func (l *Loader) recordAbsent(id credentialID, place *credentialPlace, queried moment) {
	if place != nil {
		place.Store(nil)
	}
	l.unknownMu.Lock()
	defer l.unknownMu.Unlock()
	if l.cleared != queried.cleared {
		return
	}
	if len(l.unknown) >= maxUnknown {
		clear(l.unknown)
	}
	l.unknown[id] = queried.at.Add(unknownFor)
}

// isUnknown reports whether the credential is cached as absent. If it is not, the store is read
// now, and asked is for a later forget.
func (l *Loader) isUnknown(id credentialID) (unknown bool, queried moment) {
	l.unknownMu.Lock()
	defer l.unknownMu.Unlock()
	queried = moment{l.now(), l.cleared}
	until, ok := l.unknown[id]
	if !ok {
		return false, queried
	}
	if queried.at.Before(until) && until.Sub(queried.at) <= unknownFor {
		return true, queried
	}
	delete(l.unknown, id)
	return false, queried
}

// Store stores a credential that belongs to no resource.
func (l *Loader) Store(ctx context.Context, sc store.Scope, row store.Row) error {
	return l.r.Change(ctx, sc, func(tx *Tx) error { return tx.PutCredential(row) })
}

package resource

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Freshness of loaded resources.
const (
	// CheckAfter is the age at which the knowledge about an organization is checked again, by
	// one consistent read of its generation.
	CheckAfter = 1500 * time.Millisecond
	// MaxStale is the age at which nothing is used for a request any more.
	MaxStale = 2 * time.Second
	// checkTimeout bounds one try of a check, so that a check that succeeds is
	// younger than MaxStale.
	checkTimeout = time.Second
	// unknownFor is how long an unknown credential is believed to be unknown without a read.
	unknownFor = 1500 * time.Millisecond
)

// Bounds of what a Loader remembers. When one is exceeded, that part is evicted.
const (
	maxOrganisations = 10_000
	maxCredentials   = 200_000
	maxUnknown       = 16_384
	maxAbsent        = 10_000 // absent ids per View
)

// Loader is a process's cache of what requests need. Warm reads take no lock and do no
// store read except the check of the generation, once per organization and CheckAfter; with
// an embedded store they do not even need that.
type Loader struct {
	r     *Resources
	keys  store.Table
	now   func() time.Time
	orgs  readMap[string, *organisation]
	views atomic.Uint64 // ids of views, increasing

	credentials readMap[credentialID, *credentialPlace]
	unknownMu   sync.Mutex
	unknown     map[credentialID]time.Time
	cleared     uint64 // how often a change cleared unknown
}

// organisation is the current View of one organization and its running check.
type organisation struct {
	name string
	view atomic.Pointer[View]

	changes atomic.Uint64 // calls of Invalidate

	mu     sync.Mutex
	flight *flight
}

// flight is a running check. A check that began before an Invalidate does not cover later
// changes.
type flight struct {
	done    chan struct{}
	changes uint64
	view    *View
	err     error
}

// View is a request's view of an organization: consistent with one generation, or newer.
// Use one View per request.
type View struct {
	r          *Resources
	org        string
	id         uint64
	generation int64
	checked    atomic.Int64 // Unix nanoseconds of the start of the last check
	values     readMap[viewKey, *slot]
	absent     atomic.Int64
}

// NewLoader makes a Loader that reads through r. With Embedded resources the writer drops
// what it changes, and nothing has to be checked.
func NewLoader(r *Resources) *Loader {
	l := &Loader{r: r, keys: r.store.Table(store.Keys), now: r.now, unknown: make(map[credentialID]time.Time)}
	r.OnChange(l.Invalidate)
	return l
}

// Invalidate makes the next Fresh of the organization see everything that is committed now.
// Writers in this process call it through OnChange.
func (l *Loader) Invalidate(org string) {
	l.unknownMu.Lock()
	clear(l.unknown)
	l.cleared++
	l.unknownMu.Unlock()
	o, ok := l.orgs.get(org)
	if !ok {
		return
	}
	o.changes.Add(1)
	if l.r.embedded {
		o.view.Store(nil)
	} else if v := o.view.Load(); v != nil {
		v.checked.Store(0)
	}
}

// Fresh returns the organization's View, at most MaxStale older than the store. It fails with
// ServiceUnavailable when the generation cannot be read twice.
func (l *Loader) Fresh(ctx context.Context, org string) (*View, error) {
	o := l.organisation(org)
	v := o.view.Load()
	if v != nil && (l.r.embedded || v.age(l.now()) < CheckAfter) {
		return v, nil
	}
	if l.r.embedded {
		return l.embeddedView(o), nil
	}
	return l.check(ctx, o)
}

// Exists reports whether anything was ever stored for the organization. It is for names of
// external origin, so that only real ones are cached. It costs a read if this process has no
// View of the organization.
func (l *Loader) Exists(ctx context.Context, org string) (bool, error) {
	if o, ok := l.orgs.get(org); ok && o.view.Load() != nil {
		return true, nil
	}
	if !validID(org) {
		return false, nil
	}
	n, err := l.tryGeneration(ctx, org)
	if err != nil {
		return false, fault.Unavailable(err)
	}
	return n > 0, nil
}

func (l *Loader) organisation(org string) *organisation {
	if o, ok := l.orgs.get(org); ok {
		return o
	}
	if l.orgs.size() >= maxOrganisations {
		l.orgs.clear()
	}
	o, _ := l.orgs.getOrPut(org, &organisation{name: org})
	return o
}

// age is the time since the last check began. It uses wall time, because the monotonic clock of
// a frozen Lambda environment may have stopped. If the clock was set back, the check counts as
// old.
func (v *View) age(now time.Time) time.Duration {
	d := time.Duration(now.UnixNano() - v.checked.Load())
	if d < 0 {
		return MaxStale
	}
	return d
}

func (l *Loader) newView(org string, generation int64, checked time.Time) *View {
	v := &View{r: l.r, org: org, id: l.views.Add(1), generation: generation}
	v.checked.Store(checked.UnixNano())
	return v
}

func (l *Loader) embeddedView(o *organisation) *View {
	o.mu.Lock()
	defer o.mu.Unlock()
	if v := o.view.Load(); v != nil {
		return v
	}
	v := l.newView(o.name, 0, l.now())
	o.view.Store(v)
	return v
}

// check reads the generation, once for all requests that wait for it.
func (l *Loader) check(ctx context.Context, o *organisation) (*View, error) {
	for {
		o.mu.Lock()
		if v := o.view.Load(); v != nil && v.age(l.now()) < CheckAfter {
			o.mu.Unlock()
			return v, nil
		}
		f := o.flight
		if f == nil {
			break
		}
		o.mu.Unlock()
		select {
		case <-f.done:
			if f.changes == o.changes.Load() {
				return f.view, f.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f := &flight{done: make(chan struct{}), changes: o.changes.Load()}
	o.flight = f
	o.mu.Unlock()

	// The request that does the check may be canceled; those that wait for it must not be.
	f.view, f.err = l.readGeneration(context.WithoutCancel(ctx), o)

	o.mu.Lock()
	o.flight = nil
	o.mu.Unlock()
	close(f.done)
	return f.view, f.err
}

// readGeneration checks the View against the store, with one retry, and replaces it by a
// new one if the generation has changed.
func (l *Loader) readGeneration(ctx context.Context, o *organisation) (*View, error) {
	var err error
	for range 2 {
		began, changes := l.now(), o.changes.Load()
		var n int64
		if n, err = l.tryGeneration(ctx, o.name); err != nil {
			continue
		}
		v := o.view.Load()
		if v == nil || v.generation != n {
			v = l.newView(o.name, n, began)
			o.view.Store(v)
		}
		v.checked.Store(began.UnixNano())
		if v.age(l.now()) >= MaxStale {
			err = errors.New("resource: the check of the generation took too long")
			continue
		}
		if o.changes.Load() != changes {
			v.checked.Store(0) // a change of this process intervened
		}
		return v, nil
	}
	return nil, fault.Unavailable(err)
}

func (l *Loader) tryGeneration(ctx context.Context, org string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return l.r.Generation(ctx, org)
}

// readMap is a map for many readers: entries are read from an atomically swapped map
// without a lock. Additions are collected in a second map under a lock. They are merged
// when so many reads had to look there that the copy is worth its cost.
type readMap[K comparable, V any] struct {
	clean   atomic.Pointer[map[K]V]
	pending atomic.Int64 // entries in dirty

	mu     sync.Mutex
	dirty  map[K]V
	misses int
}

func (m *readMap[K, V]) get(k K) (V, bool) {
	clean := m.clean.Load()
	if clean != nil {
		if v, ok := (*clean)[k]; ok {
			return v, true
		}
	}
	if m.pending.Load() == 0 && clean == m.clean.Load() {
		var none V
		return none, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lookup(k)
}

// lookup reads both maps under the lock.
func (m *readMap[K, V]) lookup(k K) (V, bool) {
	if v, ok := m.dirty[k]; ok {
		m.missed()
		return v, true
	}
	if clean := m.clean.Load(); clean != nil {
		v, ok := (*clean)[k]
		return v, ok
	}
	var none V
	return none, false
}

// getOrPut gives the value under k, and stores v there when there is none.
func (m *readMap[K, V]) getOrPut(k K, v V) (got V, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.lookup(k); ok {
		return old, true
	}
	if m.dirty == nil {
		m.dirty = make(map[K]V)
	}
	m.dirty[k] = v
	m.pending.Store(int64(len(m.dirty)))
	return v, false
}

// clear removes everything.
func (m *readMap[K, V]) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clean.Store(nil)
	m.dirty, m.misses = nil, 0
	m.pending.Store(0)
}

// size is the number of entries.
func (m *readMap[K, V]) size() int {
	n := int(m.pending.Load())
	if clean := m.clean.Load(); clean != nil {
		n += len(*clean)
	}
	return n
}

// missed counts a read that needed the lock, and merges when such reads have cost about as
// much as the copy will.
func (m *readMap[K, V]) missed() {
	m.misses++
	clean := m.clean.Load()
	n := len(m.dirty)
	if clean != nil {
		n += len(*clean)
	}
	if m.misses >= max(4, n/8) {
		m.merge()
	}
}

func (m *readMap[K, V]) merge() {
	if len(m.dirty) == 0 {
		return
	}
	next := make(map[K]V, m.size())
	if clean := m.clean.Load(); clean != nil {
		for k, v := range *clean {
			next[k] = v
		}
	}
	for k, v := range m.dirty {
		next[k] = v
	}
	m.clean.Store(&next)
	m.dirty, m.misses = nil, 0
	m.pending.Store(0)
}

package ledger

import (
	"context"
	"sync"
	"time"

	"gateway/shared/store"
)

// ExhaustionCache caches whether budgets are exhausted, for frequent checks by waiting
// sessions. Concurrent checks share one read. The cache is per process.
type ExhaustionCache struct {
	ledger *Ledger
	most   time.Duration
	mu     sync.Mutex
	known  map[exhaustionKey]*exhaustionResult
}

// exhaustionKey is a subject with a revision of its limits.
type exhaustionKey struct {
	head     store.Key
	revision int64
}

// exhaustionResult is a result, which is available once done is closed.
type exhaustionResult struct {
	asked     time.Time
	done      chan struct{}
	exhausted bool
	err       error
}

// ExhaustionCache returns a cache with results of at most the given age.
func (l *Ledger) ExhaustionCache(most time.Duration) *ExhaustionCache {
	return &ExhaustionCache{ledger: l, most: most, known: map[exhaustionKey]*exhaustionResult{}}
}

// maxCached is the number of results above which outdated ones are evicted.
const maxCached = 4096

// Exhausted reports whether a budget of a subject is exhausted. A result's age counts
// from its request. An error is only returned to the callers that waited for it. ctx is
// that of the first caller, and must not end with its request.
func (w *ExhaustionCache) Exhausted(ctx context.Context, s *Subject) (bool, error) {
	key := exhaustionKey{s.derive().head, s.Revision}
	now := w.ledger.base.clock()
	w.mu.Lock()
	a := w.known[key]
	if a != nil && now.Sub(a.asked) < w.most && !now.Before(a.asked) {
		w.mu.Unlock()
		<-a.done
		return a.exhausted, a.err
	}
	a = &exhaustionResult{asked: now, done: make(chan struct{})}
	if len(w.known) >= maxCached {
		for k, old := range w.known {
			if now.Sub(old.asked) >= w.most {
				delete(w.known, k)
			}
		}
	}
	w.known[key] = a
	w.mu.Unlock()
	defer close(a.done)
	states, err := w.ledger.State(ctx, s)
	for i := range states {
		a.exhausted = a.exhausted || states[i].Status == Exhausted && states[i].Limit.OnExceeded != Audit
	}
	if a.err = err; err != nil {
		w.mu.Lock()
		if w.known[key] == a {
			delete(w.known, key)
		}
		w.mu.Unlock()
	}
	return a.exhausted, a.err
}

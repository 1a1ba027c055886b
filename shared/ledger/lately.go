package ledger

import (
	"context"
	"sync"
	"time"

	"gateway/shared/store"
)

// Lately tells whether budgets are used up to many who ask again and again, such as
// sessions that wait: what one was told holds for all for a while, and those who ask at
// the same time ask once. It is for one process.
type Lately struct {
	ledger *Ledger
	most   time.Duration
	mu     sync.Mutex
	known  map[watched]*lately
}

// watched is a subject under the limits of one version.
type watched struct {
	head     store.Key
	revision int64
}

// lately is an answer, there once done is closed.
type lately struct {
	asked     time.Time
	done      chan struct{}
	exhausted bool
	err       error
}

// Lately gives answers that are used for at most so long.
func (l *Ledger) Lately(most time.Duration) *Lately {
	return &Lately{ledger: l, most: most, known: map[watched]*lately{}}
}

// maxWatched is how many answers are kept before those that are too old are dropped.
const maxWatched = 4096

// Exhausted tells whether a budget of a subject is. Its age counts from when it was
// asked for. An error is told to those who waited for it alone. ctx is that of the one
// who asks first, and must not end with who asked.
func (w *Lately) Exhausted(ctx context.Context, s *Subject) (bool, error) {
	key := watched{s.derive().head, s.Revision}
	now := w.ledger.clock()
	w.mu.Lock()
	a := w.known[key]
	if a != nil && now.Sub(a.asked) < w.most && !now.Before(a.asked) {
		w.mu.Unlock()
		<-a.done
		return a.exhausted, a.err
	}
	a = &lately{asked: now, done: make(chan struct{})}
	if len(w.known) >= maxWatched {
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
		a.exhausted = a.exhausted || states[i].Status == Exhausted
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

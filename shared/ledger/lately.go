package ledger

import (
	"context"
	"sync"
	"time"

	"gateway/shared/store"
)

// Lately tells many who ask again and again, such as waiting sessions, whether budgets are
// used up. One answer serves all for a while, and those who ask at the same time share one
// look. It holds for one process.
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

// Exhausted tells whether a budget of a subject is exhausted. An answer's age counts from
// when it was asked for. An error goes only to those who waited for it. ctx belongs to
// whoever asks first, and must not end with that request.
func (w *Lately) Exhausted(ctx context.Context, s *Subject) (bool, error) {
	key := watched{s.derive().head, s.Revision}
	now := w.ledger.base.clock()
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

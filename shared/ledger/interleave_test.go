package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"gateway/shared/store"
)

// A schedule lets actors run against one memory store, one operation at a time,
// in an order drawn from a seed. Before each operation of an actor it may
// throttle it, lose it or its answer, or crash the actor: from then on nothing
// that the actor does reaches the store.
type schedule struct {
	m      *memory
	random *rand.Rand
	faults int // of 100 operations, this many go wrong
	check  func() error

	mu      sync.Mutex
	waiting []*waiter
	log     []string
}

type waiter struct {
	actor *actor
	write bool
	reply chan fate
}

// actor is one process: it may die.
type actor struct {
	name string
	dead bool
}

type actorKey struct{}

func actorOf(ctx context.Context) *actor {
	a, _ := ctx.Value(actorKey{}).(*actor)
	return a
}

var errCrashed = errors.New("the process is dead")

// run runs the actors to their end in a bubble, and gives the first violation.
func (s *schedule) run(t *testing.T, actors map[string]func(ctx context.Context)) (err error) {
	synctest.Test(t, func(t *testing.T) {
		s.m.before = s.before
		defer func() { s.m.before = nil }()
		var wg sync.WaitGroup
		for name, f := range actors {
			wg.Go(func() { f(context.WithValue(context.Background(), actorKey{}, &actor{name: name})) })
		}
		for {
			synctest.Wait()
			if cerr := s.check(); cerr != nil && err == nil {
				err = cerr
			}
			if !s.step() {
				break
			}
		}
		wg.Wait()
	})
	return err
}

func (s *schedule) before(ctx context.Context, write bool) fate {
	a := actorOf(ctx)
	if a == nil {
		return fate{}
	}
	w := &waiter{a, write, make(chan fate)}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.mu.Unlock()
	return <-w.reply
}

// step lets one operation happen; false when none waits.
func (s *schedule) step() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return false
	}
	i := s.random.IntN(len(s.waiting))
	w := s.waiting[i]
	s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
	var f fate
	what := "done"
	switch n := s.random.IntN(100); {
	case w.actor.dead:
		f.drop, what = errCrashed, "dead"
	case n >= s.faults:
	case n%5 == 0:
		f.drop, what = store.ErrThrottled, "throttled"
	case n%5 == 1:
		f.drop, what = store.ErrUncertain, "lost"
	case n%5 == 2 && w.write:
		f.lose, what = store.ErrUncertain, "answer lost"
	case n%5 == 3:
		f.drop, w.actor.dead, what = errCrashed, true, "crashed before"
	case n%5 == 4:
		f.lose, w.actor.dead, what = errCrashed, true, "crashed after"
	}
	s.log = append(s.log, fmt.Sprintf("%s write=%t %s", w.actor.name, w.write, what))
	w.reply <- f
	return true
}

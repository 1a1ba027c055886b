package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	log     []step
}

type waiter struct {
	actor *actor
	op    operation
	reply chan fate
}

// compare orders waiting operations by what they are, not by which goroutine
// came first: an actor has at most one operation under way per row.
func (w *waiter) compare(v *waiter) int {
	return cmp.Or(strings.Compare(w.actor.name, v.actor.name), strings.Compare(w.op.key, v.op.key))
}

// step is an operation and what became of it.
type step struct {
	actor string
	op    operation
	what  string
}

// story is the steps, a line each. The same seed has the same story.
func (s *schedule) story() string {
	var b strings.Builder
	for _, st := range s.log {
		fmt.Fprintf(&b, "%s %s write=%t %s\n", st.actor, st.op.key, st.op.write, st.what)
	}
	return b.String()
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
			wg.Go(func() {
				a := &actor{name: name}
				s.wait(&waiter{a, operation{key: begin}, make(chan fate)}) // what precedes its first operation is in order too
				f(context.WithValue(context.Background(), actorKey{}, a))
			})
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

// begin is the key of each actor's first step, which touches no row.
const begin = "begin"

func (s *schedule) before(ctx context.Context, op operation) fate {
	a := actorOf(ctx)
	if a == nil {
		return fate{}
	}
	return s.wait(&waiter{a, op, make(chan fate)})
}

func (s *schedule) wait(w *waiter) fate {
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
	slices.SortFunc(s.waiting, (*waiter).compare)
	i := s.random.IntN(len(s.waiting))
	w := s.waiting[i]
	s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
	var f fate
	what := "done"
	switch n := s.random.IntN(100); {
	case w.op.key == begin:
	case w.actor.dead:
		f.drop, what = errCrashed, "dead"
	case n >= s.faults:
	case n%5 == 0:
		f.drop, what = store.ErrThrottled, "throttled"
	case n%5 == 1:
		f.drop, what = store.ErrUncertain, "lost"
	case n%5 == 2 && w.op.write:
		f.lose, what = store.ErrUncertain, "answer lost"
	case n%5 == 3:
		f.drop, w.actor.dead, what = errCrashed, true, "crashed before"
	case n%5 == 4:
		f.lose, w.actor.dead, what = errCrashed, true, "crashed after"
	}
	s.log = append(s.log, step{w.actor.name, w.op, what})
	w.reply <- f
	return true
}

package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"gateway/shared/store"
)

// A schedule lets actors run on one memory store, one operation at a time, in an order
// drawn from a seed. Before each operation of an actor it may throttle it, lose it or its
// answer, or crash the actor: after a crash nothing that the actor does reaches the store.
type schedule struct {
	m      *memory
	random *rand.Rand
	faults int // of 100 operations, this many go wrong
	check  func() error
	crew   *crew // runs the actors as coroutines; nil: as goroutines

	mu      sync.Mutex
	waiting []waiter // in their order; see compare
	log     []step
}

// waiter is an operation that has not happened yet.
type waiter struct {
	actor *actor
	op    operation
	reply chan fate // of a goroutine
	hand  *hand     // or of a coroutine
}

// compare orders waiting operations by their content, not by the order of goroutines: an actor
// has at most one operation in flight per row.
func (w *waiter) compare(v *waiter) int {
	if w.actor != v.actor {
		return strings.Compare(w.actor.name, v.actor.name)
	}
	return w.op.compare(v.op)
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
		fmt.Fprintf(&b, "%s %s write=%t %s\n", st.actor, st.op, st.op.write, st.what)
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

// run runs the actors to their end, and gives the first violation.
func (s *schedule) run(t *testing.T, actors map[string]func(ctx context.Context)) error {
	s.m.before = s.before
	defer func() { s.m.before = nil }()
	if s.crew != nil {
		return s.crew.run(s, actors)
	}
	return s.runGoroutines(t, actors)
}

// runGoroutines runs the actors in a bubble, in which it is known when all wait.
func (s *schedule) runGoroutines(t *testing.T, actors map[string]func(ctx context.Context)) (err error) {
	synctest.Test(t, func(t *testing.T) {
		var wg sync.WaitGroup
		for name, f := range actors {
			wg.Go(func() {
				a := &actor{name: name}
				s.wait(waiter{actor: a, op: begin}) // what precedes its first operation is in order too
				f(context.WithValue(context.Background(), actorKey{}, a))
			})
		}
		for {
			synctest.Wait()
			if cerr := s.check(); cerr != nil && err == nil {
				err = cerr
			}
			s.mu.Lock()
			w, f, any := s.step()
			s.mu.Unlock()
			if !any {
				break
			}
			w.reply <- f
		}
		wg.Wait()
	})
	return err
}

// begin is each actor's first step, which touches no row.
var begin = operation{pk: "begin"}

func (s *schedule) before(ctx context.Context, op operation) fate {
	a := actorOf(ctx)
	if a == nil {
		return fate{}
	}
	return s.wait(waiter{actor: a, op: op})
}

// wait gives what happens to an operation, when its turn has come.
func (s *schedule) wait(w waiter) fate {
	if s.crew != nil {
		return s.crew.wait(s, w)
	}
	w.reply = make(chan fate)
	s.mu.Lock()
	s.queue(w)
	s.mu.Unlock()
	return <-w.reply
}

func (s *schedule) queue(w waiter) {
	i := len(s.waiting)
	s.waiting = append(s.waiting, w)
	for ; i > 0 && w.compare(&s.waiting[i-1]) < 0; i-- {
		s.waiting[i] = s.waiting[i-1]
	}
	s.waiting[i] = w
}

// step chooses the operation that happens next, and its fate; false when none waits.
func (s *schedule) step() (w waiter, f fate, any bool) {
	if len(s.waiting) == 0 {
		return w, f, false
	}
	i := s.random.IntN(len(s.waiting))
	w = s.waiting[i]
	s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
	what := "done"
	switch n := s.random.IntN(100); {
	case w.op == begin:
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
	return w, f, true
}

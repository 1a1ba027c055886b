package ledger

import (
	"context"
	"iter"
	"testing"
)

// A crew runs the actors of a schedule as coroutines of one goroutine, and work that a
// ledger does in parallel as further coroutines. A turn is then two switches; goroutines
// would have to be woken, and found waiting. The order of the steps is the schedule's, as
// with goroutines.
type crew struct {
	current *hand   // the one that runs
	ready   []*hand // go on before the next step
	next    *hand   // continues with the chosen step
	idle    []*hand
	all     []*hand
	err     error  // the first violation
	log     []step // steps of the previous test; the memory is reused
}

// hand is a coroutine that does one piece of work after the other.
type hand struct {
	resume func() (struct{}, bool)
	end    func()
	yield  func(struct{}) bool
	work   func()
	fate   fate // of the operation that it waited for
}

// newCrew returns a crew; its goroutines end with the test.
func newCrew(t *testing.T) *crew {
	c := &crew{}
	t.Cleanup(func() {
		for _, h := range c.all {
			h.end()
		}
	})
	return c
}

// start has work done by an idle hand when those before it have come to wait.
func (c *crew) start(work func()) {
	var h *hand
	if n := len(c.idle); n > 0 {
		h, c.idle = c.idle[n-1], c.idle[:n-1]
		h.work = work
	} else {
		h = &hand{work: work}
		h.resume, h.end = iter.Pull(func(yield func(struct{}) bool) {
			h.yield = yield
			for {
				h.work()
				c.idle = append(c.idle, h)
				if !yield(struct{}{}) {
					return
				}
			}
		})
		c.all = append(c.all, h)
	}
	c.ready = append(c.ready, h)
}

// pause lets others run until h is made ready.
func (c *crew) pause(h *hand) { h.yield(struct{}{}) }

// each is what a ledger does at once.
func (c *crew) each(n int, f func(int)) {
	h, left, pausing := c.current, n-1, false
	for i := 1; i < n; i++ {
		c.start(func() {
			f(i)
			if left--; left == 0 && pausing {
				c.ready = append(c.ready, h)
			}
		})
	}
	if n > 0 {
		f(0)
	}
	if left > 0 {
		pausing = true
		c.pause(h)
	}
}

// run runs the actors to their end, and gives the first violation. The schedule's
// story can be read until the crew runs again.
func (c *crew) run(s *schedule, actors map[string]func(context.Context)) error {
	c.err = nil
	s.log = c.log[:0]
	defer func() { c.log = s.log }()
	for name, f := range actors {
		c.start(func() {
			a := &actor{name: name}
			s.wait(waiter{actor: a, op: begin})
			f(context.WithValue(context.Background(), actorKey{}, a))
		})
	}
	for {
		if n := len(c.ready); n > 0 {
			c.current, c.ready = c.ready[n-1], c.ready[:n-1]
		} else if c.next != nil || c.step(s) {
			c.current, c.next = c.next, nil
		} else {
			return c.err
		}
		c.current.resume()
	}
}

// step looks at what the last step did and chooses the next.
func (c *crew) step(s *schedule) bool {
	if err := s.check(); err != nil && c.err == nil {
		c.err = err
	}
	w, f, any := s.step()
	if any {
		c.next, w.hand.fate = w.hand, f
	}
	return any
}

// wait gives what happens to an operation of the running hand.
func (c *crew) wait(s *schedule, w waiter) fate {
	h := c.current
	w.hand = h
	s.queue(w)
	if len(c.ready) == 0 && c.step(s) && c.next == h { // its own turn needs no switch
		c.next = nil
		return h.fate
	}
	c.pause(h)
	return h.fate
}

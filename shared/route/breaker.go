package route

import (
	"slices"
	"sync"
	"time"
)

// Breaker is the setting of a circuit breaker: after too many failures a
// target is left out until the cooldown has passed.
type Breaker struct {
	Threshold  int     // failures that open it; 0: only the rate counts
	ByRate     bool    // Percentage is set
	Percentage float64 // failures of all answers that open it
	Minimum    int     // answers before the rate is looked at
	Cooldown   time.Duration
	Codes      []int // statuses that are failures; nil: 500 and above
}

// Failure reports whether an answer counts as a failure.
func (b *Breaker) Failure(status int) bool {
	if b.Codes == nil {
		return status >= 500
	}
	return slices.Contains(b.Codes, status)
}

// Circuits are the states of all breakers of a process, by config and path.
type Circuits struct {
	now func() time.Time

	mu     sync.Mutex
	states map[string]*circuit
}

type circuit struct {
	failures, successes int
	first               time.Time // first failure of the count
	openUntil           time.Time // zero: closed
	cooldown            time.Duration
}

// maxCircuits bounds the memory of states; beyond it those that have nothing to
// say any more are forgotten.
const maxCircuits = 10_000

// NewCircuits keeps states by the clock now.
func NewCircuits(now func() time.Time) *Circuits {
	return &Circuits{now: now, states: map[string]*circuit{}}
}

// Open reports whether the target at path of the config named config is left
// out. An open breaker closes by itself when its cooldown has passed, and its
// counts start again.
func (c *Circuits) Open(config, path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.states[config+"\x00"+path]
	if s == nil || s.openUntil.IsZero() {
		return false
	}
	if c.now().Before(s.openUntil) {
		return true
	}
	delete(c.states, config+"\x00"+path)
	return false
}

// Record counts an answer of the target.
func (c *Circuits) Record(config, path string, b *Breaker, status int) {
	if b == nil {
		return
	}
	failure := b.Failure(status)
	c.mu.Lock()
	defer c.mu.Unlock()
	key := config + "\x00" + path
	s := c.states[key]
	now := c.now()
	if s != nil && s.stale(now) {
		s = nil
		delete(c.states, key)
	}
	if s == nil {
		if !failure && !b.ByRate {
			return // nothing to count yet
		}
		c.makeRoom(now)
		s = &circuit{first: now, cooldown: b.Cooldown}
		c.states[key] = s
	}
	if !failure {
		s.successes++
		return
	}
	s.failures++
	if s.trips(b) && s.openUntil.IsZero() {
		s.openUntil = now.Add(b.Cooldown)
	}
}

// stale: the cooldown is over, or the count is older than one.
func (s *circuit) stale(now time.Time) bool {
	if !s.openUntil.IsZero() {
		return !now.Before(s.openUntil)
	}
	return now.Sub(s.first) > s.cooldown
}

func (s *circuit) trips(b *Breaker) bool {
	if b.Threshold > 0 && s.failures >= b.Threshold {
		return true
	}
	all := s.failures + s.successes
	return b.ByRate && all >= max(b.Minimum, 1) && float64(s.failures)*100 >= b.Percentage*float64(all)
}

func (c *Circuits) makeRoom(now time.Time) {
	if len(c.states) < maxCircuits {
		return
	}
	for key, s := range c.states {
		if s.stale(now) {
			delete(c.states, key)
		}
	}
	for key := range c.states {
		if len(c.states) < maxCircuits {
			return
		}
		delete(c.states, key)
	}
}

package route

import (
	"slices"
	"time"
)

// Shared is what all processes know about one circuit.
type Shared struct {
	Failures, Successes int
	First, Last         time.Time // failures of the count
	OpenUntil           time.Time // zero: closed
	ProbeUntil          time.Time // a probe is under way somewhere
}

// Pending is what must be reported to other processes about one circuit.
type Pending struct {
	Path                string
	Breaker             *Breaker
	Failures, Successes int       // since the last time
	OpenUntil           time.Time // it opened; zero: it did not
	Closed              bool      // a probe closed it
}

// HasPending reports that Pending has something to report.
func (c *ConfigCircuits) HasPending() bool { return c.pending.Load() }

// Pending takes what must be reported. Successes alone are not worth a write: they wait for
// the next failure.
func (c *ConfigCircuits) Pending() []Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recount()
	var list []Pending
	for path, s := range c.states {
		if !s.worthReporting() {
			continue
		}
		p := Pending{Path: path, Breaker: s.setting, Failures: s.newFailures, Successes: s.newSuccesses, Closed: s.newClosed}
		if s.newOpen {
			p.OpenUntil = s.openUntil
		}
		s.newFailures, s.newSuccesses, s.newOpen, s.newClosed = 0, 0, false, false
		if s.failures == 0 && s.openUntil.IsZero() {
			delete(c.states, path)
		}
		list = append(list, p)
	}
	return list
}

// Return takes p back, because it could not be reported.
func (c *ConfigCircuits) Return(p Pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recount()
	s := c.states[p.Path]
	if s == nil {
		if !p.Closed {
			return
		}
		s = &circuit{setting: p.Breaker}
		c.states[p.Path] = s
	}
	switch {
	case !p.OpenUntil.IsZero():
		s.newOpen = s.openUntil.Equal(p.OpenUntil)
	case s.openUntil.IsZero():
		s.newFailures += p.Failures
		s.newSuccesses += p.Successes
	}
	s.newClosed = s.newClosed || p.Closed && s.openUntil.IsZero()
}

// Settle takes the result after p was reported: counted is what all processes have counted
// together, which may open the circuit here.
func (c *ConfigCircuits) Settle(p Pending, counted Shared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recount()
	s := c.states[p.Path]
	if s == nil || !s.openUntil.IsZero() {
		return
	}
	s.failures, s.successes = counted.Failures+s.newFailures, counted.Successes+s.newSuccesses
	s.first = counted.First
	if s.trips(p.Breaker) {
		s.trip(p.Breaker, c.now())
	}
}

// Merge applies the reports of other processes about all circuits of the config. Unreported
// changes of this process remain.
func (c *ConfigCircuits) Merge(all map[string]Shared) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recount()
	now := c.now()
	for path, s := range c.states {
		if _, known := all[path]; !known && s.silent() && !s.probing(now) {
			delete(c.states, path)
		}
	}
	for path, shared := range all {
		s := c.states[path]
		if s == nil {
			s = &circuit{}
			c.states[path] = s
		}
		if s.newOpen || s.newClosed {
			continue
		}
		s.failures, s.successes = shared.Failures+s.newFailures, shared.Successes+s.newSuccesses
		s.first, s.last = shared.First, later(shared.Last, s.last)
		s.openUntil = shared.OpenUntil
		if !s.probing(now) {
			s.probeUntil, s.mine = shared.ProbeUntil, false
		}
	}
}

// SetProbed notes that another process has the probe of a half-open circuit.
func (c *ConfigCircuits) SetProbed(path string, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.states[path]; s != nil {
		s.probeUntil, s.mine = until, false
	}
}

// probing reports whether this process runs a probe, which a merge must not end.
func (s *circuit) probing(now time.Time) bool { return s.mine && now.Before(s.probeUntil) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Breaker is the setting of a circuit breaker: after too many failures a target is skipped
// until the cooldown has passed.
type Breaker struct {
	Threshold  int     // failures that open it; 0: only the rate counts
	ByRate     bool    // Percentage is set
	Percentage float64 // percentage of failures among all answers that opens it
	Minimum    int     // answers that are needed before the rate counts
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

// State is the state of one target's breaker.
type State uint8

const (
	Closed   State = iota // the target is used
	Open                  // the target is skipped
	HalfOpen              // the cooldown is over: one request may claim the probe
	Probing               // the probe is under way; other requests skip the target
)

// Breakers are the breakers of one config, as a Traversal uses them.
type Breakers interface {
	// AllClosed reports that all of them are closed, so that none needs to be checked.
	AllClosed() bool
	State(path string) State
	// Claim takes the one probe of a half-open target. False: another request has it. A
	// caller that claims a probe must Record or Release it.
	Claim(path string, b *Breaker) bool
	// Release gives back a probe that was not made.
	Release(path string)
	// Record counts the answer of a target. probe: the caller had claimed the probe.
	Record(path string, b *Breaker, status int, probe bool)
}

// circuit is the state of one target that has failed. Counts begin with the first failure.
type circuit struct {
	setting             *Breaker // the latest setting that was recorded
	failures, successes int
	first, last         time.Time // times of the counted failures
	openUntil           time.Time // zero: closed
	probeUntil          time.Time // a probe is under way, at most until then
	mine                bool      // this process makes the probe

	// Changes that were not yet reported to other processes.
	newFailures, newSuccesses int
	newOpen, newClosed        bool
}

func (s *circuit) state(now time.Time) State {
	switch {
	case s == nil || s.openUntil.IsZero():
		return Closed
	case now.Before(s.openUntil):
		return Open
	case now.Before(s.probeUntil):
		return Probing
	}
	return HalfOpen
}

// stale reports whether the count has expired: there was no failure for a cooldown. If only the
// rate counts, it expires a cooldown after the first failure, so that old successes do not hide
// new failures.
func (s *circuit) stale(b *Breaker, now time.Time) bool {
	if now.Sub(s.last) > b.Cooldown {
		return true
	}
	return b.Threshold == 0 && now.Sub(s.first) > b.Cooldown
}

func (s *circuit) trips(b *Breaker) bool {
	if b.Threshold > 0 && s.failures >= b.Threshold {
		return true
	}
	all := s.failures + s.successes
	return b.ByRate && s.failures > 0 && all >= max(b.Minimum, 1) && float64(s.failures)*100 >= b.Percentage*float64(all)
}

// trip opens the circuit.
func (s *circuit) trip(b *Breaker, now time.Time) {
	s.failures, s.successes, s.newFailures, s.newSuccesses = 0, 0, 0, 0
	s.openUntil, s.probeUntil, s.mine = now.Add(b.Cooldown), time.Time{}, false
	s.newOpen, s.newClosed = true, false
}

// worthReporting reports whether the changes justify a write: successes alone wait.
func (s *circuit) worthReporting() bool { return s.newFailures > 0 || s.newOpen || s.newClosed }

// silent reports whether there are no changes to report to other processes.
func (s *circuit) silent() bool {
	return s.newFailures == 0 && s.newSuccesses == 0 && !s.newOpen && !s.newClosed
}

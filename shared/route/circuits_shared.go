package route

import (
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

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

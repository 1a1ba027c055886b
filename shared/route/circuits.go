package route

import (
	"sync"
	"sync/atomic"
	"time"
)

// Circuits are the breakers that a process knows, by config.
type Circuits struct {
	now func() time.Time

	mu      sync.Mutex
	configs map[ConfigKey]*ConfigCircuits
}

// ConfigKey names one version of a saved config. A new version may have other targets at
// the same paths, so its counts begin again.
type ConfigKey struct {
	Org, Workspace, Config string
	Version                int64
}

// maxCircuitConfigs bounds the configs with states. Beyond it, configs with nothing to
// report are evicted first, and then any.
const maxCircuitConfigs = 4096

// NewCircuits returns empty states; now is the clock.
func NewCircuits(now func() time.Time) *Circuits {
	return &Circuits{now: now, configs: make(map[ConfigKey]*ConfigCircuits)}
}

// Of gives the breakers of one config. The same key gives the same value until it is
// evicted because of the bound.
func (c *Circuits) Of(key ConfigKey) *ConfigCircuits {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set, ok := c.configs[key]; ok {
		return set
	}
	if len(c.configs) >= maxCircuitConfigs {
		for k, set := range c.configs {
			if set.AllClosed() {
				delete(c.configs, k)
			}
		}
		for k := range c.configs {
			if len(c.configs) < maxCircuitConfigs {
				break
			}
			delete(c.configs, k)
		}
	}
	set := &ConfigCircuits{now: c.now, states: make(map[string]*circuit)}
	c.configs[key] = set
	return set
}

// ConfigCircuits are the breakers of one config. They are safe for concurrent use. They
// implement Breakers for one process; Pending, Settle and Merge let several processes share
// them.
type ConfigCircuits struct {
	now       func() time.Time
	notClosed atomic.Int32 // circuits that are not closed
	pending   atomic.Bool  // Pending has something to report

	mu     sync.Mutex
	states map[string]*circuit // by path; absent: closed, nothing counted
}

// AllClosed implements Breakers.
func (c *ConfigCircuits) AllClosed() bool { return c.notClosed.Load() == 0 }

// State implements Breakers.
func (c *ConfigCircuits) State(path string) State {
	if c.AllClosed() {
		return Closed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[path].state(c.now())
}

// Claim implements Breakers. A probe with a response that takes longer than the cooldown does
// not stop others from probing.
func (c *ConfigCircuits) Claim(path string, b *Breaker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	s := c.states[path]
	switch s.state(now) {
	case Closed:
		return true
	case HalfOpen:
		s.probeUntil, s.mine = now.Add(b.Cooldown), true
		return true
	}
	return false
}

// Release implements Breakers.
func (c *ConfigCircuits) Release(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.states[path]; s != nil {
		s.probeUntil, s.mine = time.Time{}, false
	}
}

// Record implements Breakers.
func (c *ConfigCircuits) Record(path string, b *Breaker, status int, probe bool) {
	if b == nil {
		return
	}
	failure := b.Failure(status)
	if !failure && c.healthy(path) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.recount()
	now := c.now()
	s := c.states[path]
	if s.state(now) != Closed {
		// Only the probe decides: requests that were in flight when the circuit opened add no
		// information.
		switch {
		case !probe:
		case failure:
			s.trip(b, now)
		default:
			*s = circuit{setting: b, newClosed: true}
		}
		return
	}
	if s == nil || s.failures > 0 && s.stale(b, now) {
		s = &circuit{}
		c.states[path] = s
	}
	s.setting = b
	if !failure {
		if s.failures > 0 && b.ByRate {
			s.successes++
			s.newSuccesses++
		}
		return
	}
	if s.failures == 0 {
		s.first = now
	}
	s.last = now
	s.failures++
	s.newFailures++
	if s.trips(b) {
		s.trip(b, now)
	}
}

// healthy reports whether a success at path would change nothing.
func (c *ConfigCircuits) healthy(path string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[path] == nil
}

// recount updates trouble and pending. The lock is held.
func (c *ConfigCircuits) recount() {
	var n int32
	pending := false
	for _, s := range c.states {
		if !s.openUntil.IsZero() {
			n++
		}
		pending = pending || s.worthReporting()
	}
	c.notClosed.Store(n)
	c.pending.Store(pending)
}

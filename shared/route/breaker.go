package route

import (
	"slices"
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

// State is how the breaker of one target stands.
type State uint8

const (
	Closed   State = iota // the target is used
	Open                  // it is left out
	HalfOpen              // the cooldown is over: one request may claim the probe
	Probing               // the probe is under way; others leave the target out
)

// Breakers are the breakers of one config as a Walk sees them.
type Breakers interface {
	// Quiet reports that all of them are closed, so that none need be looked at.
	Quiet() bool
	State(path string) State
	// Claim takes the one probe of a half-open target. False: another request
	// has it. Who claims must Record or Release.
	Claim(path string, b *Breaker) bool
	// Release gives a probe back that was not made.
	Release(path string)
	// Record counts the answer of a target. probe: the caller has claimed it.
	Record(path string, b *Breaker, status int, probe bool)
}

// circuit is what is known of one target that has failed. Counts begin with
// the first failure.
type circuit struct {
	setting             *Breaker // the latest that was recorded under
	failures, successes int
	first, last         time.Time // failures of the count
	openUntil           time.Time // zero: closed
	probeUntil          time.Time // a probe is under way, at most until then
	mine                bool      // by this process

	// What other processes have not been told.
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

// stale tells that the count is over: no failure for a cooldown; where only the
// rate counts, a cooldown since the first one, so that old successes do not
// hide new failures.
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

// worthTelling tells that there is a reason for a write: successes alone wait.
func (s *circuit) worthTelling() bool { return s.newFailures > 0 || s.newOpen || s.newClosed }

// silent tells that nothing is waiting to be told to other processes.
func (s *circuit) silent() bool {
	return s.newFailures == 0 && s.newSuccesses == 0 && !s.newOpen && !s.newClosed
}

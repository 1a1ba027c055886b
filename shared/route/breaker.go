package route

import (
	"slices"
	"time"

	"gateway/shared/wire"
)

// probing reports whether this process runs a probe, which a merge must not end.
func (s *circuit) probing(now time.Time) bool { return s.mine && now.Before(s.probeUntil) }

// Breaker is the setting of a circuit breaker: after too many failures a target is skipped
// until the cooldown has passed.
type Breaker struct {
	Threshold  int     // failures that open it; 0: only the rate counts
	ByRate     bool    // Percentage is set
	Percentage float64 // percentage of failures among all responses that opens it
	Minimum    int     // responses that are needed before the rate counts
	Cooldown   time.Duration
	Codes      []int // statuses that are failures; nil: 500 and above
}

// Failure reports whether a response counts as a failure.
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
	// Record counts the response of a target. probe: the caller had claimed the probe.
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

// trips reports whether the counted failures open the circuit: as many as the threshold, or the
// percentage of enough requests.
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

func parseBreaker(r *reader, v value) *Breaker {
	out := &Breaker{}
	var cooldown bool
	r.members(v, func(key string, v value) {
		switch key {
		case "failure_threshold":
			out.Threshold = int(r.whole(v, 1))
		case "failure_threshold_percentage":
			out.Percentage = r.number(v, 0, 100)
			out.ByRate = true
		case "minimum_requests":
			out.Minimum = int(r.whole(v, 1))
		case "cooldown_interval":
			cooldown = true
			out.Cooldown = time.Duration(r.whole(v, int64(MinCooldown/time.Millisecond))) * time.Millisecond
		case "failure_status_codes":
			out.Codes = r.statuses(v)
		default:
			r.unknown(v, "cb_config")
		}
	})
	if v.kind() != wire.KindObject {
		return out
	}
	if out.Threshold == 0 && !out.ByRate {
		r.add(v.path+".failure_threshold", "is required unless failure_threshold_percentage is set")
	}
	if !cooldown {
		r.add(v.path+".cooldown_interval", "is required")
	}
	return out
}

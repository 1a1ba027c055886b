// Package health judges providers by the calls that were made to them. It is a pure
// function of these calls, in their order.
package health

import (
	"fmt"
	"time"
)

// Statuses of a provider.
const (
	Healthy   = "healthy"
	Degraded  = "degraded"
	Unhealthy = "unhealthy"
	Unknown   = "unknown"
)

// How calls are judged.
const (
	window   = 20               // calls
	current  = 15 * time.Minute // older calls say nothing of now
	streak   = 3                // failures in a row that make a provider unhealthy
	enough   = 5                // calls before their share of failures counts
	slowness = 4                // mean latencies that a slow call takes
)

// Call is one call of a provider: Status 0 is no response.
type Call struct {
	At      time.Time
	Status  int
	Code    string // of the failure; may be empty
	Latency time.Duration
	// Credential is the label of the credential; empty if the provider has only one.
	Credential string
}

// failed reports whether the call shows that the provider does not work, not that the
// request was wrong.
func (c *Call) failed() bool {
	switch c.Status {
	case 0, 401, 402, 403, 408, 429:
		return true
	}
	return c.Status >= 500
}

// State is the health of a provider, Since when, and why.
type State struct {
	Status   string
	Cause    string    // empty if healthy
	Since    time.Time // zero: unknown
	Calls    int       // that were judged
	Failures int       // of these
	Latency  time.Duration
}

// Judge folds the calls, oldest first, into the state at the time now.
func Judge(calls []Call, now time.Time) State {
	s := State{Status: Unknown, Cause: "no calls in the last 15 minutes"}
	for i := range calls {
		if calls[i].At.After(now) {
			break
		}
		next := judge(calls[max(0, i+1-window):i+1], calls[i].At)
		if next.Since = s.Since; next.Status != s.Status {
			next.Since = calls[i].At
		}
		s = next
	}
	if n := len(calls); n > 0 && calls[n-1].At.Before(now.Add(-current)) {
		return State{Status: Unknown, Cause: "no calls in the last 15 minutes", Since: calls[n-1].At.Add(current)}
	}
	return s
}

// judge returns the state that some calls show, without the time since when.
func judge(calls []Call, now time.Time) State {
	s := State{Status: Healthy}
	inARow, slow, timed := 0, 0, 0
	var sum time.Duration
	var last *Call // that failed
	for i := range calls {
		c := &calls[i]
		if c.At.Before(now.Add(-current)) {
			continue
		}
		s.Calls++
		if c.failed() {
			s.Failures, inARow, last = s.Failures+1, inARow+1, c
			continue
		}
		inARow = 0
		sum += c.Latency
		timed++
	}
	if timed > 0 {
		s.Latency = sum / time.Duration(timed)
	}
	for i := range calls {
		if c := &calls[i]; !c.failed() && timed >= enough && c.Latency > slowness*s.Latency {
			slow++
		}
	}
	switch {
	case inARow >= streak || s.Calls >= enough && 2*s.Failures > s.Calls:
		s.Status = Unhealthy
	case inARow > 0 || s.Calls >= enough && 10*s.Failures > s.Calls:
		s.Status = Degraded
	case slow > 1:
		s.Status, s.Cause = Degraded, fmt.Sprintf("%d of %d calls took more than %d times the mean", slow, s.Calls, slowness)
	}
	if last != nil && s.Status != Healthy && s.Cause == "" {
		s.Cause = fmt.Sprintf("%d of %d calls failed, the last one with %s", s.Failures, s.Calls, last.reason())
	}
	return s
}

// reason names the failure of a call.
func (c *Call) reason() string {
	switch {
	case c.Status == 0:
		return "no response"
	case c.Status == 401 || c.Status == 403:
		return fmt.Sprintf("%d (the credential was rejected)", c.Status)
	case c.Status == 429:
		return "429 (a rate limit of the provider)"
	case c.Code != "":
		return fmt.Sprintf("%d %s", c.Status, c.Code)
	}
	return fmt.Sprint(c.Status)
}

// Credential is the health of one of several credentials of a provider.
type Credential struct {
	Label string
	State
}

// JudgeCredentials judges the credentials of a provider by its calls, oldest first, and by the
// times at which credentials were rejected: those are omitted until a test of the provider accepts them or their keys are saved again. The state
// of a provider whose credentials are all left out is unhealthy, and degraded if some are.
func JudgeCredentials(of State, labels []string, calls []Call, refused map[string]time.Time, now time.Time) (State, []Credential) {
	out := make([]Credential, len(labels))
	left, last := 0, time.Time{}
	for i, label := range labels {
		var own []Call
		for _, c := range calls {
			if c.Credential == label {
				own = append(own, c)
			}
		}
		out[i] = Credential{label, Judge(own, now)}
		if at, ok := refused[label]; ok {
			out[i].Status, out[i].Cause, out[i].Since = Unhealthy, "401 (the credential was rejected); skipped until a test of the provider succeeds with it or its key is saved again", at
			left++
			if at.After(last) {
				last = at
			}
		}
	}
	switch {
	case left == 0:
	case left == len(labels):
		of.Status, of.Cause, of.Since = Unhealthy, "all credentials were rejected with 401 and are skipped until a test of the provider succeeds with them or their keys are saved again", last
	case of.Status != Unhealthy:
		of.Status, of.Cause, of.Since = Degraded, fmt.Sprintf("%d of %d credentials were rejected with 401 and are skipped until a test of the provider succeeds with them or their keys are saved again", left, len(labels)), last
	}
	return of, out
}

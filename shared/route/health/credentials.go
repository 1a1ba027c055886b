package health

import (
	"fmt"
	"time"
)

// Credential is the health of one of several credentials of a provider.
type Credential struct {
	Label string
	State
}

// JudgeCredentials judges the credentials of a provider by its calls, oldest first, and by the
// times at which credentials were refused: those are left out until a test of the provider accepts them or their keys are saved again. The state
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
			out[i].Status, out[i].Cause, out[i].Since = Unhealthy, "401 (the credential was refused); left out until a test of the provider accepts it or its key is saved again", at
			left++
			if at.After(last) {
				last = at
			}
		}
	}
	switch {
	case left == 0:
	case left == len(labels):
		of.Status, of.Cause, of.Since = Unhealthy, "all credentials were refused with 401 and are left out until a test of the provider accepts them or their keys are saved again", last
	case of.Status != Unhealthy:
		of.Status, of.Cause, of.Since = Degraded, fmt.Sprintf("%d of %d credentials were refused with 401 and are left out until a test of the provider accepts them or their keys are saved again", left, len(labels)), last
	}
	return of, out
}

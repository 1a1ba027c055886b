package guardrail

import (
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/guard/chain"
)

// StatusFailed is the status of a successful response for which a non-denying guardrail has
// failed.
const StatusFailed = 246

// Verdict holds the decisions of a target's guardrails so far, on input and output. The zero
// value allows everything.
type Verdict struct {
	failed   bool // on input or output
	failedIn bool // on input
	denied   bool
	soft     bool // the denial is sent as a normal response
	spoiled  bool // a stream that was sent would have been denied or changed
}

// deny records a denial by results, and returns the error for the client.
func (v *Verdict) deny(soft bool, results []chain.Result) *fault.Fault {
	v.denied, v.soft = true, soft
	f := fault.New(fault.GuardrailDenied, "", chain.Denial(results))
	if soft {
		f.StatusCode = http.StatusOK
	}
	return f
}

// again clears the decisions on output.
func (v *Verdict) again() { v.failed, v.denied, v.soft = v.failedIn, false, false }

// Status returns the status of a response.
func (v *Verdict) Status(status int) int {
	if status == http.StatusOK && v.failed {
		return StatusFailed
	}
	return status
}

// Failed reports whether a non-denying guardrail has failed.
func (v *Verdict) Failed() bool { return v.failed }

// Passed reports whether the response may be cached for requests with the same guardrails: none
// has failed, including those that judge a stream once it has ended.
func (v *Verdict) Passed() bool { return !v.failed && !v.denied && !v.spoiled }

// Refused reports whether a guardrail denied, and soft whether the denial is sent as a normal
// response.
func (v *Verdict) Refused() (refused, soft bool) { return v.denied, v.soft }

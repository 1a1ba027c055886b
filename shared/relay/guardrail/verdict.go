package guardrail

import (
	"net/http"

	"gateway/shared/fault"
	"gateway/shared/guard/chain"
)

// StatusFailed is that of a good answer of which a guardrail that does not deny has
// failed.
const StatusFailed = 246

// Verdict is what the guardrails of a target have decided so far, before it and behind its
// answer. The zero value lets all pass.
type Verdict struct {
	failed   bool // before the target or behind it
	failedIn bool // before it
	denied   bool
	soft     bool // the denial is told as an answer
	spoiled  bool // a stream that has been sent would have been refused or changed
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

// again forgets what was decided behind an answer.
func (v *Verdict) again() { v.failed, v.denied, v.soft = v.failedIn, false, false }

// Status is that of an answer.
func (v *Verdict) Status(status int) int {
	if status == http.StatusOK && v.failed {
		return StatusFailed
	}
	return status
}

// Failed tells whether a guardrail that does not deny has failed.
func (v *Verdict) Failed() bool { return v.failed }

// Passed tells whether the answer may be used again for others whom the same guardrails
// judge: none has failed, also of those that look at a stream once it has ended.
func (v *Verdict) Passed() bool { return !v.failed && !v.denied && !v.spoiled }

// Refused tells whether a guardrail denied, and soft whether that is told as an answer.
func (v *Verdict) Refused() (refused, soft bool) { return v.denied, v.soft }

package http1

import "time"

const (
	// slowest is how many bytes of a body must come for each second that is waited
	// for it, beyond Options.BodyTime: less than the slowest speech.
	slowest = 128
	// settleTime is how long an answer waits for the rest of a body that the handler
	// did not read. Clients that send all before they read have it there by then.
	settleTime = 500 * time.Millisecond
)

// patience is how long a body is waited for. Only the waiting counts, not the time that the
// handler takes between its reads.
type patience struct {
	came   int64 // bytes
	waited time.Duration
}

// left is how long the next read may wait where it may wait for most.
func (p *patience) left(most time.Duration) time.Duration {
	earned := time.Duration(min(p.came/slowest, 1<<30)) * time.Second
	return max(0, min(most, most+earned-p.waited))
}

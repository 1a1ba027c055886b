package http1

import "time"

const (
	// slowest is the minimum rate of a body in bytes per second of waiting, beyond
	// Options.BodyTime: less than the slowest speech.
	slowest = 128
	// settleTime is how long a response waits for the unread rest of a body. The bytes of
	// clients that send everything before they read have arrived by then.
	settleTime = 500 * time.Millisecond
)

// patience is the remaining waiting time for a body. Only waiting counts, not the time
// between the handler's reads.
type patience struct {
	came   int64 // bytes
	waited time.Duration
}

// left returns how long the next read may wait, at most most.
func (p *patience) left(most time.Duration) time.Duration {
	earned := time.Duration(min(p.came/slowest, 1<<30)) * time.Second
	return max(0, min(most, most+earned-p.waited))
}

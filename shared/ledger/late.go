package ledger

import (
	"context"
	"sync"
	"time"
)

// late is a context that outlives the caller's, for a limited time: money must be settled
// and counts given back although the client has disconnected. It has a timer only if a
// goroutine waits for its end.
type late struct {
	caller   context.Context
	deadline time.Time

	mu     sync.Mutex
	timed  context.Context // nil until it is first waited for
	cancel context.CancelFunc
}

func detach(ctx context.Context) *late {
	return &late{caller: ctx, deadline: time.Now().Add(settleTime)}
}

// end releases the timer.
func (c *late) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

func (c *late) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *late) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithDeadline(context.WithoutCancel(c.caller), c.deadline)
	}
	return c.timed.Done()
}

func (c *late) Err() error {
	if time.Now().Before(c.deadline) {
		return nil
	}
	return context.DeadlineExceeded
}

// Value delegates to the timed context if there is one, so that derived contexts find the
// timer.
func (c *late) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed != nil {
		return c.timed.Value(key)
	}
	return c.caller.Value(key)
}

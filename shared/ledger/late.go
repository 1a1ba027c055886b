package ledger

import (
	"context"
	"sync"
	"time"
)

// late is a context that goes on when the caller has left, for a bounded time: money must be
// settled and counts given back although the client is gone. It has a timer only if somebody
// waits for its end.
type late struct {
	caller   context.Context
	deadline time.Time

	mu     sync.Mutex
	timed  context.Context // nil: nobody has waited yet
	cancel context.CancelFunc
}

func detach(ctx context.Context) *late {
	return &late{caller: ctx, deadline: time.Now().Add(settleTime)}
}

// end frees the timer.
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

// Value returns what the timed context does if there is one, so that contexts made from this
// one find the timer.
func (c *late) Value(key any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed != nil {
		return c.timed.Value(key)
	}
	return c.caller.Value(key)
}

package export

import (
	"context"
	"sync"
	"time"

	"gateway/shared/queue"
)

const (
	// lease is how long a step has a run without renewing it, and hidden how long its message
	// is hidden: a run of a process that died continues after that.
	lease  = 40 * time.Second
	hidden = lease + 5*time.Second
	// beat is how often a step renews both.
	beat = lease / 4
)

// hold renews the lease of a step and hides its message until release is called.
func (t *task) hold(ctx context.Context, m queue.Message) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	t.hide(ctx, m)
	wg.Go(func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if renewed, err := t.renew(ctx); err != nil || !renewed {
				if err != nil && ctx.Err() == nil {
					t.failed(err)
					continue
				}
				return // the step notices it when it saves its progress
			}
			t.hide(ctx, m)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// hide hides the message of the step for a while.
func (t *task) hide(ctx context.Context, m queue.Message) {
	if m.Receipt == "" {
		return
	}
	if err := t.Runs.Queue.Extend(ctx, m, hidden); err != nil && ctx.Err() == nil {
		t.failed(err)
	}
}

// renew renews the lease. It stores the progress as it was saved last: what the step has read
// since then is in no part yet. ok is false if the run has ended or belongs to another
// process.
func (t *task) renew(ctx context.Context) (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return false, nil
	}
	next := t.stored
	next.Until = t.Runs.Now().Add(lease)
	if ok, err = t.Runs.put(ctx, t.sc, t.id, &next); ok {
		t.stored, t.run.version = next, next.version
	}
	return ok, err
}

// put stores the run. done ends the renewal of the lease.
func (t *task) put(ctx context.Context, done bool) (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = t.done || done
	return t.Runs.put(ctx, t.sc, t.id, t.run)
}

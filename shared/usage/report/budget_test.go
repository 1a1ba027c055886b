package report

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gateway/shared/fault"
)

func TestQuestionsWaitAndAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newMemoryBudget(1, 2, 100, 100, time.Hour)
		leave, err := r.admit(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		let := make(chan error)
		go func() {
			next, err := r.admit(t.Context(), 100)
			if err == nil {
				next()
			}
			let <- err
		}()
		synctest.Wait() // the second waits in the queue
		_, err = r.admit(t.Context(), 100)
		if f := fault.From(err); f.Status() != 503 || f.RetryAfter <= 0 {
			t.Errorf("a third: %v", err)
		}
		leave()
		if err := <-let; err != nil {
			t.Errorf("the second: %v", err)
		}

		r = newMemoryBudget(1, 2, 100, 100, time.Minute)
		if leave, err = r.admit(t.Context(), 100); err != nil {
			t.Fatal(err)
		}
		defer leave()
		begun := time.Now()
		if _, err = r.admit(t.Context(), 100); !fault.Is(err, fault.ServiceUnavailable) || time.Since(begun) != time.Minute {
			t.Errorf("waited too long, %s: %v", time.Since(begun), err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = r.admit(gone, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("gone: %v", err)
		}
		if !r.queue.TryAcquire(1) {
			t.Error("who was refused still stands in the queue")
		}
	})
}

// TestMemoryOfQuestionsIsBounded: concurrent requests never get more than the total, even
// requests larger than the total.
func TestMemoryOfQuestionsIsBounded(t *testing.T) {
	t.Parallel()
	const most = 100
	r := newMemoryBudget(4, 64, 100, most, time.Hour)
	var used atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			bytes := int64(i%130 + 1)
			give, err := r.acquire(t.Context(), bytes)
			if err != nil {
				t.Error(err)
				return
			}
			if now := used.Add(min(bytes, most)); now > most {
				t.Errorf("%d bytes in use", now)
			}
			used.Add(-min(bytes, most))
			give()
		})
	}
	all.Wait()
}

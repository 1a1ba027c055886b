package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Seeking is a pending vector of a text. The embedding costs money once it is sent, so a
// late vector is still used: later requests find this request's response by it.
type Seeking struct {
	counts *counters
	done   chan struct{}
	vector []float32 // both are valid when done is closed
	err    error
	late   sync.Once
}

// ErrLate is given for a vector that did not come in time.
var ErrLate = errors.New("cache: the embedder did not answer in time")

// Seek starts making a vector. The caller must call Wait before what e refers to ends.
func (c *Cache) Seek(ctx context.Context, e Embedder, text string) *Seeking {
	s := &Seeking{counts: &c.counts, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer func() {
			if p := recover(); p != nil {
				s.err = fmt.Errorf("cache: the embedder panicked: %v", p)
			}
			if s.err != nil {
				s.vector = nil
				c.counts.embedFailed.Add(1)
			}
		}()
		if s.vector, s.err = e.Embed(ctx, text); s.err == nil {
			s.err = CheckVector(s.vector)
		}
	}()
	return s
}

// Vector waits for the vector for a while: ErrLate when it is not there by then.
func (s *Seeking) Vector(wait time.Duration) ([]float32, error) {
	if !s.Done() {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-s.done:
		case <-t.C:
			s.late.Do(func() { s.counts.embedLate.Add(1) })
			return nil, ErrLate
		}
	}
	return s.vector, s.err
}

// Done reports whether the embedder has answered.
func (s *Seeking) Done() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// Wait waits until the embedder has answered.
func (s *Seeking) Wait() { <-s.done }

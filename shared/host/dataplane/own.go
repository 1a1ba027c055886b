package dataplane

import (
	"context"
	"os"
	"strconv"
	"sync"

	"gateway/shared/pricing/running"
	"gateway/shared/usage"
)

// own writes into each record what its request cost here. A function serves one request at
// a time, so what it asks of AWS between two records belongs to the second.
type own struct {
	usage.Sink
	memory int64 // MB

	mu   sync.Mutex
	last running.Used
}

// newOwn knows the memory of the function from Lambda.
func newOwn(to usage.Sink) usage.Sink {
	memory, err := strconv.ParseInt(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 64)
	if err != nil || memory <= 0 {
		return to // not on Lambda
	}
	return &own{Sink: to, memory: memory, last: running.Process.Now()}
}

// Emit implements usage.Sink. The message that carries the record is counted in its own
// request, and in no later one.
func (s *own) Emit(ctx context.Context, r *usage.Record) error {
	r.Running = running.Request(s.used(), s.memory, r.Duration)
	defer s.used()
	return s.Sink.Emit(ctx, r)
}

// used is what was asked of AWS since it was asked the last time.
func (s *own) used() running.Used {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := running.Process.Now()
	used := now.Since(s.last)
	s.last = now
	return used
}

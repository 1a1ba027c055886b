package dataplane

import (
	"context"
	"os"
	"strconv"
	"sync"

	"gateway/shared/pricing/running"
	"gateway/shared/usage"
)

// costSink adds the cost of running the gateway to each record. A function serves one
// request at a time, so its AWS calls between two records belong to the second.
type costSink struct {
	usage.Sink
	memory int64 // MB

	mu   sync.Mutex
	last running.Used
}

// newCostSink reads the memory of the function from Lambda's environment.
func newCostSink(to usage.Sink) usage.Sink {
	memory, err := strconv.ParseInt(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 64)
	if err != nil || memory <= 0 {
		return to // not on Lambda
	}
	return &costSink{Sink: to, memory: memory, last: running.Process.Now()}
}

// Emit implements usage.Sink. The message that carries the record counts in its own
// request and in no later one.
func (s *costSink) Emit(ctx context.Context, r *usage.Record) error {
	r.Running = running.Request(s.used(), s.memory, r.Duration)
	defer s.used()
	return s.Sink.Emit(ctx, r)
}

// used returns the AWS calls since the last call.
func (s *costSink) used() running.Used {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := running.Process.Now()
	used := now.Since(s.last)
	s.last = now
	return used
}

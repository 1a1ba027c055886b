package dataplane

import (
	"context"
	"testing"
	"time"

	"gateway/shared/pricing/running"
	"gateway/shared/usage"
)

// sent is a sink that calls SQS, and stores its records.
type sent struct{ records []usage.Record }

func (s *sent) Emit(_ context.Context, r *usage.Record) error {
	running.Process.Count("SQS", "SendMessage", 100, 0)
	s.records = append(s.records, *r)
	return nil
}

// In a row: it sets the environment, and counts calls of the process.
func TestRecordsCarryWhatTheirRequestsCost(t *testing.T) {
	t.Setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "")
	to := &sent{}
	if newCostSink(to) != usage.Sink(to) {
		t.Error("not on Lambda, and counted")
	}
	t.Setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "192")
	s := newCostSink(to)
	for i, calls := range []int{0, 3, 1} {
		for range calls {
			running.Process.Count("DynamoDB", "UpdateItem", 500, 100)
		}
		latency := time.Duration(i) * 100 * time.Millisecond
		if err := s.Emit(t.Context(), &usage.Record{Duration: latency}); err != nil {
			t.Fatal(err)
		}
		if got, want := to.records[i].Running, running.Request(running.Used{Writes: int64(calls)}, 192, latency); got != want {
			t.Errorf("%d: %d, want %d", i, got, want)
		}
	}
}

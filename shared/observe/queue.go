package observe

import (
	"context"

	"gateway/shared/usage"
)

// Queue sends in the background, so that the worker that ingests records does not wait.
// Its size is limited; excess exports are dropped and counted.
type Queue struct {
	exporter *Exporter
	waiting  chan []Push
}

// maxWaiting is how many batches may wait.
const maxWaiting = 64

// NewQueue returns the queue of an exporter; Run empties it.
func NewQueue(e *Exporter) *Queue { return &Queue{e, make(chan []Push, maxWaiting)} }

// Offer queues the reports of records. They keep no reference to the records.
func (q *Queue) Offer(ctx context.Context, records []usage.Record) {
	pushes := q.exporter.Prepare(ctx, records)
	if len(pushes) == 0 {
		return
	}
	select {
	case q.waiting <- pushes:
	default:
		for i := range pushes {
			q.exporter.drop(&pushes[i], "too much waits to be sent")
		}
	}
}

// Run sends until ctx ends. Reports that still wait then are dropped.
func (q *Queue) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case pushes := <-q.waiting:
			q.exporter.Send(ctx, pushes)
		}
	}
}

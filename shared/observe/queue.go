package observe

import (
	"context"

	"gateway/shared/usage"
)

// Queue sends behind the back of the worker that keeps records. It holds so much and
// no more; what finds no room is dropped and counted.
type Queue struct {
	exporter *Exporter
	waiting  chan []Push
}

// maxWaiting is how many batches wait.
const maxWaiting = 64

// NewQueue makes the queue of an exporter; Run empties it.
func NewQueue(e *Exporter) *Queue { return &Queue{e, make(chan []Push, maxWaiting)} }

// Offer queues what there is to tell of records, and keeps nothing of them.
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

// Run sends until ctx ends. What waits then is dropped.
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

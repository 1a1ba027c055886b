// Package usage is the worker that stores usage events: it turns batches of messages into
// segments and settles the reservations of requests.
package usage

import (
	"context"
	"log/slog"

	"gateway/shared/queue"
	"gateway/shared/usage"
)

// Worker stores the events of messages.
type Worker struct {
	Ingester usage.Ingester
	Settler  usage.Settler
	OnStored func(ctx context.Context, records []usage.Record) // as usage.Worker's
}

// Handle stores the events of all readable messages, and returns the others. An error means
// that all messages must be redelivered; an event that arrives twice is stored once.
func (w *Worker) Handle(ctx context.Context, messages []queue.Message) (unread []queue.Message, err error) {
	var records []usage.Record
	for _, m := range messages {
		of, err := usage.DecodeEvents(m.Body)
		if err != nil {
			slog.Error("message contains no usage events", "message", m.ID, "attempt", m.Attempt, "error", err.Error())
			unread = append(unread, m)
			continue
		}
		records = append(records, of...)
	}
	if len(records) == 0 {
		return unread, nil
	}
	process := usage.Worker{Ingester: w.Ingester, Settler: w.Settler, OnStored: w.OnStored}
	return unread, process.Process(ctx, usage.Batch{Records: records})
}

// Package usage is the worker that keeps usage events: it turns batches of
// messages into segments and settles what requests reserved.
package usage

import (
	"context"
	"log/slog"

	"gateway/shared/queue"
	"gateway/shared/usage"
)

// Worker keeps the events of messages.
type Worker struct {
	Ingester usage.Ingester
	Settler  usage.Settler
	Kept     func(ctx context.Context, records []usage.Record) // as usage.Worker's
}

// Handle keeps the events of all messages that can be read, and gives back those that
// cannot. An error means that all messages must come again; an event that comes twice is
// kept once.
func (w *Worker) Handle(ctx context.Context, messages []queue.Message) (unread []queue.Message, err error) {
	var records []usage.Record
	for _, m := range messages {
		of, err := usage.DecodeEvents(m.Body)
		if err != nil {
			slog.Error("message holds no usage events", "message", m.ID, "attempt", m.Attempt, "error", err.Error())
			unread = append(unread, m)
			continue
		}
		records = append(records, of...)
	}
	if len(records) == 0 {
		return unread, nil
	}
	process := usage.Worker{Ingester: w.Ingester, Settler: w.Settler, OnStored: w.Kept}
	return unread, process.Process(ctx, usage.Batch{Records: records})
}

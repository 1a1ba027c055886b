package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"gateway/shared/queue"
	"gateway/shared/store"
)

// Worker writes queued records to the audit table.
type Worker struct{ table store.Table }

// NewWorker makes a Worker over the audit table of s.
func NewWorker(s store.Store) *Worker { return &Worker{table: s.Table(store.Audit)} }

// Handle writes each message's record unless it is there already, and gives back
// the messages that must be delivered again. It never changes a row.
func (w *Worker) Handle(ctx context.Context, messages []queue.Message) (failed []queue.Message, err error) {
	for _, m := range messages {
		if err := w.write(ctx, m); err != nil {
			slog.Error("audit record is not written yet", "message", m.ID, "attempt", m.Attempt, "error", err)
			failed = append(failed, m)
		}
	}
	return failed, nil
}

func (w *Worker) write(ctx context.Context, m queue.Message) error {
	e, err := decodeEntry(m.Body)
	if err != nil {
		return err
	}
	if e.ID == "" || e.OrganisationID == "" || e.Timestamp.IsZero() {
		return errors.New("audit: a record without id, organisation or time")
	}
	row, err := e.row()
	if err != nil {
		return err
	}
	err = w.table.Put(ctx, row, store.IfAbsent())
	if _, there := store.AsCondition(err); there {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit: write: %w", err)
	}
	return nil
}

package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"gateway/shared/queue"
	"gateway/shared/store"
)

// message is what travels in a message of the topic: an entry, states, or both.
type message struct {
	Entry
	States []byte `json:"states,omitempty"` // gzip of a JSON array
}

// Worker writes queued records to the audit table.
type Worker struct{ table store.Table }

// NewWorker makes a Worker over the audit table of s.
func NewWorker(s store.Store) *Worker { return &Worker{table: s.Table(store.Audit)} }

// Handle writes the record of each message unless it exists already, and gives back the
// messages that must be delivered again. It never changes a row.
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
	var msg message
	if err := json.Unmarshal(m.Body, &msg); err != nil {
		return fmt.Errorf("audit: decode: %w", err)
	}
	e := &msg.Entry
	if e.ID == "" || e.OrganisationID == "" || e.Timestamp.IsZero() {
		return errors.New("audit: a record without id, organization or time")
	}
	if err := w.writeStates(ctx, &msg); err != nil || e.Action == stateMark {
		return err
	}
	row, err := e.row()
	if err != nil {
		return err
	}
	return w.add(ctx, row)
}

func (w *Worker) writeStates(ctx context.Context, msg *message) error {
	if len(msg.States) == 0 {
		return nil
	}
	states, err := unpack(msg.States)
	if err != nil {
		return err
	}
	for i := range states {
		row, err := stateRow(msg.OrganisationID, &states[i])
		if err != nil {
			return err
		}
		if err := w.add(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// add writes a row unless it exists.
func (w *Worker) add(ctx context.Context, row store.Row) error {
	err := w.table.Put(ctx, row, store.IfAbsent())
	if _, there := store.AsCondition(err); there {
		return nil
	}
	if err != nil {
		return fmt.Errorf("audit: write: %w", err)
	}
	return nil
}

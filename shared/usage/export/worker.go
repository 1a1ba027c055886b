package export

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"gateway/shared/blob"
	"gateway/shared/fault"
	"gateway/shared/queue"
	"gateway/shared/seal"
	"gateway/shared/usage/report"
)

// Bucket is the bucket of files.
type Bucket interface {
	blob.Bucket
	blob.Uploads
}

// Worker performs the steps of exports. It is safe for concurrent use.
type Worker struct {
	Runs   *Runs
	Reader *report.Reader
	Bucket Bucket
	Sealer seal.Sealer // opens bodies
	Pace   Pace
	// OnError is called for errors that no caller receives; slog if nil.
	OnError func(error)
}

// Pace limits the work of a step.
type Pace struct {
	Step time.Duration // after which the remainder is left to another message
	Part int           // size at which a part is uploaded
	Rows int           // of a page
}

// Standard is the default pace.
var Standard = Pace{Step: 5 * time.Minute, Part: 8 << 20, Rows: 1000}

// maxParts limits a run's row to the size of an item; at 8 MiB per part the limit of a
// file is 16 GiB.
const maxParts = 2000

// tries is how often a message may be delivered before its run fails. Queues allow more.
const tries = 4

// maxRestarts is how often a run restarts before it fails.
const maxRestarts = 3

func (w *Worker) failed(err error) {
	if w.OnError != nil {
		w.OnError(err)
		return
	}
	slog.Error("export", "error", err.Error())
}

// Handle performs the steps of messages sequentially. failed are the messages to deliver
// again.
func (w *Worker) Handle(ctx context.Context, messages []queue.Message) (failed []queue.Message, err error) {
	for _, m := range messages {
		if err := w.handle(ctx, m); err != nil {
			w.failed(err)
			failed = append(failed, m)
		}
	}
	return failed, nil
}

// handle performs one step. A step that is stale or held by another process is done.
func (w *Worker) handle(ctx context.Context, m queue.Message) error {
	s, err := readStep(m.Body)
	if err != nil {
		return err // it becomes a dead letter
	}
	t := &task{Worker: w, sc: s.scope(), id: s.Export, holder: uuid.NewString()}
	took, err := t.take(ctx, s.Attempt)
	if errors.Is(err, errHeld) && m.Attempt == 1 {
		return nil // a duplicate of the holder's message
	}
	if err != nil || !took {
		return err
	}
	err = func() error {
		defer t.hold(ctx, m)()
		return t.write(ctx)
	}()
	late := context.WithoutCancel(ctx)
	switch {
	case err == nil || errors.Is(err, errLost):
		return nil
	case errors.Is(err, blob.ErrNoUpload) && t.run.Restarts < maxRestarts:
		return t.restart(late)
	case m.Attempt < tries && !errors.Is(err, errTooLarge):
		*t.run = t.stored
		t.run.Holder, t.run.Until = "", time.Time{}
		_, perr := t.put(late, true)
		return errors.Join(err, perr)
	}
	*t.run = t.stored
	w.failed(err)
	return t.end(late, Failed, userMessage(err))
}

// userMessage returns the user-visible text of an error.
func userMessage(err error) string {
	var f *fault.Fault
	if errors.As(err, &f) || errors.Is(err, errTooLarge) {
		return err.Error()
	}
	return "The logs could not be read or the file not be written; start it again"
}

// Work receives messages until ctx ends, one at a time.
func (w *Worker) Work(ctx context.Context) error {
	for ctx.Err() == nil {
		messages, err := w.Runs.Queue.Receive(ctx, 1, queue.MaxWait, hidden)
		if err != nil || len(messages) == 0 {
			if err != nil && ctx.Err() == nil {
				w.failed(err)
				pause(ctx, time.Second)
			}
			continue
		}
		failed, _ := w.Handle(ctx, messages)
		late := context.WithoutCancel(ctx)
		if len(failed) > 0 {
			err = w.Runs.Queue.Extend(late, failed[0], beat)
		} else {
			err = w.Runs.Queue.Delete(late, messages...)
		}
		if err != nil {
			w.failed(err)
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

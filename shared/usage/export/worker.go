package export

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"gateway/shared/blob"
	"gateway/shared/fault"
	"gateway/shared/queue"
	"gateway/shared/seal"
	"gateway/shared/store"
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
	Limits StepLimits
	// OnError is called for errors that no caller receives; slog if nil.
	OnError func(error)
}

// StepLimits limits the work of a step.
type StepLimits struct {
	Step time.Duration // after which the remainder is left to another message
	Part int           // size at which a part is uploaded
	Rows int           // of a page
}

// Standard is the default pace.
var Standard = StepLimits{Step: 5 * time.Minute, Part: 8 << 20, Rows: 1000}

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
	taken, err := t.take(ctx, s.Attempt)
	if errors.Is(err, errHeld) && m.Attempt == 1 {
		return nil // a duplicate of the holder's message
	}
	if err != nil || !taken {
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
	return "The logs could not be read, or the file could not be written; start the export again"
}

// Run receives messages until ctx ends, one at a time.
func (w *Worker) Run(ctx context.Context) error {
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

// days returns the log retention of a scope's exports in days; for an organization's
// exports the shortest of its workspaces. 0 means forever.
func (s *Runs) days(ctx context.Context, sc store.Scope) (int, error) {
	least := int(s.Longest / (24 * time.Hour))
	if s.WorkspaceRetention == nil {
		return least, nil
	}
	retention, err := s.WorkspaceRetention(ctx, sc)
	if err != nil {
		return 0, err
	}
	all := []int{retention.Days(sc.Workspace)}
	if sc.Workspace == "" {
		all = append(slices.Collect(maps.Values(retention.Of)), retention.Standard)
	}
	for _, days := range all {
		if days > 0 && (least == 0 || days < least) {
			least = days
		}
	}
	return least, nil
}

// goneAt returns when logs of a time's day expire; zero means never.
func goneAt(t time.Time, days int) time.Time {
	if days <= 0 {
		return time.Time{}
	}
	return t.UTC().Truncate(24*time.Hour).AddDate(0, 0, days+1)
}

// Sweep deletes expired files; call it about once an hour. Most buckets delete files
// after a week by a lifecycle rule; Sweep deletes files with shorter retention. An error
// for one file does not stop the others.
func (w *Worker) Sweep(ctx context.Context) error {
	days := make(map[store.Scope]int)
	var errs []error
	for after := ""; ; {
		keys, err := w.Bucket.List(ctx, prefix, after, 1000)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, key := range keys {
			after = key
			over, err := w.expired(ctx, key, days)
			if err == nil && over {
				err = w.Bucket.Delete(ctx, key)
			}
			if err != nil {
				errs = append(errs, err)
			}
		}
		if len(keys) == 0 {
			return errors.Join(errs...)
		}
	}
}

// expired reports whether a file has expired, by its key; see fileKey. days caches the
// retention of scopes.
func (w *Worker) expired(ctx context.Context, key string, days map[store.Scope]int) (bool, error) {
	part := strings.Split(strings.TrimPrefix(key, prefix), "/")
	day, err := time.Parse(time.DateOnly, part[0])
	if err != nil || len(part) < 4 {
		return false, nil // not an export file
	}
	now := w.Runs.Now()
	if now.After(day.Add(FileLifetime + 48*time.Hour)) {
		return true, nil
	}
	sc := store.Scope{Org: part[1], Workspace: part[2]}
	if sc.Workspace == noWorkspace {
		sc.Workspace = ""
	}
	n, known := days[sc]
	if !known {
		if n, err = w.Runs.days(ctx, sc); err != nil {
			return false, err
		}
		days[sc] = n
	}
	gone := goneAt(day, n)
	return !gone.IsZero() && !now.Before(gone), nil
}

package batchrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"gateway/shared/dialect/gemini"
	"gateway/shared/queue"
	"gateway/shared/relay"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/body"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// Timing sets the speed of batches.
type Timing struct {
	Flush   int           // rows of one step
	Pause   time.Duration // between two steps
	Retries int           // of a row, besides its first attempt
	Backoff time.Duration // before the first retry; doubles with each
	Wait    time.Duration // the longest Retry-After that is honored
	Row     time.Duration // for a row, including its retries
	Poll    time.Duration // between two polls of a provider's batch
	Lease   time.Duration
	Late    time.Duration // how long a step may be overdue before Sweep requests it again
	Stop    time.Duration // for rows in progress when the process stops
}

// DefaultTiming is the default pace.
var DefaultTiming = Timing{
	Flush: 25, Pause: 5 * time.Second, Retries: 3, Backoff: time.Second, Wait: 30 * time.Second, Row: 10 * time.Minute,
	Poll: 30 * time.Second, Lease: time.Minute, Late: time.Minute, Stop: 20 * time.Second,
}

// Options are the dependencies of a Runner.
type Options struct {
	Mux     *relay.Mux // the routes that rows call, and those of files and batches
	Batches *batch.Batches
	Files   func(sc store.Scope) batch.FileStore
	Queue   queue.Queue
	Now     func() time.Time
	Timing  Timing
	// Alone reports that no other process runs batches of this store.
	Alone bool
	// OnError is called with failures that no caller sees; nil: slog.
	OnError func(error)
}

// Runner executes the steps of batches. It is safe for concurrent use.
type Runner struct {
	Options
	process string // starts the names of its leases
}

// New returns a runner.
func New(o Options) *Runner {
	if o.OnError == nil {
		o.OnError = func(err error) { slog.Error("batch", "error", err.Error()) }
	}
	return &Runner{Options: o, process: uuid.NewString()}
}

// Handle executes the steps in messages, all concurrently. failed are those that must be
// delivered again.
func (r *Runner) Handle(ctx context.Context, messages []queue.Message) (failed []queue.Message, err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, m := range messages {
		wg.Go(func() {
			if err := r.handle(ctx, m); err != nil {
				r.OnError(err)
				mu.Lock()
				failed = append(failed, m)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return failed, nil
}

// handle executes one step. A stale one, or one leased by another worker, is done.
func (r *Runner) handle(ctx context.Context, m queue.Message) error {
	step, err := batch.ReadMessage(m.Body)
	if err != nil {
		return err // it becomes a dead letter
	}
	if step.Sweep {
		return r.Sweep(ctx)
	}
	if step.Awaited != nil {
		return r.look(ctx, step)
	}
	sc, holder := step.Scope(), r.process+"/"+uuid.NewString()[:8]
	b, err := r.Batches.AcquireLease(context.WithoutCancel(ctx), sc, step.Batch, holder, step.Step, r.Timing.Lease, r.Alone)
	if errors.Is(err, batch.ErrTaken) || err == nil && b == nil {
		return nil
	}
	if err != nil {
		return err
	}
	w := &work{runner: r, sc: sc, id: step.Batch, holder: holder, batch: b}
	return w.run(ctx)
}

// Sweep requests the overdue steps again.
func (r *Runner) Sweep(ctx context.Context) error {
	due, steps, err := r.Batches.Overdue(ctx, r.Timing.Late, r.process, r.Alone)
	for i, d := range due {
		if serr := r.Queue.Send(ctx, batch.Message(d.Scope, d.ID, steps[i], 0)); serr != nil {
			err = errors.Join(err, serr)
		}
	}
	return err
}

// Run receives messages until ctx ends, and lets steps in progress end.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.Sweep(ctx); err != nil && ctx.Err() == nil {
		r.OnError(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	free := make(chan struct{}, atOnce)
	for ctx.Err() == nil {
		messages, err := r.Queue.Receive(ctx, 1, queue.MaxWait, visibility)
		if err != nil || len(messages) == 0 {
			if err != nil && ctx.Err() == nil {
				r.OnError(err)
				pause(ctx, time.Second)
			}
			continue
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			late := context.WithoutCancel(ctx)
			failed, _ := r.Handle(ctx, messages)
			var err error
			if len(failed) > 0 {
				err = r.Queue.Extend(late, failed[0], time.Second)
			} else {
				err = r.Queue.Delete(late, messages...)
			}
			if err != nil {
				r.OnError(err)
			}
		})
	}
	return nil
}

// Limits of a process that polls the queue itself: concurrent batches; a message is hidden for
// longer than a step lasts.
const (
	atOnce     = 4
	visibility = 20 * time.Minute
)

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// look polls the provider once for a background response, and schedules the next poll unless it
// has ended. The pipeline charges its usage, with the first request that claims it: this one or
// one of the client's.
//
// A duplicate message polls twice and charges once. A revoked key polls with its former
// identity: the provider's credential is opened by the workspace, which owns the saved provider,
// and the key and its workspace pay the cost. Polling ends after the provider has repeatedly
// reported the response as missing, or after a day.
func (r *Runner) look(ctx context.Context, step batch.Step) error {
	a, err := r.Batches.OpenPolled(ctx, step)
	if err != nil {
		return err // it becomes a dead letter
	}
	sc := step.Scope()
	if booked, err := r.Mux.Charged(ctx, sc, a); err != nil || booked {
		return err
	}
	if r.Now().Sub(time.Unix(a.Created, 0)) >= batch.MaxPollAge {
		r.OnError(fmt.Errorf("batchrun: response %q of workspace %s has not ended in %v and is not charged", a.ID, sc.Workspace, batch.MaxPollAge))
		return nil
	}
	behalf, err := r.Mux.Settler(ctx, sc, a)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, r.Timing.Row)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodGet, routes.BasePath+a.ReadAt(), http.NoBody)
	if err != nil {
		return err
	}
	maps.Copy(req.Header, a.Headers.Clone())
	got := &response.Recorder{Max: maxResponse}
	broken := r.Mux.Run(got, req, behalf)
	if behalf.Charged {
		return nil
	}
	missing := !broken && (got.Status == http.StatusNotFound || got.Status == http.StatusGone)
	if !broken && got.Status == http.StatusOK && !got.Overflowed {
		done, err := r.done(ctx, sc, a, got.Body.Bytes())
		if err != nil || done {
			return err
		}
	}
	if !a.CountPoll(missing) {
		r.OnError(fmt.Errorf("batchrun: the provider no longer has the response %q of workspace %s: it is not charged", a.ID, sc.Workspace))
		return nil
	}
	next, err := r.Batches.SchedulePoll(ctx, sc, a)
	if err != nil {
		return err
	}
	return r.Queue.Send(context.WithoutCancel(ctx), next)
}

// done reports whether a response needs no further poll: it has ended, and its usage, if any,
// was charged.
func (r *Runner) done(ctx context.Context, sc store.Scope, a *batch.PolledResponse, payload []byte) (bool, error) {
	var response struct {
		Status string          `json:"status"`
		Usage  json.RawMessage `json:"usage"`
	}
	if json.Unmarshal(payload, &response) != nil {
		return false, nil
	}
	if job, video := body.ReadJob(payload); video {
		if !job.Ended {
			return false, nil
		}
		return r.Mux.Charged(ctx, sc, a)
	}
	switch response.Status {
	case "completed", "failed", "cancelled", "incomplete":
	default:
		if _, ended := gemini.MeterInteraction(payload); a.Path == "" || !ended {
			return false, nil
		}
	}
	if len(response.Usage) == 0 || wire.IsNull(response.Usage) {
		return true, nil
	}
	return r.Mux.Charged(ctx, sc, a) // otherwise the claim failed, and is repeated
}

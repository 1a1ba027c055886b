package batchrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/relay/batch"
	"gateway/shared/store"
)

// work is one step of one batch, under a lease.
type work struct {
	runner *Runner
	sc     store.Scope
	id     string
	holder string
	batch  *batch.Batch
	// closing is the holder of the batch's key, once the key is no longer valid; nil before.
	closing *identity.Principal
}

// errStopped reports that the process stops before the step is done.
var errStopped = errors.New("batchrun: the process stops")

// run executes the step and releases the lease with the resulting changes.
func (w *work) run(ctx context.Context) error {
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	done := make(chan struct{})
	defer close(done)
	go w.renew(ctx, done, lost)
	made, delay, err := w.step(ctx)
	late := context.WithoutCancel(ctx)
	switch {
	case errors.Is(context.Cause(ctx), batch.ErrTaken):
		return nil // the new holder continues
	case err != nil:
		if f := fault.From(err); !errors.Is(err, errStopped) && (f.Status() < 500 || w.runner.Now().Unix() >= w.batch.Expires+patience) {
			made, delay = w.failing(f), 0
			break
		}
		// Nothing is changed: the step is repeated.
		_, rerr := w.runner.Batches.Release(late, w.sc, w.id, w.holder, nil)
		if errors.Is(err, errStopped) {
			return errors.Join(rerr, w.send(late, w.batch.Step, 0))
		}
		return errors.Join(fmt.Errorf("batchrun: %s: %w", w.id, err), rerr)
	}
	b, err := w.runner.Batches.Release(late, w.sc, w.id, w.holder, func(p *batch.Progress) {
		made(p)
		p.Advance(w.runner.Now().Add(delay))
	})
	if err != nil || b == nil || b.Status.Ended() {
		if errors.Is(err, batch.ErrTaken) {
			return nil
		}
		return err
	}
	return w.send(late, b.Step, delay)
}

func (w *work) send(ctx context.Context, step int64, delay time.Duration) error {
	return w.runner.Queue.Send(ctx, batch.Message(w.sc, w.id, step, delay))
}

// patience is for how many seconds a failing step of an overdue batch is retried.
const patience = 24 * 60 * 60

// failing ends a batch that cannot continue.
func (w *work) failing(f *fault.Fault) func(*batch.Progress) {
	return func(p *batch.Progress) { p.Fail(problemOf(f, 0), w.runner.Now()) }
}

// renew renews the lease while the step runs.
func (w *work) renew(ctx context.Context, done <-chan struct{}, lost context.CancelCauseFunc) {
	t := time.NewTicker(w.runner.Timing.Lease / 3)
	defer t.Stop()
	for {
		select {
		case <-done:
			return
		case <-t.C:
			if err := w.runner.Batches.Renew(context.WithoutCancel(ctx), w.sc, w.id, w.holder, w.runner.Timing.Lease); errors.Is(err, batch.ErrTaken) {
				lost(batch.ErrTaken)
				return
			} else if err != nil {
				w.runner.OnError(err) // two more attempts before it expires
			}
		}
	}
}

// step executes the next step. It returns its changes to the progress, and the delay of the
// following step.
func (w *work) step(ctx context.Context) (made func(*batch.Progress), delay time.Duration, err error) {
	b := w.batch
	switch {
	case b.Outcome != "":
		made, err = w.finish(ctx)
		return made, 0, err
	case b.Status == batch.Cancelling && b.Provider.Stage == "":
		return w.ending(batch.Cancelled), 0, nil
	case b.Status == batch.Validating && b.Provider.Stage == "":
		made, err = w.validate(ctx)
		return made, 0, err
	case b.Provider.Stage != "":
		return handOver(w, ctx)
	case w.runner.Now().Unix() >= b.Expires:
		return w.ending(batch.Expired), 0, nil
	}
	return flush(w, ctx)
}

// ending starts the end of the batch.
func (w *work) ending(outcome batch.Status) func(*batch.Progress) {
	return func(p *batch.Progress) { p.Finalize(outcome, w.runner.Now()) }
}

// input finds the file of the rows.
func (w *work) input(ctx context.Context) (batch.FileStore, *chat.StoredFile, error) {
	room := w.runner.Files(w.sc)
	f, err := room.File(ctx, w.batch.Input)
	if err == nil && f == nil {
		err = fault.New(fault.NotFound, "input_file_id", "The input file was deleted")
	}
	return room, f, err
}

// maxProblems limits the lines that a batch lists when its check fails.
const maxProblems = 100

// validate reads the rows once, before any of them runs.
func (w *work) validate(ctx context.Context) (func(*batch.Progress), error) {
	room, f, err := w.input(ctx)
	if err != nil {
		return nil, err
	}
	src := room.Open(ctx, f)
	defer src.Close()
	lines, check := batch.NewLines(src, 0, 0), batch.NewCheck()
	var problems []batch.Problem
	for len(problems) < maxProblems {
		line, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := w.check(check, line); err != nil {
			problems = append(problems, problemOf(fault.From(err), lines.Number))
		}
	}
	return func(p *batch.Progress) {
		stage := ""
		if w.batch.Window == batch.Day {
			stage = stageJudge
		}
		p.Validated(problems, check.Rows(), stage, w.runner.Now())
	}, nil
}

func problemOf(f *fault.Fault, line int) batch.Problem {
	return batch.Problem{Code: string(f.Code), Message: f.Message, Param: f.Field, Line: line}
}

// check reads a row of this batch.
func (w *work) check(check *batch.Check, line []byte) error {
	row, err := check.Row(line)
	if err == nil && row.URL != w.batch.Endpoint {
		err = fault.Invalid("url", "url must be the endpoint of the batch, %s", w.batch.Endpoint)
	}
	if err == nil {
		err = notStreamed(row.Body)
	}
	return err
}

// finish writes the output files.
func (w *work) finish(ctx context.Context) (func(*batch.Progress), error) {
	b, room := w.batch, w.runner.Files(w.sc)
	var left int64
	if b.Outcome == batch.Expired {
		left = b.Total - b.Succeeded - b.Bad
	}
	name := func(kind string) (id, file string) {
		own := strings.TrimPrefix(b.ID, batch.IDPrefix)
		return batch.FilePrefix + own + "_" + kind, b.ID + "_" + kind + ".jsonl"
	}
	var output, failures string
	if b.Succeeded > 0 && b.Output == "" {
		id, file := name("output")
		if _, err := room.SaveAs(ctx, id, file, "batch_output", w.runner.Batches.Rows(ctx, w.sc, w.id, true)); err != nil {
			return nil, err
		}
		output = id
	}
	if b.Bad+left > 0 && b.Progress.Errors == "" {
		id, file := name("error")
		src := w.runner.Batches.Rows(ctx, w.sc, w.id, false)
		if left > 0 {
			late, err := w.expiredRows(ctx)
			if fault.Is(err, fault.NotFound) {
				late, err = io.NopCloser(strings.NewReader("")), nil // the rows no longer exist
			}
			if err != nil {
				return nil, err
			}
			defer late.Close()
			src = io.MultiReader(src, late)
		}
		if _, err := room.SaveAs(ctx, id, file, "batch_output", src); err != nil {
			return nil, err
		}
		failures = id
	}
	return func(p *batch.Progress) { p.Close(output, failures, left, w.runner.Now()) }, nil
}

// expiredRows returns the error rows for the lines without a response in time.
func (w *work) expiredRows(ctx context.Context) (io.ReadCloser, error) {
	room, f, err := w.input(ctx)
	if err != nil {
		return nil, err
	}
	src := room.OpenAt(ctx, f, w.batch.Offset)
	return &expired{w: w, Closer: src, lines: batch.NewLines(src, w.batch.Line, w.batch.Offset)}, nil
}

type expired struct {
	io.Closer
	w     *work
	lines *batch.Lines
	out   []byte
}

// Read implements io.Reader.
func (e *expired) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		line, err := e.lines.Next()
		if err != nil {
			return 0, err
		}
		row, err := batch.ParseRow(line)
		if err != nil {
			return 0, err
		}
		e.out = batch.AppendFailure(e.out, e.w.id, e.lines.Number, row.CustomID, "batch_expired", "This request could not be executed before the completion window expired.")
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

package export

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/queue"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// task is one step of one run.
type task struct {
	*Worker
	sc     store.Scope
	id     string
	holder string
	run    *Run
	out    writer

	mu     sync.Mutex
	stored Run  // as stored
	done   bool // the step has given up the lease
}

// errLost is returned if the run was stopped or taken over by another process.
var errLost = errors.New("export: the run belongs to another process")

// errHeld is returned if another process has the lease. It may have died with the same
// message, so the message is retained until the lease has expired.
var errHeld = errors.New("export: another step of the run is in progress")

// errTooLarge is returned if the file would have too many parts.
var errTooLarge = errors.New("the file would exceed the maximum size of an export: select fewer logs or fewer fields")

// take takes the lease; ok is false if there is nothing to do.
func (t *task) take(ctx context.Context, attempt int64) (ok bool, err error) {
	runs, err := t.Runs.Get(ctx, t.sc, t.id)
	if err != nil {
		return false, err
	}
	r, now := runs[t.id], t.Runs.Now()
	if r.Status != Running || r.Attempt != attempt {
		return false, nil
	}
	if r.Holder != "" && now.Before(r.Until) {
		return false, errHeld
	}
	t.run = r
	return t.save(ctx)
}

// save stores the progress and renews the lease; ok is false if another process has the
// run.
func (t *task) save(ctx context.Context) (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run.Holder, t.run.Until = t.holder, t.Runs.Now().Add(lease)
	if ok, err = t.Runs.put(ctx, t.sc, t.id, t.run); ok {
		t.stored = *t.run
		t.stored.Tags = slices.Clone(t.run.Tags)
	}
	return ok, err
}

// write writes pages until the end, or until the step's time is over.
func (t *task) write(ctx context.Context) error {
	if t.run.Read {
		return t.complete(ctx)
	}
	var err error
	if t.out, err = t.writer(); err != nil {
		return err
	}
	until := t.Runs.Now().Add(t.Limits.Step)
	for {
		more, err := t.page(ctx)
		if err != nil {
			return err
		}
		if !more {
			return t.finish(ctx)
		}
		if t.out.size() < t.Limits.Part {
			continue
		}
		if err := t.part(ctx, false); err != nil {
			return err
		}
		if t.Runs.Now().After(until) || ctx.Err() != nil {
			return t.release(ctx)
		}
	}
}

// writer continues the file.
func (t *task) writer() (writer, error) {
	o, written := &t.run.Order, t.run.Bytes
	if o.Format == Parquet {
		return newColumns(o, written, 2*t.Limits.Part, t.indexes), nil
	}
	return newLines(o, written)
}

// release leaves the run to the next message.
func (t *task) release(ctx context.Context) error {
	late := context.WithoutCancel(ctx)
	t.run.Holder, t.run.Until = "", time.Time{}
	if ok, err := t.put(late, true); err != nil || !ok {
		return errors.Join(err, lostUnless(ok))
	}
	return t.Runs.Queue.Send(late, stepMessage(t.sc, t.id, t.run.Attempt))
}

func lostUnless(ok bool) error {
	if ok {
		return nil
	}
	return errLost
}

// page writes logs of the next page until the part is full; more reports whether further
// logs follow.
func (t *task) page(ctx context.Context) (more bool, err error) {
	r := t.run
	q := report.LogQuery{Filter: r.Order.Filter, Limit: min(t.Limits.Rows, r.Order.Limit-int(r.Rows)), Cursor: r.Cursor, Bodies: r.Order.Bodies}
	if q.Limit <= 0 {
		return false, nil
	}
	if r.Cursor == "" {
		q.Offset = r.Order.Offset
	}
	next, err := t.Reader.EachLog(ctx, t.sc, &q, func(rec *usage.Record) (bool, error) {
		l, err := t.line(ctx, rec)
		if err == nil {
			err = t.out.record(l)
		}
		r.Rows++
		return t.out.size() < t.Limits.Part, err
	})
	if err != nil {
		return false, err
	}
	r.Cursor = next
	return next != "" && r.Rows < int64(r.Order.Limit), nil
}

// part uploads the data since the last part and saves the progress.
func (t *task) part(ctx context.Context, last bool) error {
	body, index, err := t.out.part(ctx, last)
	if err != nil {
		return err
	}
	r := t.run
	if len(body) == 0 { // no data after the last part
		return nil
	}
	if len(r.Tags) == maxParts {
		return errTooLarge
	}
	if r.Upload == "" {
		id, err := t.Bucket.Begin(ctx, r.Key, r.Key[strings.LastIndexByte(r.Key, '/')+1:])
		if err != nil {
			return err
		}
		r.Upload = id
	}
	tag, err := t.Bucket.Part(ctx, r.Key, r.Upload, len(r.Tags)+1, body)
	if err != nil {
		return err
	}
	r.Tags, r.Bytes = append(r.Tags, tag), r.Bytes+int64(len(body))
	if index != nil {
		if err := t.Bucket.Put(ctx, r.indexKey(len(r.Tags)-1), index); err != nil {
			return err
		}
	}
	t.out.next()
	ok, err := t.save(context.WithoutCancel(ctx))
	if err != nil || ok {
		return err
	}
	_ = t.Bucket.Abort(context.WithoutCancel(ctx), r.Key, r.Upload)
	return errLost
}

// finish completes the file with the remaining data.
func (t *task) finish(ctx context.Context) error {
	r := t.run
	r.Read = true
	if r.Upload != "" {
		if err := t.part(ctx, true); err != nil {
			return err
		}
		return t.complete(ctx)
	}
	body, _, err := t.out.part(ctx, true)
	if err != nil {
		return err
	}
	if err := t.Bucket.Put(ctx, r.Key, body); err != nil {
		return err
	}
	r.Bytes = int64(len(body))
	return t.end(ctx, Success, "")
}

// complete joins the parts.
func (t *task) complete(ctx context.Context) error {
	r := t.run
	if err := t.Bucket.Complete(ctx, r.Key, r.Upload, r.Tags); err != nil {
		return err
	}
	return t.end(ctx, Success, "")
}

// end stores the result of the run.
func (t *task) end(ctx context.Context, status, why string) error {
	r := t.run
	r.Status, r.Error, r.Ended, r.Holder, r.Until = status, why, t.Runs.Now(), "", time.Time{}
	upload := r.Upload
	t.dropIndexes(ctx)
	r.Cursor, r.Read, r.Upload, r.Tags = "", false, "", nil
	ok, err := t.put(ctx, true)
	if err != nil {
		return err
	}
	if status != Success && upload != "" {
		err = t.Bucket.Abort(ctx, r.Key, upload)
	}
	if !ok && status == Success { // canceled at the last moment
		return errors.Join(t.Bucket.Delete(ctx, r.Key), errLost)
	}
	return errors.Join(err, lostUnless(ok))
}

// restart starts the run again because its upload is gone: it expired, or a step
// completed it and was killed before it saved that.
func (t *task) restart(ctx context.Context) error {
	r := t.run
	t.dropIndexes(ctx)
	r.Restarts++
	r.Rows, r.Bytes, r.Cursor, r.Read, r.Upload, r.Tags, r.Holder, r.Until = 0, 0, "", false, "", nil, "", time.Time{}
	if ok, err := t.put(ctx, true); err != nil || !ok {
		return err
	}
	if err := t.Runs.Queue.Send(ctx, stepMessage(t.sc, t.id, r.Attempt)); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

const (
	// lease is how long a step has a run without renewing it, and hidden how long its message
	// is hidden: a run of a process that died continues after that.
	lease  = 40 * time.Second
	hidden = lease + 5*time.Second
	// beat is how often a step renews both.
	beat = lease / 4
)

// hold renews the lease of a step and hides its message until release is called.
func (t *task) hold(ctx context.Context, m queue.Message) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	t.hide(ctx, m)
	wg.Go(func() {
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if renewed, err := t.renew(ctx); err != nil || !renewed {
				if err != nil && ctx.Err() == nil {
					t.failed(err)
					continue
				}
				return // the step notices it when it saves its progress
			}
			t.hide(ctx, m)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// hide hides the message of the step for a while.
func (t *task) hide(ctx context.Context, m queue.Message) {
	if m.Receipt == "" {
		return
	}
	if err := t.Runs.Queue.Extend(ctx, m, hidden); err != nil && ctx.Err() == nil {
		t.failed(err)
	}
}

// renew renews the lease. It stores the progress as it was saved last: what the step has read
// since then is in no part yet. ok is false if the run has ended or belongs to another
// process.
func (t *task) renew(ctx context.Context) (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return false, nil
	}
	next := t.stored
	next.Until = t.Runs.Now().Add(lease)
	if ok, err = t.Runs.put(ctx, t.sc, t.id, &next); ok {
		t.stored, t.run.version = next, next.version
	}
	return ok, err
}

// put stores the run. done ends the renewal of the lease.
func (t *task) put(ctx context.Context, done bool) (ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done = t.done || done
	return t.Runs.put(ctx, t.sc, t.id, t.run)
}

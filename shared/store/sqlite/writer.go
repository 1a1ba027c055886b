package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"gateway/shared/store"
)

// The states of an operation: it can be canceled until the writer takes it.
const (
	opQueued uint32 = iota
	opTaken
	opAbandoned
)

// op is one operation in the writer's queue. The writer owns it from the moment when it
// takes it until done is closed.
type op struct {
	state   atomic.Uint32
	done    chan struct{}
	actions []store.Action // all or none; the actions of a batch have no conditions
	sweep   *sweep         // instead of actions
	flush   *flushOp       // instead of actions

	before, after store.Item // of the last update
	err           error
}

// do queues an operation and waits for its response. If the context ends before the writer
// takes the operation, it is not done.
func (s *Store) do(ctx context.Context, o *op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o.done = make(chan struct{})
	select {
	case <-s.quit:
		return store.ErrClosed
	default:
	}
	select {
	case s.queue <- o:
	case <-s.quit:
		return store.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-o.done:
		return o.err
	case <-ctx.Done():
		if o.state.CompareAndSwap(opQueued, opAbandoned) {
			return ctx.Err()
		}
	case <-s.written:
	}
	// The operation was taken, so the response comes soon. Or it was queued after the writer
	// had ended.
	select {
	case <-o.done:
		return o.err
	case <-s.written:
	}
	select {
	case <-o.done:
		return o.err
	default:
		return store.ErrClosed
	}
}

// writer is the goroutine that owns the writing connection.
type writer struct {
	s              *Store
	c              *conn
	group          []*op
	changes        []change
	buf            []byte
	touched        []touched
	pages          int // pages written since the write-ahead log last began again, roughly
	requestedPages int // pages at the last request for a checkpoint
}

type touched struct {
	table int
	key   store.Key
}

func (w *writer) loop() {
	defer close(w.s.written)
	for {
		select {
		case o := <-w.s.queue:
			w.commit(o)
		case <-w.s.quit:
			for {
				select {
				case o := <-w.s.queue:
					w.commit(o)
				default:
					return
				}
			}
		}
	}
}

// commit does first and everything else that is queued in one transaction, and answers.
func (w *writer) commit(first *op) {
	w.group = w.group[:0]
	w.take(first)
	if len(w.s.queue) == 0 {
		// Lets goroutines that are ready queue their operations too: the limits of one request
		// are checked side by side, and a transaction costs more than its operations.
		runtime.Gosched()
	}
	for len(w.group) < maxGroup {
		select {
		case o := <-w.s.queue:
			w.take(o)
			continue
		default:
		}
		break
	}
	if len(w.group) == 0 {
		return
	}
	w.touched = w.touched[:0]
	if err := w.transaction(w.group); err != nil {
		// Each independently, so that one failure does not affect the others.
		w.touched = w.touched[:0]
		for i, o := range w.group {
			mark := len(w.touched)
			if err := w.transaction(w.group[i : i+1]); err != nil {
				o.err, w.touched = err, w.touched[:mark]
			}
		}
	}
	for _, t := range w.touched {
		w.s.notify(t.table, t.key)
	}
	for i, o := range w.group {
		close(o.done)
		w.group[i] = nil
	}
	w.requestCheckpoint()
}

func (w *writer) take(o *op) {
	if o.state.CompareAndSwap(opQueued, opTaken) {
		w.group = append(w.group, o)
	}
}

// transaction does operations in one database transaction. An error comes from the
// database, and then nothing was done; an operation's own rejection is in op.err.
func (w *writer) transaction(group []*op) error {
	if err := w.c.run("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, o := range group {
		o.err = w.apply(o)
		var broken *writeError
		if errors.As(o.err, &broken) {
			w.rollback()
			return broken.cause
		}
	}
	if err := w.c.run("COMMIT"); err != nil {
		w.rollback()
		return err
	}
	return nil
}

// rollback ends the transaction. If SQLite has done so itself, this fails and nothing is
// left to do.
func (w *writer) rollback() { _ = w.c.run("ROLLBACK") }

// notify calls the watchers for one row.
func (s *Store) notify(table int, key store.Key) {
	all := s.watchers.Load()
	if all == nil {
		return
	}
	for _, fn := range *all {
		fn(store.TableNames[table], key)
	}
}

const (
	pageBytes = 4096
	// The janitor moves the write-ahead log into the file each time the log has grown by
	// checkpointPages (4 MB). The log only begins again from its start when all of it has
	// moved. Under steady load only the writer can achieve that: it moves the rest itself at
	// restartPages (32 MB).
	checkpointPages = 1024
	restartPages    = 8 * checkpointPages

	sweepLimit = 256 // rows of one table deleted in one operation
)

// sweep is the deletion of expired rows as an operation of the writer.
type sweep struct {
	table      int
	now, limit int64
	deleted    int64
}

// janitor deletes expired rows and moves the write-ahead log into the file. It
// ends with the store.
func (s *Store) janitor(every time.Duration) {
	defer close(s.tidied)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var c *conn
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	for {
		select {
		case <-s.quit:
			return
		case <-tick.C:
			// Whatever is left, even after an error, is found the next time.
			_ = s.sweep(context.Background())
		case <-s.checkpoint:
			if c == nil {
				var err error
				if c, err = open(s.path, false); err != nil {
					c = nil
					continue // the writer will do it
				}
			}
			s.moving.Lock()
			_ = c.once("PRAGMA wal_checkpoint(PASSIVE)")
			s.moving.Unlock()
		}
	}
}

// sweep deletes all rows past their expiry, some at a time.
func (s *Store) sweep(ctx context.Context) error {
	now := s.clock().Unix()
	for i := range store.TableNames {
		for {
			sw := &sweep{table: i, now: now, limit: sweepLimit}
			if err := s.deleteExpired(ctx, sw); err != nil {
				return err
			}
			if sw.deleted < sweepLimit {
				break
			}
		}
	}
	return nil
}

func (s *Store) deleteExpired(ctx context.Context, sw *sweep) error {
	if s.cache != nil && cachedTable(sw.table) {
		return s.cache.sweep(ctx, sw)
	}
	return s.do(ctx, &op{sweep: sw})
}

// requestCheckpoint is called by the writer after each commit.
func (w *writer) requestCheckpoint() {
	if w.pages-w.requestedPages < checkpointPages {
		return
	}
	w.requestedPages = w.pages
	if w.pages < restartPages {
		select {
		case w.s.checkpoint <- struct{}{}:
		default:
		}
		return
	}
	// If the janitor is fast enough, most of the log has moved already and this is short.
	// If not, the writers wait here. A reader in the middle of the log can prevent the
	// move from finishing; then it is tried again later.
	w.s.moving.Lock()
	defer w.s.moving.Unlock()
	// The row has three numbers: blocked, pages in the log, pages that have moved.
	if n, err := w.c.numbers("PRAGMA wal_checkpoint(PASSIVE)"); err == nil && n[1] == n[2] {
		w.pages, w.requestedPages = 0, 0
	}
}

package sqlite

import (
	"context"
	"time"

	"gateway/shared/store"
)

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

// askCheckpoint is called by the writer after each commit.
func (w *writer) askCheckpoint() {
	if w.pages-w.asked < checkpointPages {
		return
	}
	w.asked = w.pages
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
		w.pages, w.asked = 0, 0
	}
}

package local

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"gateway/shared/fault"
	"gateway/shared/queue"
)

// Options of a File. The zero value is usable.
type Options struct {
	// Durable waits for the disk on every commit. Without it, acknowledged messages survive a
	// kill of the process, but not a loss of power.
	Durable bool
	// Clock is time.Now when nil.
	Clock func() time.Time
}

// File is one SQLite file of queues.
type File struct {
	clock func() time.Time
	db    *sql.DB
	conn  *sql.Conn
	stmts [stmtCount]*sql.Stmt

	ops     chan *op
	closing chan struct{} // closed by Close: ends waiting receives
	done    chan struct{} // closed when the writer has ended

	mu     sync.RWMutex // held shared while an op is handed over
	closed bool

	queuesMu sync.Mutex
	queues   map[string]*Queue
}

// op is one operation for the writer. run is called within a transaction; an error rolls back
// the entire transaction.
type op struct {
	ctx  context.Context
	run  func() error
	done chan error
}

const maxGathered = 512 // operations of one transaction

const schema = `
CREATE TABLE IF NOT EXISTS message (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	queue TEXT NOT NULL,
	grp TEXT NOT NULL,
	state INTEGER NOT NULL,      -- 0 ready, 1 hidden until visible, 2 dead
	turn INTEGER NOT NULL,       -- order among the ready ones
	visible INTEGER NOT NULL,    -- unix milliseconds
	attempts INTEGER NOT NULL,   -- deliveries since it was sent or redriven
	deliveries INTEGER NOT NULL, -- deliveries ever; names the latest receipt
	sent INTEGER NOT NULL        -- unix milliseconds
);
CREATE TABLE IF NOT EXISTS body (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS message_ready ON message (queue, turn) WHERE state = 0;
CREATE INDEX IF NOT EXISTS message_hidden ON message (queue, visible) WHERE state = 1;
CREATE INDEX IF NOT EXISTS message_dead ON message (queue, id) WHERE state = 2;
`

const (
	stmtInsert = iota
	stmtInsertBody
	stmtReveal
	stmtReady
	stmtHide
	stmtNext
	stmtDelete
	stmtDeleteBody
	stmtExtend
	stmtTurns
	stmtDead
	stmtDeadGroup
	stmtRedrive
	stmtDiscard
	stmtDepth
	stmtCount
)

var statements = [stmtCount]string{
	stmtInsert: `INSERT INTO message (queue, grp, state, turn, visible, attempts, deliveries, sent) VALUES (?, ?, ?, ?, ?, 0, 0, ?)`,
	// The body is in a separate table, so that hiding a message does not write it again.
	stmtInsertBody: `INSERT INTO body (id, body) VALUES (?, ?)`,
	stmtReveal: `UPDATE message SET state = CASE WHEN ?2 > 0 AND attempts >= ?2 THEN 2 ELSE 0 END
		WHERE queue = ?1 AND state = 1 AND visible <= ?3`,
	stmtReady: `SELECT m.id, m.grp, m.turn, m.attempts, m.deliveries, b.body FROM message m JOIN body b ON b.id = m.id
		WHERE m.queue = ? AND m.state = 0 ORDER BY m.turn LIMIT ?`,
	stmtHide:       `UPDATE message SET state = 1, visible = ?2, attempts = attempts + 1, deliveries = deliveries + 1 WHERE id = ?1`,
	stmtNext:       `SELECT min(visible) FROM message WHERE queue = ? AND state = 1`,
	stmtDelete:     `DELETE FROM message WHERE id = ? AND queue = ? AND deliveries = ? AND state < 2`,
	stmtDeleteBody: `DELETE FROM body WHERE id = ?`,
	stmtExtend:     `UPDATE message SET visible = ?4 WHERE id = ?1 AND queue = ?2 AND deliveries = ?3 AND state = 1 AND visible > ?5`,
	stmtTurns:      `SELECT grp, min(turn), max(turn) FROM message WHERE queue = ? AND state < 2 GROUP BY grp`,
	stmtDead: `SELECT m.id, m.grp, m.attempts, b.body FROM message m JOIN body b ON b.id = m.id
		WHERE m.queue = ? AND m.state = 2 AND m.id > ? ORDER BY m.id LIMIT ?`,
	stmtDeadGroup: `SELECT grp FROM message WHERE id = ? AND queue = ? AND state = 2`,
	stmtRedrive:   `UPDATE message SET state = 0, attempts = 0, turn = ?2 WHERE id = ?1`,
	stmtDiscard:   `DELETE FROM message WHERE id = ? AND queue = ? AND state = 2`,
	stmtDepth:     `SELECT state, count(*) FROM message WHERE queue = ? GROUP BY state`,
}

// Open opens the file at path, which is made when absent. If another process has the file
// open, it is rejected.
func Open(path string, o Options) (*File, error) {
	f := &File{
		clock:   o.Clock,
		ops:     make(chan *op, maxGathered),
		closing: make(chan struct{}),
		done:    make(chan struct{}),
		queues:  map[string]*Queue{},
	}
	if f.clock == nil {
		f.clock = time.Now
	}
	if err := makeFile(path); err != nil {
		return nil, err
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath()
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("queue/local: %w", err)
	}
	f.db = db
	if err := f.prepare(o.Durable); err != nil {
		f.release()
		return nil, fmt.Errorf("queue/local: open %s: %w", path, err)
	}
	go f.write()
	return f, nil
}

// makeFile makes the file when it is absent. The driver would make it with the process's
// umask, so that every user of the machine might read the messages. An existing file is not
// touched, because closing it would end the locks on it.
func makeFile(path string) error {
	made, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return made.Close()
	case errors.Is(err, fs.ErrExist):
		return nil
	}
	return fmt.Errorf("queue/local: %w", err)
}

func (f *File) prepare(durable bool) error {
	ctx := context.Background()
	var err error
	if f.conn, err = f.db.Conn(ctx); err != nil {
		return err
	}
	synchronous := "NORMAL"
	if durable {
		synchronous = "FULL"
	}
	// The lock is taken before the journal mode is set: SQLite then has the WAL's index in
	// memory, and a second process fails here.
	for _, q := range []string{
		"PRAGMA locking_mode = EXCLUSIVE",
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = " + synchronous,
		"BEGIN EXCLUSIVE",
		schema,
		"COMMIT",
	} {
		if _, err := f.conn.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	for i, text := range statements {
		if f.stmts[i], err = f.conn.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) release() error {
	var errs []error
	for _, s := range f.stmts {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if f.conn != nil {
		errs = append(errs, f.conn.Close())
	}
	return errors.Join(append(errs, f.db.Close())...)
}

// Close answers the operations handed over so far, ends waiting receives with
// queue.ErrClosed and releases the file.
func (f *File) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	close(f.closing)
	close(f.ops)
	f.mu.Unlock()
	<-f.done
	return f.release()
}

// do hands run to the writer and waits for its transaction. If the context ends before the
// transaction, run does not start. After that the response comes within milliseconds and is
// waited for, so that nothing is received and then lost.
func (f *File) do(ctx context.Context, run func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	o := &op{ctx: ctx, run: run, done: make(chan error, 1)}
	f.mu.RLock()
	if f.closed {
		f.mu.RUnlock()
		return queue.ErrClosed
	}
	f.ops <- o // the writer drains until the channel is closed
	f.mu.RUnlock()
	return <-o.done
}

// write is the writer: the only goroutine that uses the connection.
func (f *File) write() {
	defer close(f.done)
	var batch []*op
	for first := range f.ops {
		batch = append(batch[:0], first)
	gather:
		for len(batch) < maxGathered {
			select {
			case o, ok := <-f.ops:
				if !ok {
					break gather
				}
				batch = append(batch, o)
			default:
				break gather
			}
		}
		f.commit(batch)
		clear(batch)
	}
}

// commit does all operations in one transaction and answers them. If one fails, none is
// done, and all get the error.
func (f *File) commit(batch []*op) {
	ctx := context.Background()
	live := batch[:0:len(batch)]
	for _, o := range batch {
		if err := o.ctx.Err(); err != nil {
			o.done <- err
			continue
		}
		live = append(live, o)
	}
	if len(live) == 0 {
		return
	}
	_, err := f.conn.ExecContext(ctx, "BEGIN")
	for _, o := range live {
		if err == nil {
			err = o.run()
		}
	}
	if err == nil {
		_, err = f.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = f.conn.ExecContext(ctx, "ROLLBACK") // it fails if SQLite has rolled back already
		err = fault.Unavailable(fmt.Errorf("queue/local: %w", err))
	}
	for _, o := range live {
		o.done <- err
	}
}

func (f *File) exec(stmt int, args ...any) (sql.Result, error) {
	return f.stmts[stmt].ExecContext(context.Background(), args...)
}

// affected runs a statement and returns the number of rows that it changed.
func (f *File) affected(stmt int, args ...any) (int64, error) {
	res, err := f.exec(stmt, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// each calls scan for every row of a query.
func (f *File) each(stmt int, scan func(rows *sql.Rows) error, args ...any) error {
	rows, err := f.stmts[stmt].QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (f *File) now() int64 { return f.clock().UnixMilli() }

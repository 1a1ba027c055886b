// Package sqlite is the store in one SQLite file, for a single machine and for tests.
//
// One goroutine writes. It takes the queued operations, does them sequentially in one
// database transaction, commits, and then answers all of them, so that many writers share
// one commit. Reads run beside it on read-only connections and see committed data. A
// writer is answered after its commit, so a consistent read and an eventual one are the
// same here.
//
// Rows of the rate and spend tables change with every limited request. Updates change them
// in memory and append the change to a write-ahead log (rowCache); DECISION.md states what
// a crash can lose.
//
// The store rejects what DynamoDB rejects, so that what works here works there too. Only
// rows belong in this package: no index, and no SQL for its callers.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/store"
)

// Options of Open. The zero value of each is its default.
type Options struct {
	// Durable makes each commit wait for the disk. Without it a crash of the process loses
	// nothing. A crash of the machine may lose the last commits, but never the file.
	Durable bool
	// NoMap writes each change of a rate or spend row by write(2) instead of storing it into
	// mapped memory. Without effect if Durable is set.
	NoMap bool
	// SweepEvery is the time between two deletions of expired rows; one minute.
	SweepEvery time.Duration
	// Clock is the time that expiry is measured by; time.Now.
	Clock func() time.Time
	// Readers is the most reads at one time; four.
	Readers int
}

// Watcher is called for each row that was written.
type Watcher func(table store.TableName, key store.Key)

// schemaVersion is stored in the file's user_version; a file with a newer version is
// rejected.
const schemaVersion = 1

const (
	queueLength = 1024 // writes that wait; further callers wait to be queued
	maxGroup    = 256  // operations of one commit
)

// Store is a store.Store in one file.
type Store struct {
	path  string
	clock func() time.Time
	lock  *os.File

	queue   chan *op
	quit    chan struct{} // closed by Close: nothing more is queued
	written chan struct{} // closed when the writer has ended
	tidied  chan struct{} // closed when the janitor has ended
	closing sync.Once
	closed  error

	readers    chan *conn // a nil is a connection that was not made yet
	watchers   atomic.Pointer[[]Watcher]
	watch      sync.Mutex
	checkpoint chan struct{} // requests of the writer to the janitor
	moving     sync.Mutex    // only one may move the log at a time; SQLite rejects a second
	writer     writer
	cache      *rowCache // nil if Durable
	tables     map[store.TableName]*table
}

var _ store.Store = (*Store)(nil)

// Open opens the file at path and makes it and its directory when they are
// missing. It fails with ErrInUse when another process has it open.
func Open(path string, o Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	c, err := openWriter(path, o.Durable)
	if err != nil {
		lock.Close()
		return nil, err
	}
	flushed, err := replayLogs(c, path)
	if err != nil {
		return nil, errors.Join(err, c.close(), lock.Close())
	}
	s := &Store{
		path: path, clock: o.Clock, lock: lock,
		queue:      make(chan *op, queueLength),
		quit:       make(chan struct{}),
		written:    make(chan struct{}),
		tidied:     make(chan struct{}),
		checkpoint: make(chan struct{}, 1),
		tables:     make(map[store.TableName]*table),
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	readers := o.Readers
	if readers <= 0 {
		readers = 4
	}
	s.readers = make(chan *conn, readers)
	for range readers {
		s.readers <- nil
	}
	if !o.Durable {
		s.cache = newRowCache(s, flushed, !o.NoMap)
	}
	for i, name := range store.TableNames {
		s.tables[name] = &table{s: s, name: name, index: i}
		if cachedTable(i) {
			s.tables[name].cache = s.cache
		}
	}
	s.writer = writer{s: s, c: c}
	every := o.SweepEvery
	if every <= 0 {
		every = time.Minute
	}
	go s.writer.loop()
	go s.janitor(every)
	return s, nil
}

// openWriter opens the one connection that writes and brings the file into shape.
func openWriter(path string, durable bool) (*conn, error) {
	// The driver would create the file with the process's umask.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	f.Close()
	c, err := open(path, false)
	if err != nil {
		return nil, err
	}
	if err := prepareFile(c, durable); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func prepareFile(c *conn, durable bool) (err error) {
	pragmas := []string{
		"PRAGMA busy_timeout = 5000",
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = NORMAL",
		"PRAGMA wal_autocheckpoint = 0", // the janitor does that
		"PRAGMA cache_size = -256",      // KiB
	}
	if durable {
		pragmas = append(pragmas, "PRAGMA synchronous = FULL")
	}
	for _, p := range pragmas {
		if err := c.once(p); err != nil {
			return err
		}
	}
	defer func() {
		if err == nil {
			err = createFlushed(c)
		}
	}()
	version, err := c.numbers("PRAGMA user_version")
	switch {
	case err != nil:
		return err
	case version[0] > schemaVersion:
		return fmt.Errorf("store: the data file has version %d, this program knows up to %d", version[0], schemaVersion)
	case version[0] == schemaVersion:
		// Moves what a killed process left in the write-ahead log into the file.
		return c.once("PRAGMA wal_checkpoint(TRUNCATE)")
	}
	return createTables(c)
}

func createTables(c *conn) error {
	if err := c.once("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, name := range store.TableNames {
		for _, sql := range []string{
			`CREATE TABLE IF NOT EXISTS %[1]s (pk BLOB NOT NULL, sk BLOB NOT NULL, item BLOB NOT NULL,
				expires INTEGER NOT NULL, PRIMARY KEY (pk, sk)) %[2]s`,
			`CREATE INDEX IF NOT EXISTS %[1]s_expires ON %[1]s (expires) WHERE expires > 0`,
		} {
			if err := c.once(fmt.Sprintf(sql, name, layout(name))); err != nil {
				return err
			}
		}
	}
	if err := c.once(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return err
	}
	return c.once("COMMIT")
}

// createFlushed creates the row that names the last log with all changes in the database.
func createFlushed(c *conn) error {
	return errors.Join(c.once("CREATE TABLE IF NOT EXISTS flushed (id INTEGER PRIMARY KEY CHECK (id = 0), seq INTEGER NOT NULL)"),
		c.once("INSERT OR IGNORE INTO flushed VALUES (0, 0)"))
}

// replayLogs writes what a killed process had only in its logs and returns the last
// sequence number that was used.
func replayLogs(c *conn, path string) (flushed uint64, err error) {
	n, err := c.numbers("SELECT seq FROM flushed")
	if err != nil {
		return 0, err
	}
	flushed = uint64(n[0])
	f, err := recoverLogs(logPath(path), flushed)
	if err != nil {
		return 0, err
	}
	if f != nil {
		w := writer{c: c}
		if err := w.transaction([]*op{{flush: f}}); err != nil {
			return 0, err
		}
		flushed = f.seq
	}
	return flushed, removeLogs(logPath(path))
}

// layout is how the rows of a table are stored in the file. Small rows are in the tree of
// their keys. In that tree SQLite must read all of a row larger than a page to compare its
// key, so the segments of the usage table are beside a tree that has only keys. The same
// statements work for both layouts.
func layout(name store.TableName) string {
	if name == store.Usage {
		return ""
	}
	return "WITHOUT ROWID"
}

// Table returns one of store.TableNames. The operations on any other name fail with
// store.ErrInvalid.
func (s *Store) Table(name store.TableName) store.Table {
	if t := s.tables[name]; t != nil {
		return t
	}
	return &table{s: s, name: name, index: -1}
}

// Watch calls fn for each row written by Put, PutMany, Update, Delete and Transact: after
// the commit and before the writer is answered, on the writing goroutine. So fn must be
// quick and must not use the store. fn is not called for rows that are deleted because they
// expired: their readers check the expiry.
func (s *Store) Watch(fn func(table store.TableName, key store.Key)) {
	s.watch.Lock()
	defer s.watch.Unlock()
	var all []Watcher
	if old := s.watchers.Load(); old != nil {
		all = append(all, *old...)
	}
	all = append(all, fn)
	s.watchers.Store(&all)
}

// Close finishes the queued operations, waits for running reads and closes the file.
func (s *Store) Close() error {
	s.closing.Do(func() {
		var errs []error
		if s.cache != nil {
			errs = append(errs, s.cache.close())
		}
		close(s.quit)
		<-s.written
		<-s.tidied
		for range cap(s.readers) {
			if c := <-s.readers; c != nil {
				errs = append(errs, c.close())
			}
		}
		// The last connection moves the write-ahead log into the file.
		errs = append(errs, s.writer.c.close(), s.lock.Close())
		s.closed = errors.Join(errs...)
	})
	return s.closed
}

// usable returns the error of a context that has ended or of a store that was closed.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.quit:
		return store.ErrClosed
	default:
		return nil
	}
}

// reader takes a read-only connection; release gives it back.
func (s *Store) reader(ctx context.Context) (*conn, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	var c *conn
	select {
	case c = <-s.readers:
	case <-s.quit:
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c != nil {
		return c, nil
	}
	c, err := openReader(s.path)
	if err != nil {
		s.readers <- nil
		return nil, err
	}
	return c, nil
}

func (s *Store) release(c *conn) { s.readers <- c }

func openReader(path string) (*conn, error) {
	c, err := open(path, true)
	if err != nil {
		return nil, err
	}
	for _, p := range []string{"PRAGMA busy_timeout = 5000", "PRAGMA cache_size = -256"} {
		if err := c.once(p); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// ErrInUse is returned by Open for a file that another process, or this one, has open.
var ErrInUse = errors.New("store: the data file is in use")

// lockFile takes the lock beside the data file and writes the process id into it, for the
// error message of the next process.
func lockFile(path string) (*os.File, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	held, err := tryLock(f)
	if err != nil {
		defer f.Close()
		if !held {
			return nil, fmt.Errorf("store: lock %s: %w", name, err)
		}
		return nil, fmt.Errorf("%w: %s is open in %s; stop it or choose another data directory", ErrInUse, path, holder(f))
	}
	if err := f.Truncate(0); err == nil {
		// The id is only for people; the lock works without it.
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

func holder(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return "process " + pid
	}
	return "another process"
}

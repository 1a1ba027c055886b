package sqlite

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/store"
)

const (
	// flushEvery is the time after which the database follows the first change in memory.
	flushEvery = time.Second
	// maxCarries is the maximum number of flushes in which a frequently changing row is
	// carried to the next log instead of being written to the database. At least half of
	// them are.
	maxCarries = 16
	// maxCachedRows is the number of rows above which those that were not used since the
	// last flush leave memory.
	maxCachedRows = 4096
	// flushRows is the most rows that one transaction writes, so that other writers do not
	// wait for long.
	flushRows = 128
)

// cachedTable reports whether the rows of a table are changed in memory: the tables with
// rows that change with every limited request.
func cachedTable(index int) bool {
	return index >= 0 && (store.TableNames[index] == store.Rate || store.TableNames[index] == store.Spend)
}

// rowCache holds rows of the rate and spend tables in memory, in front of the database. An
// update changes the row in memory and appends the change to a log, which survives the
// process; the database follows in the background, many rows in one transaction. Any other
// write to these tables is done by the database after it has caught up. See DECISION.md.
type rowCache struct {
	s      *Store
	path   string // of the logs, without the number
	mapped bool   // map the logs into memory where the platform supports it

	flushing sync.Mutex // held by flush and exclusive; locked before mu
	pending  *flushOp   // a flush that failed and is repeated first; guarded by flushing

	mu      sync.Mutex
	rows    map[cacheKey]*cachedRow
	changed []*cachedRow // newer than the database
	version uint64       // number of writes that bypassed the memory
	round   uint64       // number of flushes
	seq     uint64       // of the active log
	logs    [2]*writeLog // the active one is logs[seq%2]; nil until the first update
	off     bool         // the log cannot be written: updates go to the database
	closed  bool
	buf     []byte  // of change
	sums    []int64 // the same

	due  chan struct{} // a first change since the last flush
	full chan struct{} // the active log is nearly full
	quit chan struct{}
	done chan struct{} // closed when the flusher has ended; nil until it was started
}

type cacheKey struct {
	table int
	key   store.Key
}

// cachedRow is a row as the last update left it. An item that is shared is never changed,
// only replaced.
type cachedRow struct {
	cacheKey
	item    store.Item // nil when the row does not exist
	shared  bool       // the item was returned to a caller
	size    int        // at least that of the item; zero if it is not known
	expires int64
	number  int    // in the active log; zero if the row has no change there
	used    uint64 // round of the last update
	until   uint64 // round from which the database must follow
}

// flushOp writes rows. seq is the log that they came from, which is not needed any more
// afterwards; zero if further rows of it follow.
type flushOp struct {
	rows []change
	seq  uint64
}

func newRowCache(s *Store, flushed uint64, mapped bool) *rowCache {
	return &rowCache{
		s: s, path: logPath(s.path), mapped: mapped, rows: make(map[cacheKey]*cachedRow), seq: flushed + 1,
		due: make(chan struct{}, 1), full: make(chan struct{}, 1), quit: make(chan struct{}),
	}
}

// Immediate reports whether updates of rate and spend rows are made in memory, so that
// making several of them concurrently saves nothing.
func (s *Store) Immediate() bool { return s.cache != nil }

// get returns the row from memory; cached is false when only the database has it.
func (c *rowCache) get(table int, key store.Key) (item store.Item, expires int64, cached bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	row := c.rows[cacheKey{table, key}]
	if row == nil {
		return nil, 0, false
	}
	row.shared = true
	return row.item, row.expires, true
}

// update changes one row in memory and in the log. ok is false when the caller must use the
// database instead.
func (c *rowCache) update(ctx context.Context, table int, u *store.Update) (before, after store.Item, ok bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, true, err
	}
	for {
		row, err := c.lockRow(ctx, cacheKey{table, u.Key})
		if err != nil || row == nil {
			return nil, nil, err != nil, err
		}
		before, after, err = c.change(row, u)
		if errors.Is(err, errLogBroken) {
			c.off = true
		}
		c.mu.Unlock()
		switch {
		case err == nil:
			c.s.notify(table, u.Key)
			return before, after, true, nil
		case errors.Is(err, errLogFull):
			if err := c.rotate(true); err != nil {
				return nil, nil, true, err
			}
		case !errors.Is(err, errLogBroken):
			return nil, nil, true, err
		}
	}
}

// lockRow locks c.mu and returns the row, read from the database if necessary. It returns
// nil, with c.mu unlocked, if the cache is off; the database is up to date then.
func (c *rowCache) lockRow(ctx context.Context, k cacheKey) (*cachedRow, error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, store.ErrClosed
		}
		if c.off {
			c.mu.Unlock()
			return nil, c.flush()
		}
		if row := c.rows[k]; row != nil {
			return row, nil
		}
		version := c.version
		c.mu.Unlock()
		conn, err := c.s.reader(ctx)
		if err != nil {
			return nil, err
		}
		item, expires, _, err := conn.get(k.table, k.key)
		c.s.release(conn)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		if c.version == version && !c.off && !c.closed {
			if c.rows[k] == nil {
				c.rows[k] = &cachedRow{cacheKey: k, item: item, expires: expires}
			}
			return c.rows[k], nil
		}
		c.mu.Unlock() // the row may have changed while it was read
	}
}

// change applies an update to a locked row, and returns the result of Table.Update. After
// an error nothing has changed.
func (c *rowCache) change(row *cachedRow, u *store.Update) (before, after store.Item, err error) {
	if !store.Satisfies(u.If, row.item) {
		row.shared = true
		return nil, nil, &store.ConditionError{Key: u.Key, Current: row.item}
	}
	c.sums, err = u.Sums(c.sums[:0], row.item)
	if err != nil {
		return nil, nil, err
	}
	inPlace := u.Look != nil && u.InPlace(row.item)
	size := row.size + u.MaxGrowth()
	if !inPlace || row.size == 0 || size > store.MaxItemBytes { // measure it
		if after, err = u.Apply(row.item); err != nil {
			return nil, nil, err
		}
		if after == nil {
			before, after = u.Result(nil, nil)
			return before, after, nil
		}
		inPlace, size = false, after.Size(u.Key)
	}
	expires := row.expires
	if row.item == nil {
		expires = 0
	}
	if e := store.Epoch(u.Expires); e != 0 {
		expires = e
	}
	log, err := c.activeLog()
	if err != nil {
		return nil, nil, err
	}
	first := row.number == 0
	if first {
		if inPlace {
			if after, err = u.ApplyUnsized(row.item); err != nil {
				return nil, nil, err
			}
			inPlace = false
		}
		c.buf = appendFullRecord(c.buf[:0], log.rows+1, row.cacheKey, expires, after)
	} else {
		c.buf = appendDeltaRecord(c.buf[:0], row.number, expires, u, c.sums)
	}
	if err := log.append(c.buf); err != nil {
		return nil, nil, err
	}
	if first {
		log.rows++
		row.number, row.until = log.rows, c.round+maxCarries/2+rand.Uint64N(maxCarries/2)
		if c.changed = append(c.changed, row); len(c.changed) == 1 {
			signal(c.due)
		}
	}
	if log.end > logBytes*7/8 {
		signal(c.full)
	}
	before = row.item
	row.size, row.expires, row.used = size, expires, c.round
	if inPlace {
		if row.shared {
			row.item, row.shared = row.item.Clone(), false
		}
		u.Write(row.item, c.sums)
		u.Look(row.item)
		return nil, nil, nil
	}
	// The new item shares the maps that did not change with the old one.
	row.item, row.shared = after, row.shared || u.Look == nil
	before, after = u.Result(before, after)
	return before, after, nil
}

// activeLog returns the log that changes are appended to. It creates the files and starts
// the flusher on the first call.
func (c *rowCache) activeLog() (*writeLog, error) {
	if l := c.logs[c.seq%2]; l != nil {
		return l, nil
	}
	for i := range c.logs {
		l, err := createLog(c.path, i, c.mapped)
		if err != nil {
			return nil, errors.Join(errLogBroken, err)
		}
		c.logs[i] = l
	}
	l := c.logs[c.seq%2]
	if err := l.begin(c.seq); err != nil {
		return nil, err
	}
	if c.done == nil {
		c.done = make(chan struct{})
		go c.flusher()
	}
	return l, nil
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// flusher lets the database follow. It ends with the store.
func (c *rowCache) flusher() {
	defer close(c.done)
	timer := time.NewTimer(flushEvery)
	defer timer.Stop()
	for {
		select {
		case <-c.quit:
			return
		case <-c.due:
		}
		timer.Reset(flushEvery)
		select {
		case <-c.quit:
			return
		case <-timer.C:
		case <-c.full:
		}
		if c.rotate(true) != nil {
			signal(c.due) // the log has what the database lacks; try again
		}
	}
}

// flush writes all changed rows to the database. After an error the log still has them.
func (c *rowCache) flush() error { return c.rotate(false) }

// flushPartition brings the rows of one partition up to date in the database.
func (c *rowCache) flushPartition(table int, p store.Partition) error {
	c.flushing.Lock()
	err := c.flushPending()
	c.mu.Lock()
	changed := slices.ContainsFunc(c.changed, func(row *cachedRow) bool { return row.table == table && row.key.Partition() == p })
	c.mu.Unlock()
	c.flushing.Unlock()
	if err != nil || !changed {
		return err
	}
	return c.flush()
}

// rotate begins the other log and writes the changed rows to the database. If carry is set,
// rows that keep changing are carried to the new log instead, for a limited time. After an
// error the logs still have all changes.
func (c *rowCache) rotate(carry bool) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	if err := c.flushPending(); err != nil {
		return err
	}
	c.mu.Lock()
	c.collect(carry)
	c.mu.Unlock()
	if err := c.flushPending(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.evict()
	return nil
}

// collect begins the other log and moves the changed rows to c.pending, or to that log. c.mu
// is held. Afterwards the old log is not needed, except for c.pending: the database gets its
// sequence number with the last row of it, and a later log overrides it.
func (c *rowCache) collect(carry bool) {
	if len(c.changed) == 0 {
		return
	}
	c.seq++
	c.round++
	log := c.logs[c.seq%2]
	c.off = log.begin(c.seq) != nil || c.off
	all, op := c.changed, &flushOp{seq: c.seq - 1}
	c.changed = all[:0]
	for _, row := range all {
		if carry && c.carry(log, row) {
			c.changed = append(c.changed, row)
		} else {
			op.add(row)
		}
	}
	if c.off { // the new log cannot be read back
		for _, row := range c.changed {
			op.add(row)
		}
		c.changed = all[:0]
	}
	clear(all[len(c.changed):])
	if len(c.changed) > 0 {
		signal(c.due)
	}
	if len(op.rows) > 0 {
		// Neighbors share pages of the database.
		slices.SortFunc(op.rows, func(a, b change) int {
			return cmp.Or(cmp.Compare(a.table, b.table), strings.Compare(a.key.PK(), b.key.PK()), strings.Compare(a.key.SK(), b.key.SK()))
		})
		c.pending = op
	}
}

// carry writes a row to the new log if it changes frequently and there is space.
func (c *rowCache) carry(log *writeLog, row *cachedRow) bool {
	if c.off || row.used+1 < c.round || row.until <= c.round || log.end > logBytes/2 {
		return false
	}
	c.buf = appendFullRecord(c.buf[:0], log.rows+1, row.cacheKey, row.expires, row.item)
	if err := log.append(c.buf); err != nil {
		c.off = !errors.Is(err, errLogFull)
		return false
	}
	log.rows++
	row.number = log.rows
	return true
}

func (f *flushOp) add(row *cachedRow) {
	f.rows = append(f.rows, change{kind: changePut, table: row.table, key: row.key, item: row.item, expires: row.expires})
	row.number, row.shared = 0, true
}

func (c *rowCache) flushPending() error {
	if c.pending == nil {
		return nil
	}
	// No caller's context: acknowledged data must reach the database.
	for len(c.pending.rows) > flushRows {
		if err := c.s.do(context.Background(), &op{flush: &flushOp{rows: c.pending.rows[:flushRows]}}); err != nil {
			return err
		}
		c.pending.rows = c.pending.rows[flushRows:]
	}
	if err := c.s.do(context.Background(), &op{flush: c.pending}); err != nil {
		return err
	}
	c.pending = nil
	return nil
}

// evict removes rows that were not used recently, if there are many, or all if the cache is
// off. The database has all rows without a change, and nothing is pending. c.mu is held.
func (c *rowCache) evict() {
	if len(c.rows) <= maxCachedRows && !c.off {
		return
	}
	for k, row := range c.rows {
		if row.number == 0 && (c.off || row.used+1 < c.round) {
			delete(c.rows, k)
		}
	}
}

// exclusive brings the database up to date and runs a write that bypasses the memory; no
// update runs meanwhile. forget removes the rows that it may have changed.
func (c *rowCache) exclusive(write func() error, evict func()) error {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	if err := c.flushPending(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.collect(false)
	if err := c.flushPending(); err != nil {
		return err
	}
	err := write()
	c.version++
	evict()
	c.evict()
	return err
}

// transact runs an operation of the database that concerns rows of cached tables.
func (c *rowCache) transact(ctx context.Context, o *op) error {
	return c.exclusive(func() error { return c.s.do(ctx, o) }, func() {
		for i := range o.actions {
			delete(c.rows, cacheKey{tableIndex(o.actions[i].Table), o.actions[i].Target()})
		}
	})
}

// sweep deletes expired rows in the database and in memory.
func (c *rowCache) sweep(ctx context.Context, sw *sweep) error {
	return c.exclusive(func() error { return c.s.do(ctx, &op{sweep: sw}) }, func() {
		for k, row := range c.rows {
			if k.table == sw.table && row.expires != 0 && row.expires <= sw.now {
				delete(c.rows, k)
			}
		}
	})
}

// close writes what the database lacks and removes the logs. The store still runs.
func (c *rowCache) close() error {
	c.mu.Lock()
	c.closed = true
	started := c.done
	c.mu.Unlock()
	if started == nil {
		return nil
	}
	close(c.quit)
	<-started
	err := c.flush()
	for _, l := range c.logs {
		if l != nil {
			err = errors.Join(err, l.close(err == nil))
		}
	}
	return err
}

package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"gateway/shared/blob"
)

// Journal takes events before the last byte of their request goes out: a
// directory of append-only files, one write(2) per event, and before them, where
// the bucket is a Linker, a ring that is mapped into memory. What was written
// survives the death of the process (not of the machine, unless Durable). One
// process owns the directory; it writes through Emit from many goroutines and
// reads through Next from one.
type Journal struct {
	dir string
	o   JournalOptions

	mu     sync.Mutex // guards the file being written
	file   *os.File
	seq    uint64       // number of that file
	size   int64        // its length
	day    int64        // of its newest event, since 1970
	closed bool         //
	live   atomic.Int64 // its length up to the last whole event; for the reader
	fresh  *fresh       // what the reader need not read; nil when it needs the bodies
	ring   *ring        // takes events first; nil: there is none

	sync struct {
		sync.Mutex
		seq  uint64 // everything before this file is on disk,
		size int64  // and so many bytes of it
	}

	wake    chan struct{} // holds one token when something was written
	watched atomic.Pointer[func() bool]
	reader  reader
}

// JournalOptions are the choices of a journal.
type JournalOptions struct {
	// MaxFileBytes starts a new file when the current one reaches it. 64 MiB when 0.
	MaxFileBytes int64
	// Durable waits for the disk: many events share one fsync.
	Durable bool
	// NoRing writes every event to a file, with one write(2), and maps nothing.
	// Rings that earlier processes left are read.
	NoRing bool
	// Bucket takes sealed bodies above MaxInlineBody; without it they stay in the
	// event. A bucket that is also a Linker gets the journal's files as objects,
	// and bodies are written no second time: see Record.Pack.
	Bucket blob.Bucket
	// OnDamage hears of bytes in a file that are no event, or that the system
	// cannot give; reading goes on behind them. nil: they go to slog.
	OnDamage func(file string, offset int64, err error)
}

// Linker is a bucket on the journal's own file system: Link makes a file an
// object without copying it. fs.ErrExist: the key is another object's.
type Linker interface {
	Link(ctx context.Context, key, file string) error
}

// ErrClosed is returned by a closed journal.
var ErrClosed = errors.New("usage: the journal is closed")

const journalSuffix = ".events"

// OpenJournal opens the journal of a directory, making it when it is absent.
// Files of earlier processes are read first; a new one is begun for writing.
func OpenJournal(dir string, o JournalOptions) (*Journal, error) {
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = 64 << 20
	}
	if o.OnDamage == nil {
		o.OnDamage = func(file string, offset int64, err error) {
			slog.Error("the journal is damaged", "file", file, "offset", offset, "error", err.Error())
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("usage: journal: %w", err)
	}
	j := &Journal{dir: dir, o: o, wake: make(chan struct{}, 1)}
	files, err := j.files()
	if err != nil {
		return nil, err
	}
	next := uint64(1)
	if len(files) > 0 {
		next = files[len(files)-1] + 1
	}
	if j.reader.linker, _ = o.Bucket.(Linker); j.reader.linker != nil {
		j.fresh = new(fresh)
	}
	if err := j.reader.open(dir, files, next); err != nil {
		return nil, err
	}
	next = max(next, j.reader.at.seq)
	if err := j.begin(next); err != nil {
		return nil, err
	}
	if err := openRings(j); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// openRings opens the rings of earlier processes for reading and makes one for
// writing.
func openRings(j *Journal) error {
	seqs, err := j.numbered(ringSuffix)
	if err != nil {
		return err
	}
	rd, next := &j.reader, uint64(1)
	for _, seq := range seqs {
		next = seq + 1
		g, err := oldRing(j, seq)
		switch {
		case errors.Is(err, errNoRing):
			path := ringPath(j.dir, seq)
			j.o.OnDamage(path, 0, err)
			err = os.Rename(path, path+".damaged")
		case err == nil && g == nil:
			err = os.Remove(ringPath(j.dir, seq))
		case err == nil:
			rd.rings = append(rd.rings, g)
		}
		if err != nil {
			return fmt.Errorf("usage: journal: %w", err)
		}
	}
	if rd.linker != nil && !j.o.Durable && !j.o.NoRing {
		if j.ring, err = newRing(j, next); err == nil {
			rd.rings = append(rd.rings, j.ring)
		} // else events go to files, as on systems that have no rings
	}
	if len(rd.rings) > 0 {
		rd.ringAt = rd.rings[0].at.acked.Load()
	}
	return nil
}

// hurt returns the function to which a ring reports its damage.
func (j *Journal) hurt(seq uint64) func(offset int64, err error) {
	return func(offset int64, err error) { j.o.OnDamage(ringPath(j.dir, seq), offset, err) }
}

func (j *Journal) path(seq uint64) string {
	return filepath.Join(j.dir, fmt.Sprintf("%016x%s", seq, journalSuffix))
}

// files lists the numbers of the files there are, in order.
func (j *Journal) files() ([]uint64, error) { return j.numbered(journalSuffix) }

func (j *Journal) numbered(suffix string) ([]uint64, error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("usage: journal: %w", err)
	}
	var seqs []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if seq, err := strconv.ParseUint(name, 16, 64); ok && err == nil {
			seqs = append(seqs, seq)
		}
	}
	return seqs, nil // ReadDir sorts by name, the names have one length
}

// begin makes the file that is written to. j.mu is held, or j is not shared yet.
func (j *Journal) begin(seq uint64) error {
	f, err := os.OpenFile(j.path(seq), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("usage: journal: %w", err)
	}
	if j.o.Durable {
		if err := syncDir(j.dir); err != nil {
			_ = f.Close() // nothing was written to it
			return err
		}
	}
	j.file, j.seq, j.size = f, seq, 0
	j.live.Store(pack(seq, 0))
	return nil
}

// syncDir makes the entry of a new file durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("usage: journal: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("usage: journal: %w", err)
	}
	return nil
}

// pack puts a file's number and length into one word that the reader loads
// whole: 24 bits of number, 40 of length.
func pack(seq uint64, size int64) int64 { return int64(seq<<40) | size }

func unpack(seq uint64, live int64) (size int64, current bool) {
	return live & (1<<40 - 1), uint64(live)>>40 == seq&(1<<24-1)
}

// buffers are reused between events; one that grew beyond a body's size is not kept.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }}

// Emit writes the record; when it returns nil, the event survives the process. Where there
// is no room for its bodies, as on a full disk, the record alone may be written; then the
// error says so.
func (j *Journal) Emit(ctx context.Context, r *Record) error {
	err := j.emit(ctx, r)
	if err == nil || len(r.Bodies) == 0 || errors.Is(err, ErrClosed) {
		return err
	}
	bodies := r.Bodies
	r.Bodies = nil
	if j.emit(ctx, r) == nil {
		err = fmt.Errorf("%w; the record is kept without its bodies", err)
	}
	r.Bodies = bodies
	return err
}

func (j *Journal) emit(ctx context.Context, r *Record) error {
	if err := spill(ctx, j.o.Bucket, r); err != nil {
		return err
	}
	buf := buffers.Get().(*[]byte)
	e := entry{bodies: len(r.Bodies), day: r.Start.Unix() / secondsOfDay}
	if j.ring != nil {
		bodies := r.Bodies
		r.Bodies = nil
		*buf = r.AppendEvent((*buf)[:0])
		r.Bodies = bodies
		if j.ring.put(*buf, bodies, e.day) {
			buffers.Put(buf)
			j.wakeReader()
			return nil
		}
	}
	if e.bodies >= gatherFrom {
		e.apart = r.Bodies
		e.event, e.cut = r.appendAround((*buf)[:0])
	} else {
		e.event = r.AppendEvent((*buf)[:0])
		e.cut = bodiesAt(r.Bodies) + e.bodies
	}
	seq, size, err := j.write(&e)
	if *buf = e.event; cap(e.event) <= 2*MaxInlineBody {
		buffers.Put(buf)
	}
	if err != nil {
		return err
	}
	j.wakeReader()
	if j.o.Durable {
		return j.flush(seq, size)
	}
	return nil
}

const secondsOfDay = 24 * 60 * 60

// gatherFrom is the size of bodies that are written from where they are, instead
// of being copied into their event.
const gatherFrom = 16 << 10

// entry is an event to be written.
type entry struct {
	event  []byte
	cut    int    // where in event the part behind the bodies begins
	bodies int    // their length
	apart  []byte // the bodies, when they are not in event but belong at cut
	day    int64  // since 1970
}

// write appends one event and gives the file and its length behind the event.
// Events of a later day begin a new file: bodies that stay where the journal wrote
// them are deleted with their file.
func (j *Journal) write(e *entry) (seq uint64, size int64, err error) {
	length := len(e.event) + len(e.apart)
	if length > MaxEvent {
		return 0, 0, fmt.Errorf("usage: an event of %d bytes is over the limit of %d", length, MaxEvent)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return 0, 0, ErrClosed
	}
	if j.size > 0 && (j.size+int64(length) > j.o.MaxFileBytes || e.day > j.day) {
		if err := j.rotate(); err != nil {
			return 0, 0, err
		}
	}
	j.day = max(j.day, e.day)
	var n int
	if e.apart == nil {
		n, err = j.file.Write(e.event)
	} else {
		n, err = gather(j.file, e.event[:e.cut], e.apart, e.event[e.cut:])
	}
	if err != nil {
		// A part of an event must not stand before the next one.
		if n > 0 && j.file.Truncate(j.size) != nil {
			err = errors.Join(err, j.rotate())
		}
		return 0, 0, fmt.Errorf("usage: journal: %w", err)
	}
	if j.fresh != nil {
		j.fresh.add(position{j.seq, j.size}, e, length)
	}
	j.size += int64(n)
	j.live.Store(pack(j.seq, j.size))
	return j.seq, j.size, nil
}

// rotate ends the current file and begins the next. j.mu is held.
func (j *Journal) rotate() error {
	old := j.file
	if j.o.Durable {
		if err := old.Sync(); err != nil {
			return fmt.Errorf("usage: journal: %w", err)
		}
	}
	if err := j.begin(j.seq + 1); err != nil {
		return err
	}
	return old.Close()
}

// flush returns when the file is on disk up to size. Whoever gets the lock
// first syncs for all that wrote until then.
func (j *Journal) flush(seq uint64, size int64) error {
	j.sync.Lock()
	defer j.sync.Unlock()
	if j.sync.seq > seq || j.sync.seq == seq && j.sync.size >= size {
		return nil
	}
	j.mu.Lock()
	file, current, upTo := j.file, j.seq, j.size
	j.mu.Unlock()
	if current == seq {
		if err := file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
			return fmt.Errorf("usage: journal: %w", err)
		}
	} else {
		upTo = 0 // rotate synced every file before the current one
	}
	j.sync.seq, j.sync.size = current, upTo
	return nil
}

// Close ends writing. What was not read stays for the next process.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	err := j.file.Sync()
	err = errors.Join(err, j.file.Close())
	if j.ring != nil {
		err = errors.Join(err, j.ring.stop())
	}
	j.wakeReader()
	return errors.Join(err, j.reader.close())
}

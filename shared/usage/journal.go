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

// Journal stores events before the last byte of their response is sent: a directory of
// append-only files with one write(2) per event and, if the bucket is a Linker, a
// memory-mapped ring in front of them. Written events survive the death of the process
// (of the machine only if Durable). One process owns the directory; many goroutines write
// through Emit and one reads through Next.
type Journal struct {
	dir string
	o   JournalOptions

	mu     sync.Mutex // guards the file being written
	file   *os.File
	seq    uint64        // number of the current file
	size   int64         // its length
	day    int64         // day of its newest event, since 1970
	closed bool          //
	live   atomic.Int64  // its length up to the last complete event; for the reader
	recent *recentEvents // events that need not be read from the file; nil if the reader needs the bodies
	ring   *ring         // receives events first; nil if there is none

	sync struct {
		sync.Mutex
		seq  uint64 // everything before this file is on disk,
		size int64  // and this many bytes of it
	}

	wake    chan struct{} // holds one token after a write
	watched atomic.Pointer[func() bool]
	reader  reader
}

// JournalOptions configures a journal.
type JournalOptions struct {
	// MaxFileBytes is the size at which a new file is started; 64 MiB if zero.
	MaxFileBytes int64
	// Durable waits for the disk; many events share one fsync.
	Durable bool
	// NoRing writes every event to a file, with one write(2), and maps nothing. Rings of
	// earlier processes are still read.
	NoRing bool
	// Bucket stores sealed bodies above MaxInlineBody; without it they stay in the event.
	// If the bucket is also a Linker, the journal's files become its objects and bodies
	// are written only once: see Record.Pack.
	Bucket blob.Bucket
	// OnDamage is called for bytes of a file that are not an event or cannot be read;
	// reading continues after them. If nil, damage is logged with slog.
	OnDamage func(file string, offset int64, err error)
}

// Linker is a bucket on the journal's file system: Link makes a file an object without a
// copy. It returns fs.ErrExist if the key belongs to another object.
type Linker interface {
	Link(ctx context.Context, key, file string) error
}

// ErrClosed is returned by methods of a closed journal.
var ErrClosed = errors.New("usage: the journal is closed")

const journalSuffix = ".events"

// OpenJournal opens the journal in a directory, which it creates if necessary. It reads
// files of earlier processes first and starts a new one for writing.
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
		j.recent = new(recentEvents)
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

// openRings opens the rings of earlier processes for reading and creates one for writing.
func openRings(j *Journal) error {
	seqs, err := j.numbered(ringSuffix)
	if err != nil {
		return err
	}
	rd, next := &j.reader, uint64(1)
	for _, seq := range seqs {
		next = seq + 1
		g, err := reopenRing(j, seq)
		switch {
		case errors.Is(err, errRingDamaged):
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
		} // otherwise events go to files, as on systems without rings
	}
	if len(rd.rings) > 0 {
		rd.ringAt = rd.rings[0].offsets.acked.Load()
	}
	return nil
}

// damageReporter returns the function to which a ring reports damage.
func (j *Journal) damageReporter(seq uint64) func(offset int64, err error) {
	return func(offset int64, err error) { j.o.OnDamage(ringPath(j.dir, seq), offset, err) }
}

func (j *Journal) path(seq uint64) string {
	return filepath.Join(j.dir, fmt.Sprintf("%016x%s", seq, journalSuffix))
}

// files lists the numbers of the existing files in order.
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
	return seqs, nil // ReadDir sorts by name, and names have the same length
}

// begin creates the current file. j.mu is held, or j is not shared yet.
func (j *Journal) begin(seq uint64) error {
	f, err := os.OpenFile(j.path(seq), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("usage: journal: %w", err)
	}
	if j.o.Durable {
		if err := syncDir(j.dir); err != nil {
			_ = f.Close() // empty
			return err
		}
	}
	j.file, j.seq, j.size = f, seq, 0
	j.live.Store(pack(seq, 0))
	return nil
}

// syncDir makes the directory entry of a new file durable.
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

// pack combines a file's number (24 bits) and length (40 bits) in one word, which the
// reader loads atomically.
func pack(seq uint64, size int64) int64 { return int64(seq<<40) | size }

func unpack(seq uint64, live int64) (size int64, current bool) {
	return live & (1<<40 - 1), uint64(live)>>40 == seq&(1<<24-1)
}

// buffers are reused between events; one that grew beyond a body's size is dropped.
var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 8<<10); return &b }}

// Emit writes the record; if it returns nil, the event survives the process. If there is
// no space for its bodies, as on a full disk, the record may be written without them; the
// error then states that.
func (j *Journal) Emit(ctx context.Context, r *Record) error {
	err := j.emit(ctx, r)
	if err == nil || len(r.Bodies) == 0 || errors.Is(err, ErrClosed) {
		return err
	}
	bodies := r.Bodies
	r.Bodies = nil
	if j.emit(ctx, r) == nil {
		err = fmt.Errorf("%w; the record is stored without its bodies", err)
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

// gatherFrom is the size from which bodies are written from their own memory instead of
// being copied into the event.
const gatherFrom = 16 << 10

// entry is an event to write.
type entry struct {
	event  []byte
	cut    int    // offset in event of the part after the bodies
	bodies int    // their length
	apart  []byte // the bodies if they are not in event but belong at cut
	day    int64  // since 1970
}

// write appends one event and returns the file and its length after the event. Events of
// a later day start a new file, because stored bodies are deleted with their file.
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
		// A partial event must not precede the next one.
		if n > 0 && j.file.Truncate(j.size) != nil {
			err = errors.Join(err, j.rotate())
		}
		return 0, 0, fmt.Errorf("usage: journal: %w", err)
	}
	if j.recent != nil {
		j.recent.add(position{j.seq, j.size}, e, length)
	}
	j.size += int64(n)
	j.live.Store(pack(j.seq, j.size))
	return j.seq, j.size, nil
}

// rotate closes the current file and starts the next. j.mu is held.
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

// flush returns when the file is on disk up to size. The first to get the lock syncs for
// all writes until then.
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
		upTo = 0 // rotate synced all earlier files
	}
	j.sync.seq, j.sync.size = current, upTo
	return nil
}

// Close stops writing. Unread events remain for the next process.
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

package usage

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// reader is the reading side of a journal: a position in memory, which is ahead, and the
// acknowledged one on disk.
type reader struct {
	mu    sync.Mutex
	dir   string
	at    position
	acked position
	old   []uint64 // files of earlier processes with unread events
	file  *os.File // open for reading: file at.seq
	buf   []byte
	saved *os.File // the durable position; nil until it is first written
	line  []byte

	// Data already read is evicted from the page cache: dropped is the end of the evicted
	// range, flushed the end of the range that is being written to disk.
	dropped, flushed int64

	rings  []*ring // of earlier processes, then the current one
	ring   int     // index of the ring being read
	ringAt uint64  // offset in it
	taken  int64   // number of events taken from the current ring
	key    string  // of the last pack

	linker    Linker // nil if bodies are copied into the records
	pack      string // key of the file at.seq in the bucket; "" if not linked yet
	records   []Record
	bodyBytes int // size of the bodies in records
}

// position is a file and an offset in it.
type position struct {
	seq uint64
	off int64
}

// mark is the end of a batch: a position in the files and one in the rings.
type mark struct {
	position
	ring   *ring
	ringAt uint64
}

const positionFile = "position"

// open reads the durable position and deletes earlier files.
func (rd *reader) open(dir string, files []uint64, next uint64) error {
	rd.dir = dir
	text, err := os.ReadFile(filepath.Join(dir, positionFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("usage: journal: %w", err)
	}
	if _, err := fmt.Sscanf(string(text), "%x %d", &rd.at.seq, &rd.at.off); err != nil {
		rd.at = position{} // no valid position: read everything again, ingestion skips duplicates
	}
	for _, seq := range files {
		if seq >= rd.at.seq {
			rd.old = append(rd.old, seq)
		}
	}
	switch {
	case len(rd.old) > 0 && rd.old[0] != rd.at.seq:
		rd.at = position{seq: rd.old[0]}
	case len(rd.old) == 0:
		rd.at = position{seq: max(next, rd.at.seq+1)}
	}
	rd.acked = rd.at
	for _, seq := range files {
		if seq < rd.at.seq {
			_ = os.Remove(filepath.Join(dir, fmt.Sprintf("%016x%s", seq, journalSuffix))) // retried at the next start
		}
	}
	return nil
}

func (rd *reader) close() error {
	rd.mu.Lock()
	defer rd.mu.Unlock()
	var err error
	for _, f := range []**os.File{&rd.file, &rd.saved} {
		if *f != nil {
			err = errors.Join(err, (*f).Close())
			*f = nil
		}
	}
	for _, g := range rd.rings {
		err = errors.Join(err, g.close())
	}
	rd.rings = nil
	return err
}

// readChunk is the size of one read.
const readChunk = 256 << 10

// record appends an empty record to the batch; decoding reuses its memory.
func (rd *reader) record() *Record {
	if n := len(rd.records); n < cap(rd.records) {
		rd.records = rd.records[:n+1]
	} else {
		rd.records = append(rd.records, Record{})
	}
	return &rd.records[len(rd.records)-1]
}

// reuse clears the record but keeps the memory of its attempts and metadata for decoding.
func (r *Record) reuse() {
	clear(r.Attempts)
	clear(r.Metadata)
	*r = Record{Attempts: r.Attempts[:0], Metadata: r.Metadata}
}

// full reports whether the batch is complete.
func (rd *reader) full(max int) bool { return len(rd.records) >= max || rd.bodyBytes >= maxBatchBytes }

// read collects available records, up to max in total.
func (j *Journal) read(max int) error {
	rd := &j.reader
	if err := takeFromRings(j, max); err != nil {
		return err
	}
	for !rd.full(max) {
		end, current, err := j.openCurrent()
		if err != nil {
			return err
		}
		if rd.at.off < end {
			if takeRecent(j) {
				continue
			}
			if err := j.readChunk(max, end); err != nil {
				return err
			}
			continue
		}
		if current {
			return nil
		}
		if !j.advance() {
			return nil
		}
	}
	return nil
}

// openCurrent opens the file of the position and returns its readable length.
func (j *Journal) openCurrent() (end int64, current bool, err error) {
	rd := &j.reader
	if rd.file == nil {
		f, err := os.Open(j.path(rd.at.seq))
		if errors.Is(err, os.ErrNotExist) {
			return 0, false, nil // as if empty
		}
		if err != nil {
			return 0, false, fmt.Errorf("usage: journal: %w", err)
		}
		rd.file = f
	}
	if end, current = unpack(rd.at.seq, j.live.Load()); current {
		return end, true, nil
	}
	info, err := rd.file.Stat()
	if err != nil {
		return 0, false, fmt.Errorf("usage: journal: %w", err)
	}
	return info.Size(), false, nil
}

// advance moves to the next file; false if there is none yet.
func (j *Journal) advance() bool {
	rd := &j.reader
	if len(rd.old) > 0 && rd.old[0] == rd.at.seq {
		rd.old = rd.old[1:]
	}
	next := rd.at.seq + 1
	if len(rd.old) > 0 {
		next = rd.old[0]
	} else {
		j.mu.Lock()
		writing := j.seq
		j.mu.Unlock()
		if next > writing {
			return false
		}
	}
	if rd.file != nil {
		dropCache(rd.file, rd.dropped, rd.at.off-rd.dropped)
		_ = rd.file.Close() // opened for reading only
		rd.file = nil
	}
	rd.at, rd.pack = position{seq: next}, ""
	rd.dropped, rd.flushed = 0, 0
	return true
}

// cacheStep is how much of a file is read before its page cache is released.
const cacheStep = 1 << 20

// dropPageCache evicts the pages before the reader's position. Otherwise a log of bodies
// would need a new page for every page written, which is most of the cost of writing and
// counts as memory of the container. Each range is passed twice: the first call starts
// its write to disk, the second, when it is written, frees its memory.
func (rd *reader) dropPageCache() {
	if rd.file == nil || rd.at.off-rd.flushed < cacheStep {
		return
	}
	dropCache(rd.file, rd.dropped, rd.at.off-rd.dropped)
	rd.dropped, rd.flushed = rd.flushed, rd.at.off
}

// readChunk decodes the events of one read. In a file of an earlier process, the bytes
// after the last complete event are a write cut off by the death of the process: no
// client received its success.
func (j *Journal) readChunk(max int, end int64) error {
	rd := &j.reader
	want := min(end-rd.at.off, readChunk)
	for {
		if int64(cap(rd.buf)) < want {
			rd.buf = make([]byte, want)
		}
		b := rd.buf[:want]
		if _, err := rd.file.ReadAt(b, rd.at.off); err != nil && err != io.EOF {
			return fmt.Errorf("usage: journal: %w", err)
		}
		used, need := j.decode(b, max)
		rd.at.off += int64(used)
		if cap(rd.buf) > readChunk {
			rd.buf = nil // a large event is rare
		}
		if used > 0 || rd.full(max) {
			return nil
		}
		if int64(need) <= want || rd.at.off+int64(need) > end {
			return skipTail(j, end)
		}
		want = int64(need) // one event larger than a chunk
	}
}

// skipTail moves past an event that extends beyond the file: to the next valid event if
// its length was damaged, otherwise to the end.
func skipTail(j *Journal, end int64) error {
	rd := &j.reader
	b := make([]byte, min(end-rd.at.off, MaxEvent))
	if _, err := rd.file.ReadAt(b, rd.at.off); err != nil && err != io.EOF {
		return fmt.Errorf("usage: journal: %w", err)
	}
	n := nextEvent(b)
	if n < len(b) {
		damage(j, 0, ErrDamaged)
	}
	rd.at.off += int64(n)
	return nil
}

// decode decodes complete events from b. need is the length, if known, of a last event
// that is incomplete.
func (j *Journal) decode(b []byte, max int) (used, need int) {
	rd := &j.reader
	for len(b) > used && !rd.full(max) {
		r := rd.record()
		n, bodies, err := r.decodeBare(b[used:])
		if err != nil {
			*r = Record{}
			rd.records = rd.records[:len(rd.records)-1]
		}
		switch {
		case err == nil:
			locateBodies(j, r, bodies, rd.at.off+int64(used+bodiesAt(bodies)))
		case errors.Is(err, ErrTruncated):
			if n == 0 {
				n = eventHead
			}
			return used, n
		case n > 0: // one damaged event between valid ones
			damage(j, int64(used), err)
		default: // no event starts here: search for the next one
			if used > 0 {
				return used, 0 // retry with a full chunk from here
			}
			damage(j, 0, err)
			n = nextEvent(b)
		}
		used += n
	}
	return used, 0
}

// locateBodies records where the bodies are: in the journal's file, which becomes an
// object of the bucket, or else in memory. off is their offset.
func locateBodies(j *Journal, r *Record, bodies []byte, off int64) {
	if len(bodies) == 0 {
		return
	}
	if j.linkCurrent() {
		r.Pack = Pack{Key: j.reader.pack, Offset: off, Length: int64(len(bodies))}
		return
	}
	r.Bodies = append([]byte(nil), bodies...)
	j.reader.bodyBytes += len(bodies)
}

// bodiesAt returns the offset of the bodies in their event: they are first in the
// payload, after their length.
func bodiesAt(bodies []byte) int {
	var length [binary.MaxVarintLen64]byte
	return eventHead + binary.PutUvarint(length[:], uint64(len(bodies)))
}

// linkCurrent makes the file of the position an object of the bucket, once. A new
// directory restarts the file numbers, so a key may exist already.
func (j *Journal) linkCurrent() bool {
	rd := &j.reader
	if rd.pack != "" || rd.linker == nil {
		return rd.pack != ""
	}
	var err error
	if rd.pack, err = j.link(j.path(rd.at.seq)); err != nil {
		rd.linker = nil // the file system has no hard links: copy bodies
	}
	return err == nil
}

// link makes a file of the journal an object of the bucket.
func (j *Journal) link(file string) (key string, err error) {
	linker, name := j.o.Bucket.(Linker), filepath.Base(file)
	name = strings.TrimSuffix(name, filepath.Ext(name))
	for n := 0; ; n++ {
		key = fmt.Sprintf("bodies/journal/%s/%s-%d", time.Now().UTC().Format("2006/01/02"), name, n)
		if err = linker.Link(context.Background(), key, file); err == nil {
			return key, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
}

func damage(j *Journal, off int64, err error) {
	j.o.OnDamage(j.path(j.reader.at.seq), j.reader.at.off+off, err)
}

// nextEvent returns the offset of the next valid event after the first byte, or the
// length of b.
func nextEvent(b []byte) int {
	for i := 1; i < len(b); i++ {
		if b[i] != eventMagic {
			continue
		}
		var r Record
		if _, err := r.decode(b[i:]); err == nil {
			return i
		}
	}
	return len(b)
}

// savePosition writes the durable position with one fixed-size write: after a crash it is
// the old or the new one.
func (rd *reader) savePosition(p position) error {
	if rd.saved == nil {
		f, err := os.OpenFile(filepath.Join(rd.dir, positionFile), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		rd.saved = f
	}
	rd.line = fmt.Appendf(rd.line[:0], "%016x %020d\n", p.seq, p.off)
	_, err := rd.saved.WriteAt(rd.line, 0)
	return err
}

// acknowledge makes the position durable and deletes earlier files.
func (j *Journal) acknowledge(end mark) error {
	rd := &j.reader
	rd.mu.Lock()
	defer rd.mu.Unlock()
	if err := rd.acknowledgeRings(end.ring, end.ringAt); err != nil {
		return err
	}
	if end.seq < rd.acked.seq || end.seq == rd.acked.seq && end.off <= rd.acked.off {
		return nil
	}
	if err := rd.savePosition(end.position); err != nil {
		return fmt.Errorf("usage: journal: %w", err)
	}
	from := rd.acked.seq
	rd.acked = end.position
	for seq := from; seq < end.seq; seq++ {
		if err := os.Remove(j.path(seq)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("usage: journal: %w", err)
		}
	}
	return nil
}

package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

// ring buffers events for the worker and bodies for the disk: a fixed-size memory-mapped
// file that is written circularly. A store needs no system call and no new page, and
// outlives the process as a write does.
//
//	head    one page: ringHead
//	events  slots, consecutive; free again when they are acknowledged
//	bodies  the end of the stream of sealed bodies; free again when it is on disk
//
// Offsets into the two areas only grow; the location in the area is the offset modulo the
// area's size. A pack is a section of the body stream as a file and as an object of the
// bucket: the location of bodies is known before they are written, and they are written
// to disk once, many at a time, bypassing the page cache. The reader flushes bodies
// before it takes their events.
type ring struct {
	dir      string
	seq      uint64
	file     *os.File
	mem      []byte
	head     *ringHead
	offsets  ringOffsets                               // copy of the head's offsets: the head's page may be lost
	link     func(file string) (key string, err error) // makes a pack an object
	onDamage func(offset int64, err error)             // called once when a page of the file is lost
	size     int64                                     // of a pack

	mu     sync.Mutex
	closed bool
	failed atomic.Bool  // a page is lost, or packs cannot be created: no more events are accepted
	packs  [2]*packFile // the second to last pack unless it is on disk; the last one
	count  atomic.Int64 // events written by this process

	flushing sync.Mutex    // held while bodies are written to disk
	wake     chan struct{} // signals the flusher that flushStep bytes are waiting
	done     chan struct{} // closed when the flusher has ended
}

// ringHead is the state that the next process needs.
type ringHead struct {
	magic atomic.Uint64
	ringOffsets
	packs [2]struct{ number, base atomic.Uint64 }
}

// ringOffsets are the ends of the written and of the freed ranges. They are stored in the
// head first, so that another process never finds them ahead of it.
type ringOffsets struct {
	events  atomic.Uint64 // end of the slots
	acked   atomic.Uint64 // earlier slots were acknowledged
	bodies  atomic.Uint64 // end of the stream of bodies
	flushed atomic.Uint64 // earlier bodies are in their packs
}

// valid reports whether the head can be that of a ring.
func (h *ringHead) valid() bool {
	events, acked, bodies, flushed := h.events.Load(), h.acked.Load(), h.bodies.Load(), h.flushed.Load()
	return h.magic.Load() == ringMagic && (events|acked)%8 == 0 && flushed%ringPage == 0 &&
		events-acked <= ringEvents && bodies-flushed <= ringBodies
}

const (
	ringMagic  = 0xA7_52_49_4E_47_00_00_01
	ringPage   = 4 << 10
	ringEvents = 1<<20 - ringPage
	ringBodies = 2560 << 10
	ringBytes  = ringPage + ringEvents + ringBodies
	// flushStep is the size of a write to disk: direct writes have a high fixed cost.
	flushStep = 1 << 20

	ringSuffix = ".ring"
	packSuffix = ".pack"
)

// slotHead is the size of a slot's head: the slot's length (a multiple of 8), the event's
// length (0 for padding at the end of the area), the offset of the bodies in their pack,
// their length, and the length of the pack's key. Key and event follow.
const slotHead = 4 + 4 + 8 + 4 + 4

func ringPath(dir string, seq uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%016x%s", seq, ringSuffix))
}

// newRing creates the ring that the process of a journal writes to.
func newRing(j *Journal, seq uint64) (*ring, error) {
	g := &ring{dir: j.dir, seq: seq, link: j.link, onDamage: j.damageReporter(seq), size: j.o.MaxFileBytes, wake: make(chan struct{}, 1), done: make(chan struct{})}
	f, err := os.OpenFile(ringPath(j.dir, seq), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("usage: journal: %w", err)
	}
	if g.mem, err = mapShared(f, ringBytes, true); err != nil {
		_ = f.Close()
		_ = os.Remove(f.Name())
		return nil, fmt.Errorf("usage: journal: %w", err)
	}
	g.file, g.head = f, (*ringHead)(unsafe.Pointer(&g.mem[0]))
	g.head.magic.Store(ringMagic)
	go g.flushSteps()
	return g, nil
}

// errRingDamaged is returned for a file that is not a complete ring.
var errRingDamaged = errors.New("usage: the ring is damaged")

// reopenRing opens the ring of an earlier process for reading, with its bodies on disk.
// It returns nil if that process died before it used the ring.
func reopenRing(j *Journal, seq uint64) (*ring, error) {
	g := &ring{dir: j.dir, seq: seq, onDamage: j.damageReporter(seq), closed: true}
	f, err := os.OpenFile(ringPath(j.dir, seq), os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("usage: journal: %w", err)
	}
	var magic [8]byte // written last when a ring is created
	_, err = f.ReadAt(magic[:], 0)
	if err == io.EOF || err == nil && magic == [8]byte{} {
		return nil, f.Close()
	}
	info, failed := f.Stat()
	if failed == nil && (err != nil || info.Size() != ringBytes) {
		err = errors.Join(errRingDamaged, err)
	}
	if err = errors.Join(err, failed); err == nil {
		g.mem, err = mapShared(f, ringBytes, false)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	g.file, g.head = f, (*ringHead)(unsafe.Pointer(&g.mem[0]))
	bases, err := g.readHead()
	if err != nil {
		return nil, errors.Join(err, g.unmap())
	}
	for i, p := range bases {
		if p.number > 0 {
			if g.packs[i], err = openPack(g.packPath(p.number), 0, p.number, p.base); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, errors.Join(err, g.close())
			}
		}
	}
	if err := g.flush(true); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// readHead reads the head that an earlier process wrote.
func (g *ring) readHead() (packs [2]struct{ number, base uint64 }, err error) {
	defer g.recoverLostPage(&err, debug.SetPanicOnFault(true))
	h := g.head
	if !h.valid() {
		return packs, errRingDamaged
	}
	g.offsets.events.Store(h.events.Load())
	g.offsets.acked.Store(h.acked.Load())
	g.offsets.bodies.Store(h.bodies.Load())
	g.offsets.flushed.Store(h.flushed.Load())
	for i := range packs {
		packs[i].number, packs[i].base = h.packs[i].number.Load(), h.packs[i].base.Load()
	}
	return packs, nil
}

func (g *ring) events() []byte { return g.mem[ringPage : ringPage+ringEvents] }
func (g *ring) bodies() []byte { return g.mem[ringPage+ringEvents:] }

// put stores an event without its bodies, and the bodies; false if there is no space.
func (g *ring) put(event, bodies []byte, day int64) bool {
	stored, wait := g.tryPut(event, bodies, day)
	if wait && g.flush(false) == nil {
		stored, _ = g.tryPut(event, bodies, day)
	}
	return stored
}

// tryPut tries to store once; wait reports that it may succeed after bodies are written
// to disk. An event with lost pages was not stored.
func (g *ring) tryPut(event, bodies []byte, day int64) (stored, wait bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.failed.Load() {
		return false, false
	}
	defer g.recoverLostPage(nil, debug.SetPanicOnFault(true))
	var key string
	at := g.offsets.bodies.Load()
	if len(bodies) > 0 {
		if at+uint64(len(bodies))+ringPage-g.offsets.flushed.Load() > ringBodies {
			return false, true
		}
		if p := g.packs[1]; p == nil || day > p.day || int64(at-p.base)+int64(len(bodies)) > g.size && at > p.base {
			if g.packs[0] != nil {
				return false, true
			}
			var err error
			if at, err = g.nextPack(at, day); err != nil {
				return false, false
			}
		}
		key = g.packs[1].key
	}
	room := g.reserve(slotHead + len(key) + len(event))
	if room == nil {
		return false, false
	}
	if len(bodies) > 0 {
		area, from := g.bodies(), at%ringBodies
		copy(area, bodies[copy(area[from:], bodies):])
		g.head.bodies.Store(at + uint64(len(bodies)))
		g.offsets.bodies.Store(at + uint64(len(bodies)))
		at -= g.packs[1].base
	}
	binary.LittleEndian.PutUint32(room[4:], uint32(len(event)))
	binary.LittleEndian.PutUint64(room[8:], at)
	binary.LittleEndian.PutUint32(room[16:], uint32(len(bodies)))
	binary.LittleEndian.PutUint32(room[20:], uint32(len(key)))
	copy(room[slotHead+copy(room[slotHead:], key):], event)
	g.advanceEvents(len(room)) // this publishes the event
	g.count.Add(1)
	if g.offsets.bodies.Load()-g.offsets.flushed.Load() >= flushStep {
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
	return true, false
}

// advanceEvents moves the end of the slots. g.mu is held.
func (g *ring) advanceEvents(n int) {
	end := g.offsets.events.Load() + uint64(n)
	g.head.events.Store(end)
	g.offsets.events.Store(end)
}

// reserve returns the next slot with n bytes and sets its length; nil if there is no
// space. A slot is contiguous: too small a space at the end of the area becomes padding.
func (g *ring) reserve(n int) []byte {
	n = (n + 7) &^ 7
	end := g.offsets.events.Load()
	at, free := int(end%ringEvents), ringEvents-int(end-g.offsets.acked.Load())
	if rest := ringEvents - at; rest < n {
		if free < rest+n {
			return nil
		}
		binary.LittleEndian.PutUint64(g.events()[at:], uint64(rest)) // padding
		g.advanceEvents(rest)
		at = 0
	} else if free < n {
		return nil
	}
	slot := g.events()[at : at+n]
	binary.LittleEndian.PutUint32(slot, uint32(n))
	return slot
}

// slot is an event on the ring and the location of its bodies.
type slot struct {
	event          []byte
	key            []byte // of the pack
	offset, length int64
}

// slot returns the slot at an offset and the offset after it; false if it is damaged.
// Padding is a slot without an event.
func (g *ring) slot(at uint64) (s slot, next uint64, ok bool) {
	b := g.events()[at%ringEvents:]
	n := binary.LittleEndian.Uint32(b)
	if n < 8 || n%8 != 0 || uint64(n) > uint64(len(b)) || at+uint64(n) > g.offsets.events.Load() {
		return slot{}, 0, false
	}
	b, next = b[:n], at+uint64(n)
	length := uint64(binary.LittleEndian.Uint32(b[4:]))
	if length == 0 {
		return slot{}, next, true
	}
	if len(b) < slotHead {
		return slot{}, 0, false
	}
	s.offset, s.length = int64(binary.LittleEndian.Uint64(b[8:])), int64(binary.LittleEndian.Uint32(b[16:]))
	keyLength := uint64(binary.LittleEndian.Uint32(b[20:]))
	if b = b[slotHead:]; keyLength+length > uint64(len(b)) {
		return slot{}, 0, false
	}
	s.key, s.event = b[:keyLength], b[keyLength:keyLength+length]
	return s, next, true
}

// acknowledge frees the slots before an offset.
func (g *ring) acknowledge(end uint64) {
	if end > g.offsets.acked.Load() {
		g.storeHead(func(h *ringHead) { h.acked.Store(end) })
		g.offsets.acked.Store(end)
	}
}

// stop rejects new events and writes the waiting bodies to disk.
func (g *ring) stop() error {
	g.mu.Lock()
	was := g.closed
	g.closed = true
	g.mu.Unlock()
	if !was {
		close(g.wake)
		<-g.done
	}
	return g.flush(true)
}

// close unmaps the ring and, if nothing on it is unread, deletes its file.
func (g *ring) close() error {
	g.flushing.Lock()
	defer g.flushing.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.head == nil {
		return nil
	}
	idle := g.offsets.acked.Load() == g.offsets.events.Load() && g.offsets.flushed.Load() == g.offsets.bodies.Load()
	var errs []error
	for i, p := range g.packs {
		if p != nil {
			errs = append(errs, p.file.Close())
		}
		g.packs[i] = nil
	}
	errs = append(errs, g.unmap())
	if idle {
		errs = append(errs, g.remove())
	}
	return errors.Join(errs...)
}

func (g *ring) unmap() error {
	err := unmapShared(g.mem)
	g.mem, g.head = nil, nil
	return errors.Join(err, g.file.Close())
}

// remove deletes the ring's file, then the names of its packs, which are objects of the
// bucket.
func (g *ring) remove() error {
	if err := os.Remove(ringPath(g.dir, g.seq)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("usage: journal: %w", err)
	}
	names, err := filepath.Glob(filepath.Join(g.dir, fmt.Sprintf("%016x-*%s", g.seq, packSuffix)))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

package usage

import (
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// lostPage is a page of a ring's file that the system cannot read or write: the disk
// failed, the file was truncated, or a copy-on-write file system is full. For mapped
// memory this arrives as a signal, which would end the process.
type lostPage struct{ offset int64 } // of the access, in the file

func (e *lostPage) Error() string {
	return fmt.Sprintf("usage: the ring's file has lost the event at %d", e.offset)
}

// recoverLostPage keeps the process alive when a page of the ring is lost. It must be
// deferred with the result of debug.SetPanicOnFault(true): the function then returns,
// with err set if not nil, and the ring is disabled.
func (g *ring) recoverLostPage(err *error, before bool) {
	debug.SetPanicOnFault(before)
	p := recover()
	if p == nil {
		return
	}
	at, ok := p.(interface{ Addr() uintptr })
	if !ok {
		panic(p)
	}
	offset := at.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(g.mem)))
	if offset >= uintptr(len(g.mem)) {
		panic(p)
	}
	lost := &lostPage{int64(offset)}
	g.disable(lost)
	if err != nil {
		*err = lost
	}
}

// disable makes the ring reject events: they go to files.
func (g *ring) disable(lost *lostPage) {
	if !g.failed.Swap(true) {
		g.onDamage(lost.offset, lost)
	}
}

// storeHead updates the head. If its page is lost, the process continues without it: it
// is read only after a restart.
func (g *ring) storeHead(store func(h *ringHead)) {
	defer g.recoverLostPage(nil, debug.SetPanicOnFault(true))
	store(g.head)
}

// writePages writes whole pages of the ring's bodies to a pack. Lost pages become zeros,
// so that the later records survive.
func (g *ring) writePages(p *packFile, area []byte, off int64) error {
	err := p.write(area, off)
	for errors.Is(err, syscall.EFAULT) && len(area) > 0 {
		page := area[:ringPage]
		if err = p.write(page, off); errors.Is(err, syscall.EFAULT) {
			g.disable(&lostPage{int64(uintptr(unsafe.Pointer(&page[0])) - uintptr(unsafe.Pointer(&g.mem[0])))})
			err = p.write(make([]byte, ringPage), off)
		}
		if area, off = area[ringPage:], off+ringPage; err == nil && len(area) > 0 {
			err = p.write(area, off)
		}
	}
	return err
}

// read decodes the record of the slot at an offset and returns the offset after the slot,
// or 0 if it is unknown. key is replaced if the slot names another pack.
func (g *ring) read(at uint64, r *Record, key *string) (s slot, next uint64, err error) {
	defer g.recoverLostPage(&err, debug.SetPanicOnFault(true))
	s, next, ok := g.slot(at)
	if !ok {
		return slot{}, 0, ErrDamaged
	}
	if len(s.event) == 0 {
		return s, next, nil
	}
	if _, _, err = r.decodeBare(s.event); err == nil && s.length > 0 && string(s.key) != *key {
		*key = string(s.key)
	}
	return s, next, err
}

// skipDamage returns the next complete event after a slot of unknown length, or the end
// of the slots.
func (g *ring) skipDamage(at uint64) uint64 {
	var r Record
	var key string
	end := g.offsets.events.Load()
	for at += 8; at < end; at += 8 {
		s, _, err := g.read(at, &r, &key)
		if err == nil && len(s.event) > 0 {
			return at
		}
		var lost *lostPage
		if errors.As(err, &lost) && lost.offset/ringPage == int64(at%ringEvents)/ringPage+1 {
			at = wholePages(at+1) - 8 // no event starts in this page
		}
	}
	return end
}

// currentRing returns the ring being read; nil if there is none.
func (rd *reader) currentRing() *ring {
	if rd.ring >= len(rd.rings) {
		return nil
	}
	return rd.rings[rd.ring]
}

// unreadOfRings estimates how many bytes of events wait on rings.
func (rd *reader) unreadOfRings() int64 {
	g := rd.currentRing()
	if g == nil {
		return 0
	}
	if rd.ring < len(rd.rings)-1 {
		return ringEvents // and the content of the next one
	}
	return int64(g.offsets.events.Load() - rd.ringAt)
}

// ringsFull reports whether the events on rings fill a batch.
func (rd *reader) ringsFull(max int) bool {
	g := rd.currentRing()
	if g == nil {
		return false
	}
	return rd.unreadOfRings() >= ringEvents/2 || g.count.Load()-rd.taken >= int64(max)
}

// takeFromRings collects records from the rings. Their bodies are in their packs when it
// returns.
func takeFromRings(j *Journal, max int) error {
	rd := &j.reader
	ring, at, taken := rd.ring, rd.ringAt, rd.taken
	bodies := false
	for g := rd.currentRing(); g != nil && !rd.full(max); g = rd.currentRing() {
		if rd.ringAt < g.offsets.events.Load() {
			bodies = takeSlot(j, g) || bodies
			continue
		}
		if rd.ring == len(rd.rings)-1 {
			break
		}
		rd.ring++
		rd.ringAt, rd.taken = rd.currentRing().offsets.acked.Load(), 0
	}
	if !bodies {
		return nil
	}
	if err := rd.currentRing().flush(true); err != nil {
		rd.ring, rd.ringAt, rd.taken = ring, at, taken // take them again next time
		return err
	}
	return nil
}

// takeSlot takes the slot at the reader's offset and reports whether its record has
// bodies.
func takeSlot(j *Journal, g *ring) (bodies bool) {
	rd := &j.reader
	at, r := rd.ringAt, rd.record()
	s, next, err := g.read(at, r, &rd.key)
	if err != nil {
		j.o.OnDamage(ringPath(j.dir, g.seq), int64(at%ringEvents)+ringPage, err)
		if next == 0 {
			next = g.skipDamage(at)
		}
	}
	rd.ringAt = next
	if err != nil || len(s.event) > 0 {
		rd.taken++
	}
	if err != nil || len(s.event) == 0 {
		*r = Record{}
		rd.records = rd.records[:len(rd.records)-1]
		return false
	}
	if s.length > 0 {
		r.Pack = Pack{Key: rd.key, Offset: s.offset, Length: s.length}
	}
	return s.length > 0
}

// acknowledgeRings frees the slots before an offset. It deletes a ring of an earlier
// process that was read completely.
func (rd *reader) acknowledgeRings(ring *ring, at uint64) error {
	for i, g := range rd.rings {
		if g != ring {
			continue
		}
		g.acknowledge(at)
		var errs []error
		for _, before := range rd.rings[:i] {
			before.acknowledge(before.offsets.events.Load())
			errs = append(errs, before.close())
		}
		rd.rings, rd.ring = rd.rings[i:], rd.ring-i
		return errors.Join(errs...)
	}
	return nil // acknowledged before, or the journal is closed
}

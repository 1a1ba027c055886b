package usage

import (
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"
	"unsafe"
)

// lostPage is a page of a ring's file that the system cannot give, or cannot
// write: the disk fails there, the file was cut, or the file system has no room
// for another copy of the page. Memory that is mapped has no other way to say so
// than a signal, which would end the process.
type lostPage struct{ offset int64 } // in the file, of what was wanted

func (e *lostPage) Error() string {
	return fmt.Sprintf("usage: the ring's file has lost what stood at %d", e.offset)
}

// spare keeps the process alive when a page of the ring is lost. The function that deferred
// it ends at that point, with err where there is one, and the ring takes no more events. It
// is given what debug.SetPanicOnFault(true) returned.
func (g *ring) spare(err *error, before bool) {
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
	g.giveUp(lost)
	if err != nil {
		*err = lost
	}
}

// giveUp takes no more events: they go to files.
func (g *ring) giveUp(lost *lostPage) {
	if !g.failed.Swap(true) {
		g.hurt(lost.offset, lost)
	}
}

// keep stores into the head. Where the head is lost, the process goes on without it: nobody
// will read there.
func (g *ring) keep(store func(h *ringHead)) {
	defer g.spare(nil, debug.SetPanicOnFault(true))
	store(g.head)
}

// writeOut writes whole pages of the ring's bodies into a pack; zeros in the place
// of pages that are lost, so that their records and all behind them go on.
func (g *ring) writeOut(p *packFile, area []byte, off int64) error {
	err := p.write(area, off)
	for errors.Is(err, syscall.EFAULT) && len(area) > 0 {
		page := area[:ringPage]
		if err = p.write(page, off); errors.Is(err, syscall.EFAULT) {
			g.giveUp(&lostPage{int64(uintptr(unsafe.Pointer(&page[0])) - uintptr(unsafe.Pointer(&g.mem[0])))})
			err = p.write(make([]byte, ringPage), off)
		}
		if area, off = area[ringPage:], off+ringPage; err == nil && len(area) > 0 {
			err = p.write(area, off)
		}
	}
	return err
}

// read reads the record of the slot at an offset, and gives the offset behind the
// slot: 0 when it is not known. key is replaced when the slot names another pack.
func (g *ring) read(at uint64, r *Record, key *string) (s slot, next uint64, err error) {
	defer g.spare(&err, debug.SetPanicOnFault(true))
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

// behindDamage finds the next whole event behind a slot whose length is not known,
// or the end of the slots.
func (g *ring) behindDamage(at uint64) uint64 {
	var r Record
	var key string
	end := g.at.events.Load()
	for at += 8; at < end; at += 8 {
		s, _, err := g.read(at, &r, &key)
		if err == nil && len(s.event) > 0 {
			return at
		}
		var lost *lostPage
		if errors.As(err, &lost) && lost.offset/ringPage == int64(at%ringEvents)/ringPage+1 {
			at = wholePages(at+1) - 8 // nothing begins in this page
		}
	}
	return end
}

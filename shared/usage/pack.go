package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// packFile is a stretch of the stream of bodies as a file. It has a name in the
// journal's folder as long as a part of it may be missing.
type packFile struct {
	number   uint64
	base     uint64 // its first byte's offset in the stream; a whole page
	key      string // its object in the bucket
	day      int64  // of the newest event when it was made, since 1970
	file     *os.File
	buffered bool // the file system takes no direct writes
}

func (g *ring) packPath(number uint64) string {
	return filepath.Join(g.dir, fmt.Sprintf("%016x-%d%s", g.seq, number, packSuffix))
}

func openPack(path string, flags int, number, base uint64) (*packFile, error) {
	f, direct, err := openDirect(path, os.O_WRONLY|flags)
	if err != nil {
		return nil, fmt.Errorf("usage: journal: %w", err)
	}
	return &packFile{number: number, base: base, file: f, buffered: !direct}, nil
}

// nextPack begins a pack at the next whole page of the stream and gives that
// offset. g.mu is held, and the pack before the last one is on the disk.
func (g *ring) nextPack(at uint64, day int64) (uint64, error) {
	at = wholePages(at)
	number := g.head.packs[1].number.Load() + 1
	p, err := g.makePack(number, at, day)
	if err != nil {
		return at, err // events and their bodies go to a file
	}
	// A process that dies between two of these stores leaves a sound head: nothing
	// is in the new pack yet, and everything before the last one is on the disk.
	h := &g.head.packs
	g.head.bodies.Store(at)
	h[0].number.Store(h[1].number.Load())
	h[0].base.Store(h[1].base.Load())
	h[1].base.Store(at)
	h[1].number.Store(number)
	g.at.bodies.Store(at)
	g.packs = [2]*packFile{g.packs[1], p}
	return at, nil
}

func (g *ring) makePack(number, base uint64, day int64) (*packFile, error) {
	path := g.packPath(number)
	p, err := openPack(path, os.O_CREATE|os.O_EXCL, number, base)
	if err != nil {
		return nil, err
	}
	if p.key, err = g.link(path); err != nil {
		if !passes(err) {
			g.failed.Store(true)
		}
		return nil, errors.Join(err, p.file.Close(), os.Remove(path))
	}
	p.day = day
	return p, nil
}

// passes tells whether a later try may do what failed now: a disk has room again,
// files are closed. A file system without hard links stays one.
func passes(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.EIO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// wholePages rounds up.
func wholePages(n uint64) uint64 { return (n + ringPage - 1) &^ (ringPage - 1) }

// flushSteps writes bodies to the disk whenever there is a step of them.
func (g *ring) flushSteps() {
	defer close(g.done)
	for range g.wake {
		_ = g.flush(false) // whoever needs it on the disk tries again and hears of it
	}
}

// flush writes bodies to the disk, all that are there or all but a part of a
// page. With all, the next ones begin at a new page.
func (g *ring) flush(all bool) error {
	g.flushing.Lock()
	defer g.flushing.Unlock()
	g.mu.Lock()
	if g.head == nil {
		g.mu.Unlock()
		return nil
	}
	end := g.at.bodies.Load()
	if all {
		end = wholePages(end)
		g.keep(func(h *ringHead) { h.bodies.Store(end) })
		g.at.bodies.Store(end)
	}
	packs := g.packs
	g.mu.Unlock()
	end &^= ringPage - 1
	for from := g.at.flushed.Load(); from < end; {
		p, to := packs[1], end
		if p != nil && from < p.base {
			p, to = packs[0], min(end, p.base)
		}
		area := g.bodies()[from%ringBodies:]
		area = area[:min(to-from, uint64(len(area)), flushStep)]
		if p != nil { // else its file was deleted, with all that is to be read in it
			if err := g.writeOut(p, area, int64(from-p.base)); err != nil {
				return fmt.Errorf("usage: journal: bodies: %w", err)
			}
		}
		from += uint64(len(area))
		g.keep(func(h *ringHead) { h.flushed.Store(from) })
		g.at.flushed.Store(from)
	}
	return g.leave(packs, end)
}

// leave ends the pack before the last one when all of it is on the disk.
func (g *ring) leave(packs [2]*packFile, end uint64) error {
	before := packs[0]
	if before == nil || packs[1] == nil || end < packs[1].base {
		return nil
	}
	g.mu.Lock()
	g.packs[0] = nil // flushing is held: nobody else changes it
	g.mu.Unlock()
	return errors.Join(before.file.Close(), os.Remove(g.packPath(before.number)))
}

// write writes whole pages.
func (p *packFile) write(b []byte, off int64) error {
	_, err := p.file.WriteAt(b, off)
	if errors.Is(err, syscall.EINVAL) && !p.buffered {
		if err = useBuffers(p.file); err != nil {
			return err
		}
		p.buffered = true
		_, err = p.file.WriteAt(b, off)
	}
	if p.buffered {
		dropCache(p.file, off, int64(len(b)))
	}
	return err
}

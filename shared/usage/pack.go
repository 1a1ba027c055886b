package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// packFile is the file of a section of the body stream. It has a name in the journal's
// folder as long as a part of it may be unwritten.
type packFile struct {
	number   uint64
	base     uint64 // offset of its first byte in the stream; page-aligned
	key      string // its object in the bucket
	day      int64  // day of the newest event at its creation, since 1970
	file     *os.File
	buffered bool // the file system does not support direct writes
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

// nextPack starts a pack at the next page of the stream and returns its offset. g.mu is
// held, and the pack before the last one is on disk.
func (g *ring) nextPack(at uint64, day int64) (uint64, error) {
	at = wholePages(at)
	number := g.head.packs[1].number.Load() + 1
	p, err := g.makePack(number, at, day)
	if err != nil {
		return at, err // the event and its bodies go to a file
	}
	// If the process dies between two of these stores, the head is still valid: the new
	// pack is empty, and everything before the last one is on disk.
	h := &g.head.packs
	g.head.bodies.Store(at)
	h[0].number.Store(h[1].number.Load())
	h[0].base.Store(h[1].base.Load())
	h[1].base.Store(at)
	h[1].number.Store(number)
	g.offsets.bodies.Store(at)
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
		if !isTransient(err) {
			g.failed.Store(true)
		}
		return nil, errors.Join(err, p.file.Close(), os.Remove(path))
	}
	p.day = day
	return p, nil
}

// isTransient reports whether a later attempt may succeed: disk space or file handles
// become free. A file system without hard links stays one.
func isTransient(err error) bool {
	for _, e := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.EIO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// wholePages rounds up to a multiple of the page size.
func wholePages(n uint64) uint64 { return (n + ringPage - 1) &^ (ringPage - 1) }

// flushSteps writes bodies to disk whenever flushStep bytes are waiting.
func (g *ring) flushSteps() {
	defer close(g.done)
	for range g.wake {
		_ = g.flush(false) // a later flush that needs the data on disk retries and returns the error
	}
}

// flush writes waiting bodies to disk; without all, a partial page remains. With all, the
// next bodies start at a new page.
func (g *ring) flush(all bool) error {
	g.flushing.Lock()
	defer g.flushing.Unlock()
	g.mu.Lock()
	if g.head == nil {
		g.mu.Unlock()
		return nil
	}
	end := g.offsets.bodies.Load()
	if all {
		end = wholePages(end)
		g.storeHead(func(h *ringHead) { h.bodies.Store(end) })
		g.offsets.bodies.Store(end)
	}
	packs := g.packs
	g.mu.Unlock()
	end &^= ringPage - 1
	for from := g.offsets.flushed.Load(); from < end; {
		p, to := packs[1], end
		if p != nil && from < p.base {
			p, to = packs[0], min(end, p.base)
		}
		area := g.bodies()[from%ringBodies:]
		area = area[:min(to-from, uint64(len(area)), flushStep)]
		if p != nil { // if nil, its file was deleted with all unread data
			if err := g.writePages(p, area, int64(from-p.base)); err != nil {
				return fmt.Errorf("usage: journal: bodies: %w", err)
			}
		}
		from += uint64(len(area))
		g.storeHead(func(h *ringHead) { h.flushed.Store(from) })
		g.offsets.flushed.Store(from)
	}
	return g.finishPack(packs, end)
}

// finishPack closes the pack before the last one when all of it is on disk.
func (g *ring) finishPack(packs [2]*packFile, end uint64) error {
	before := packs[0]
	if before == nil || packs[1] == nil || end < packs[1].base {
		return nil
	}
	g.mu.Lock()
	g.packs[0] = nil // flushing is held, so packs[0] cannot change
	g.mu.Unlock()
	return errors.Join(before.file.Close(), os.Remove(g.packPath(before.number)))
}

// write writes complete pages.
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

package usage

import "sync"

// fresh keeps in memory, besides the file, what the reader needs of the latest events:
// everything but the bodies. So the bodies, which are most of a file, are not read again
// only to find the events between them. It only saves work: an event that does not fit is
// read from the file.
type fresh struct {
	mu     sync.Mutex
	events []freshEvent // the oldest first
	next   int          // of them, the first that was not taken
	bytes  []byte       // the parts behind the bodies, one after the other
	full   bool         // an event found no room since all were taken
}

type freshEvent struct {
	at       position
	length   int // of the whole event
	bodiesAt int // from its start
	bodies   int
	from, to int // in fresh.bytes
	version  byte
}

// Bounds of what is kept.
const (
	maxFreshBytes  = 512 << 10
	maxFreshEvents = 1 << 10
)

// add notes an event that stands at a position. The journal's lock is held.
func (f *fresh) add(at position, e *entry, length int) {
	rest := e.event[e.cut : len(e.event)-eventTail]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == len(f.events) {
		f.events, f.bytes, f.next, f.full = f.events[:0], f.bytes[:0], 0, false
	}
	if len(f.bytes)+len(rest) > maxFreshBytes || len(f.events) == maxFreshEvents {
		f.full = true
		return
	}
	from := len(f.bytes)
	f.bytes = append(f.bytes, rest...)
	f.events = append(f.events, freshEvent{at, length, length - eventTail - len(rest) - e.bodies, e.bodies, from, len(f.bytes), e.event[1]})
}

// waiting is how many events wait for the reader, at most maxFreshEvents.
func (f *fresh) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return maxFreshEvents
	}
	return len(f.events) - f.next
}

// take reads the event at a position into r, when it is kept. ok is false when it
// is not.
func (f *fresh) take(at position, r *Record) (e freshEvent, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.next < len(f.events) {
		e = f.events[f.next]
		if e.at.seq > at.seq || e.at.seq == at.seq && e.at.off > at.off {
			break
		}
		f.next++
		if e.at == at {
			return e, r.readBare(f.bytes[e.from:e.to], e.version)
		}
	}
	return freshEvent{}, false
}

// takeFresh takes the event at the reader's position without reading the file;
// false when that cannot be done.
func takeFresh(j *Journal) bool {
	rd := &j.reader
	if j.fresh == nil || !j.linked() {
		return false
	}
	r := rd.record()
	e, ok := j.fresh.take(rd.at, r)
	if !ok {
		*r = Record{}
		rd.records = rd.records[:len(rd.records)-1]
		return false
	}
	if e.bodies > 0 {
		r.Pack = Pack{Key: rd.pack, Offset: rd.at.off + int64(e.bodiesAt), Length: int64(e.bodies)}
	}
	rd.at.off += int64(e.length)
	return true
}

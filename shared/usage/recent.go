package usage

import "sync"

// recentEvents caches in memory the latest events without their bodies, so that the
// reader does not read the bodies, most of a file, only to find the events between them.
// It is an optimization: an event that does not fit is read from the file.
type recentEvents struct {
	mu     sync.Mutex
	events []recentEvent // oldest first
	next   int           // index of the first event that was not taken
	bytes  []byte        // the parts after the bodies, concatenated
	full   bool          // an event did not fit since all were taken
}

type recentEvent struct {
	at       position
	length   int // of the whole event
	bodiesAt int // from its start
	bodies   int
	from, to int // in recentEvents.bytes
	version  byte
}

// Limits of the cache.
const (
	maxRecentBytes  = 512 << 10
	maxRecentEvents = 1 << 10
)

// add caches the event at a position. The journal's lock is held.
func (f *recentEvents) add(at position, e *entry, length int) {
	rest := e.event[e.cut : len(e.event)-eventTail]
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next == len(f.events) {
		f.events, f.bytes, f.next, f.full = f.events[:0], f.bytes[:0], 0, false
	}
	if len(f.bytes)+len(rest) > maxRecentBytes || len(f.events) == maxRecentEvents {
		f.full = true
		return
	}
	from := len(f.bytes)
	f.bytes = append(f.bytes, rest...)
	f.events = append(f.events, recentEvent{at, length, length - eventTail - len(rest) - e.bodies, e.bodies, from, len(f.bytes), e.event[1]})
}

// waiting is how many events wait for the reader, at most maxFreshEvents.
func (f *recentEvents) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return maxRecentEvents
	}
	return len(f.events) - f.next
}

// take decodes the event at a position into r; ok is false if it is not cached.
func (f *recentEvents) take(at position, r *Record) (e recentEvent, ok bool) {
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
	return recentEvent{}, false
}

// takeRecent takes the event at the reader's position without reading the file; false if
// it is not cached.
func takeRecent(j *Journal) bool {
	rd := &j.reader
	if j.recent == nil || !j.linkCurrent() {
		return false
	}
	r := rd.record()
	e, ok := j.recent.take(rd.at, r)
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

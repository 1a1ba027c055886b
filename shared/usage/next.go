package usage

import (
	"context"
	"sync"
	"time"
)

// Next returns at most max records, oldest first. With wait > 0 it waits for the first
// one until ctx is done, then up to wait for a full batch; with wait 0 it returns what is
// available, perhaps nothing. The batch's Done acknowledges it and all earlier ones;
// unacknowledged records are returned again after a restart. The next call reuses the
// slice of records.
func (j *Journal) Next(ctx context.Context, max int, wait time.Duration) (Batch, error) {
	j.reader.mu.Lock()
	defer j.reader.mu.Unlock()
	if wait > 0 {
		if err := j.await(ctx, wait, max); err != nil {
			return Batch{}, err
		}
	}
	j.reader.dropPageCache()
	for i := range j.reader.records {
		j.reader.records[i].reuse()
	}
	j.reader.records, j.reader.bodyBytes = j.reader.records[:0], 0
	if err := j.read(max); err != nil {
		return Batch{}, err
	}
	end := mark{position: j.reader.at, ring: j.reader.currentRing(), ringAt: j.reader.ringAt}
	return Batch{Records: j.reader.records, Done: func(context.Context) error { return j.acknowledge(end) }}, nil
}

// fullBatch is the amount of unread data that is a batch without waiting for more, if
// bodies are read into memory.
const fullBatch = 512 << 10

// pollInterval is the pause between two checks of a batch that is filling.
const pollInterval = 20 * time.Millisecond

// await returns when data is available and, if it is little, once it fills a batch or
// wait has passed. Events that arrive meanwhile do not wake the reader.
func (j *Journal) await(ctx context.Context, wait time.Duration, max int) error {
	for j.unread() == 0 {
		select {
		case <-j.wake:
			if j.isClosed() {
				j.wakeReader() // for the next call
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for begun := time.Now(); ctx.Err() == nil && !batchReady(j, max); {
		left := time.Until(begun.Add(j.patience(wait)))
		if left <= 0 {
			break
		}
		sleep(ctx, min(left, pollInterval))
	}
	return nil
}

// Watch sets a function that reports whether a client is waiting for records: then a batch
// waits only a quarter of its time for more. It is safe for concurrent use.
func (j *Journal) Watch(watched func() bool) { j.watched.Store(&watched) }

// patience returns how long a batch waits for more records.
func (j *Journal) patience(wait time.Duration) time.Duration {
	if watched := j.watched.Load(); watched != nil && (*watched)() {
		return wait / 4
	}
	return wait
}

// batchReady reports whether the waiting events fill a batch: by their number, or by their
// bytes if bytes count.
func batchReady(j *Journal, max int) bool {
	if j.ring != nil && j.reader.ringsFull(max) {
		return true
	}
	if j.recent == nil {
		return j.unread() >= fullBatch
	}
	if _, current := unpack(j.reader.at.seq, j.live.Load()); !current {
		return true // files before the current one
	}
	return j.recent.waiting() >= min(max, maxRecentEvents)
}

// unread estimates how many bytes are unread.
func (j *Journal) unread() int64 {
	rings := j.reader.unreadOfRings()
	if size, current := unpack(j.reader.at.seq, j.live.Load()); current {
		return rings + size - j.reader.at.off
	}
	return fullBatch // files before the current one
}

func (j *Journal) isClosed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.closed
}

func (j *Journal) wakeReader() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

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

package usage

import (
	"context"
	"time"
)

// Next gives the next records, oldest first, at most max. With wait > 0 it waits
// for the first one until ctx is done, then for wait while there are few; with
// wait 0 it gives what is there, perhaps nothing. Done of the batch acknowledges it
// and all before it; records of a batch that was not acknowledged come again
// after a restart. The slice of records is used again by the next call.
func (j *Journal) Next(ctx context.Context, max int, wait time.Duration) (Batch, error) {
	j.reader.mu.Lock()
	defer j.reader.mu.Unlock()
	if wait > 0 {
		if err := j.await(ctx, wait, max); err != nil {
			return Batch{}, err
		}
	}
	j.reader.giveUpCache()
	for i := range j.reader.records {
		j.reader.records[i].reuse()
	}
	j.reader.records, j.reader.held = j.reader.records[:0], 0
	if err := j.read(max); err != nil {
		return Batch{}, err
	}
	end := mark{position: j.reader.at, ring: j.reader.reading(), ringAt: j.reader.ringAt}
	return Batch{Records: j.reader.records, Done: func(context.Context) error { return j.acknowledge(end) }}, nil
}

// fullBatch is how much unread data is worth a batch without waiting for more,
// where bodies are read into memory.
const fullBatch = 512 << 10

// lookAgain is the pause between two looks at a batch that is filling.
const lookAgain = 20 * time.Millisecond

// await returns when there is something to read, and when it is little, once it
// is a batch or wait is over. Events that arrive meanwhile wake nobody.
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
	for begun := time.Now(); ctx.Err() == nil && !worthABatch(j, max); {
		left := time.Until(begun.Add(j.patience(wait)))
		if left <= 0 {
			break
		}
		sleep(ctx, min(left, lookAgain))
	}
	return nil
}

// Watch sets a function that reports whether somebody waits for records: then a batch waits
// for more of them only a quarter of its time. It is safe for concurrent use.
func (j *Journal) Watch(watched func() bool) { j.watched.Store(&watched) }

// patience returns how long a batch waits for more records.
func (j *Journal) patience(wait time.Duration) time.Duration {
	if watched := j.watched.Load(); watched != nil && (*watched)() {
		return wait / 4
	}
	return wait
}

// worthABatch tells whether the waiting events fill a batch: by their number, or by their
// bytes where bytes count.
func worthABatch(j *Journal, max int) bool {
	if j.ring != nil && j.reader.ringsFull(max) {
		return true
	}
	if j.fresh == nil {
		return j.unread() >= fullBatch
	}
	if _, current := unpack(j.reader.at.seq, j.live.Load()); !current {
		return true // files before the current one
	}
	return j.fresh.waiting() >= min(max, maxFreshEvents)
}

// unread tells roughly how many bytes there are to read.
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

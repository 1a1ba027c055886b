package report

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"gateway/shared/fault"
	"gateway/shared/usage/segment"
)

// room is the memory that all questions of a process share. A question is admitted with
// room for everything that it gathers. Each segment that it reads takes memory and gives it
// back before the next one: so no question holds some of this memory while it waits for
// more.
type room struct {
	questions *semaphore.Weighted
	queue     *semaphore.Weighted // questions that run or wait
	gathered  *semaphore.Weighted // bytes that questions gather for their answers
	memory    *semaphore.Weighted // bytes of what they read
	most      int64               // the total of gathered
	bytes     int64               // the total of memory
	patience  time.Duration
}

// questionsBytes is how much questions may add to the memory of a process. Garbage takes as
// much again as the memory in use. So what questions gather and read, and what the archive
// keeps, may be half of it.
const questionsBytes = 128 << 20

// Limits of questions: how many run at once, how many run or wait, how long one waits, how
// much they gather, and how much memory they read into.
const (
	atOnce        = 4
	inQueue       = 64
	maxWait       = 10 * time.Second
	gatheredBytes = 16 << 20
	roomBytes     = 20 << 20
)

// shared is the room of this process.
var shared = newRoom(atOnce, inQueue, gatheredBytes, roomBytes, maxWait)

func newRoom(questions, queue, gathered, bytes int64, patience time.Duration) *room {
	weighted := semaphore.NewWeighted
	return &room{weighted(questions), weighted(queue), weighted(gathered), weighted(bytes), gathered, bytes, patience}
}

// Patient gives the reader its own room, in which questions wait for the given time. It is
// for callers that ask many questions and have the time.
func (r *Reader) Patient(wait time.Duration) *Reader {
	r.src.room = newRoom(atOnce, inQueue, gatheredBytes, roomBytes, wait)
	return r
}

// enter waits until a question that gathers so many bytes may be answered; leave ends the
// question. When there are too many questions, or the wait is too long, the error is a 503
// that says when to try again.
func (r *room) enter(ctx context.Context, gathers int64) (leave func(), err error) {
	if !r.queue.TryAcquire(1) {
		return nil, busy()
	}
	waiting, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	gathers = min(gathers, r.most)
	if err = r.questions.Acquire(waiting, 1); err == nil {
		if err = r.gathered.Acquire(waiting, gathers); err != nil {
			r.questions.Release(1)
		}
	}
	if err != nil {
		r.queue.Release(1)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, busy()
	}
	return func() { r.gathered.Release(gathers); r.questions.Release(1); r.queue.Release(1) }, nil
}

func busy() *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "", "Too many questions about usage are being answered; try again")
	f.RetryAfter = 2 * time.Second
	return f
}

// take waits until there is memory to read with.
func (r *room) take(ctx context.Context, bytes int64) (give func(), err error) {
	bytes = min(bytes, r.bytes)
	if err := r.memory.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return func() { r.memory.Release(bytes) }, nil
}

// weight is about how much memory reading the columns of a row group takes.
func (c *columns) weight(f *segment.File, group int, ids bool) int64 {
	sum := int64(0)
	for d, on := range c.dims {
		if on || ids && segment.Dim(d) == segment.ID {
			sum += f.StringsWeight(group, segment.Dim(d))
		}
	}
	for i, on := range c.ints {
		if on {
			sum += f.IntsWeight(group, segment.Int(i))
		}
	}
	if n := int64(len(c.meta)); n > 0 {
		sum += n * f.MetadataWeight(group)
	}
	return sum
}

package report

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"gateway/shared/fault"
	"gateway/shared/usage/segment"
)

// room is the memory that all questions of a process share. A question is let in
// as a whole; each row group that it decodes takes its part of the memory and
// gives it back before the next, so that none holds some while it waits for more.
type room struct {
	questions *semaphore.Weighted
	queue     *semaphore.Weighted // questions that run or wait
	memory    *semaphore.Weighted
	bytes     int64
	patience  time.Duration
}

// Bounds of questions: at once, with those that wait, how long one waits, and the
// memory of what they decode, beside what the archive keeps.
const (
	atOnce    = 4
	inQueue   = 64
	maxWait   = 10 * time.Second
	roomBytes = 48 << 20
)

// shared is the room of this process.
var shared = newRoom(atOnce, inQueue, roomBytes, maxWait)

func newRoom(questions, queue, bytes int64, patience time.Duration) *room {
	return &room{semaphore.NewWeighted(questions), semaphore.NewWeighted(queue), semaphore.NewWeighted(bytes), bytes, patience}
}

// enter waits until a question may be answered; leave ends it. Too many questions,
// or too long a wait, are a 503 that says when to try again.
func (r *room) enter(ctx context.Context) (leave func(), err error) {
	if !r.queue.TryAcquire(1) {
		return nil, busy()
	}
	waiting, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	if r.questions.Acquire(waiting, 1) != nil {
		r.queue.Release(1)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, busy()
	}
	return func() { r.questions.Release(1); r.queue.Release(1) }, nil
}

func busy() *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "", "Too many questions about usage are being answered; try again")
	f.RetryAfter = 2 * time.Second
	return f
}

// take waits for the memory of a row group.
func (r *room) take(ctx context.Context, bytes int64) (give func(), err error) {
	bytes = min(bytes, r.bytes)
	if err := r.memory.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return func() { r.memory.Release(bytes) }, nil
}

// Bytes that a row takes while a column is decoded: of texts with their index, of
// numbers.
const (
	textWeight   = 96
	numberWeight = 8
)

// weight is about what the columns of a row group take, decoded.
func (c *columns) weight(g *segment.Group, ids bool) int64 {
	row := int64(len(c.meta)) * textWeight
	if ids {
		row += textWeight
	}
	for _, on := range c.dims {
		if on {
			row += textWeight
		}
	}
	for _, on := range c.ints {
		if on {
			row += numberWeight
		}
	}
	return row * int64(g.Rows)
}

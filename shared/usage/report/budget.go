package report

import (
	"context"
	"time"

	"golang.org/x/sync/semaphore"

	"gateway/shared/fault"
	"gateway/shared/usage/segment"
)

// memoryBudget is the memory that all queries of a process share. A query is admitted
// with memory for its results. Each segment it reads takes memory and returns it before
// the next one, so no query holds this memory while it waits for more.
type memoryBudget struct {
	questions *semaphore.Weighted
	queue     *semaphore.Weighted // running and waiting queries
	results   *semaphore.Weighted // bytes of results
	memory    *semaphore.Weighted // bytes of the data read
	most      int64               // the total of results
	bytes     int64               // the total of memory
	patience  time.Duration
}

// queriesBytes limits the memory that queries add to a process. Garbage takes as much
// again as the memory in use, so results, data read and the archive's cache may use half
// of it.
const queriesBytes = 128 << 20

// Limits of queries: how many run concurrently, how many run or wait, how long one waits,
// the size of results, and the memory for reading.
const (
	maxRunning    = 4
	maxQueued     = 64
	maxWait       = 10 * time.Second
	gatheredBytes = 16 << 20
	budgetBytes   = 20 << 20
)

// shared is the budget of this process.
var shared = newMemoryBudget(maxRunning, maxQueued, gatheredBytes, budgetBytes, maxWait)

func newMemoryBudget(questions, queue, gathered, bytes int64, patience time.Duration) *memoryBudget {
	weighted := semaphore.NewWeighted
	return &memoryBudget{weighted(questions), weighted(queue), weighted(gathered), weighted(bytes), gathered, bytes, patience}
}

// Patient gives the reader a separate budget, in which queries wait for the given time.
// It is for callers with many queries and no deadline.
func (r *Reader) Patient(wait time.Duration) *Reader {
	r.src.budget = newMemoryBudget(maxRunning, maxQueued, gatheredBytes, budgetBytes, wait)
	return r
}

// admit waits until a query with results of the given size may run; leave ends the query.
// If there are too many queries, or the wait is too long, it returns a 503 with a retry
// time.
func (r *memoryBudget) admit(ctx context.Context, gathers int64) (leave func(), err error) {
	if !r.queue.TryAcquire(1) {
		return nil, busy()
	}
	waiting, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	gathers = min(gathers, r.most)
	if err = r.questions.Acquire(waiting, 1); err == nil {
		if err = r.results.Acquire(waiting, gathers); err != nil {
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
	return func() { r.results.Release(gathers); r.questions.Release(1); r.queue.Release(1) }, nil
}

func busy() *fault.Fault {
	f := fault.New(fault.ServiceUnavailable, "", "Too many concurrent usage queries; retry later")
	f.RetryAfter = 2 * time.Second
	return f
}

// acquire waits until there is memory to read with.
func (r *memoryBudget) acquire(ctx context.Context, bytes int64) (give func(), err error) {
	bytes = min(bytes, r.bytes)
	if err := r.memory.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return func() { r.memory.Release(bytes) }, nil
}

// weight estimates the memory for reading the columns of a row group.
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

package report

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"gateway/shared/fault"
	"gateway/shared/usage/segment"
)

// frontier is a segment, or a row group of it, that is yet to be searched. Frontiers are
// ordered by their first record on a page.
type frontier struct {
	start int64 // start of that record
	part  *segment.Part
	skip  []uint64 // only for groups: hashes of record ids to skip
	group int      // -1 for the entire segment
}

// order is the order of a page: newest first, or oldest first.
type order struct{ oldest bool }

// compare compares two starts in the page's order.
func (o order) compare(x, y int64) int {
	if o.oldest {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(y, x)
}

// atOrBefore reports whether a row is at or before a position.
func (o order) atOrBefore(start int64, id string, at cursor) bool {
	if start != at.start {
		return o.compare(start, at.start) < 0
	}
	if o.oldest {
		return id <= at.id
	}
	return id >= at.id
}

// frontierHeap is a heap of frontiers.
type frontierHeap struct {
	order
	all []*frontier
}

func (q *frontierHeap) Len() int           { return len(q.all) }
func (q *frontierHeap) Less(i, j int) bool { return q.compare(q.all[i].start, q.all[j].start) < 0 }
func (q *frontierHeap) Swap(i, j int)      { q.all[i], q.all[j] = q.all[j], q.all[i] }
func (q *frontierHeap) Push(x any)         { q.all = append(q.all, x.(*frontier)) }
func (q *frontierHeap) Pop() any {
	last := q.all[len(q.all)-1]
	q.all[len(q.all)-1] = nil
	q.all = q.all[:len(q.all)-1]
	return last
}

// match is a matching row, without its columns.
type match struct {
	start      int64
	id         string
	part       *segment.Part
	group, row int
}

func (m *match) cursor() cursor { return cursor{m.start, m.id} }

// matchWeight estimates the memory of a match.
const matchWeight = 100

// pageBuffer holds the first matching rows, up to the number that a page needs.
type pageBuffer struct {
	order
	rows []match
	most int
}

func (n *pageBuffer) add(m match) {
	if n.rows = append(n.rows, m); len(n.rows) >= 2*n.most {
		n.trim()
	}
}

// trim sorts the rows and drops the excess.
func (n *pageBuffer) trim() {
	slices.SortFunc(n.rows, func(x, y match) int {
		c := strings.Compare(y.id, x.id)
		if n.oldest {
			c = -c
		}
		return cmp.Or(n.compare(x.start, y.start), c)
	})
	if len(n.rows) > n.most {
		clear(n.rows[n.most:])
		n.rows = n.rows[:n.most]
	}
}

// full reports whether records starting at or after start, in page order, can no longer
// be on the page.
func (n *pageBuffer) full(start int64) bool {
	if len(n.rows) < n.most {
		return false
	}
	n.trim()
	return n.compare(start, n.rows[n.most-1].start) > 0
}

func (r *Reader) page(ctx context.Context, p *plan, before cursor, q *LogQuery) (LogPage, error) {
	leave, err := r.src.budget.admit(ctx, q.weight())
	if err != nil {
		return LogPage{}, err
	}
	defer leave()
	hits, more, err := r.matches(ctx, p, before, q)
	if err != nil {
		return LogPage{}, err
	}
	records, err := r.src.read(ctx, hits, q.Bodies)
	if err != nil {
		return LogPage{}, err
	}
	page := LogPage{Records: records}
	if more {
		page.Next = hits[len(hits)-1].cursor().String()
	}
	return page, nil
}

// weight estimates the memory for finding the page.
func (q *LogQuery) weight() int64 { return int64(2*q.maxMatches()) * matchWeight }

// maxMatches returns how many matches are retained to find the page: one more than the
// page has.
func (q *LogQuery) maxMatches() int { return max(q.Offset, 0) + max(q.Limit, 1) + 1 }

// search finds the rows of a page by scanning parts and their groups in order.
type search struct {
	src    *source
	rest   plan // the plan, limited to the time of this page and later ones
	before cursor
	ahead  frontierHeap
	top    pageBuffer
}

// matches finds the rows of a page, in its order; more reports whether further rows
// follow.
func (r *Reader) matches(ctx context.Context, p *plan, before cursor, q *LogQuery) (hits []match, more bool, err error) {
	s := search{src: &r.src, rest: *p, before: before, top: pageBuffer{order: order{q.Oldest}, most: q.maxMatches()}, ahead: frontierHeap{order: order{q.Oldest}}}
	if q.Oldest {
		s.rest.from = max(p.from, before.start)
	} else {
		s.rest.to = min(p.to, before.start)
	}
	list, err := r.src.archive.List(ctx, p.org, s.rest.from, s.rest.to)
	if err != nil {
		return nil, false, err
	}
	parts := segment.Parts(list)
	s.ahead.all = make([]*frontier, 0, len(parts))
	for i := range parts {
		s.ahead.all = append(s.ahead.all, &frontier{start: s.top.nearest(parts[i].Min, parts[i].Max), part: &parts[i], group: -1})
	}
	heap.Init(&s.ahead)
	for s.ahead.Len() > 0 && !s.top.full(s.ahead.all[0].start) {
		next := heap.Pop(&s.ahead).(*frontier)
		if next.group < 0 {
			err = s.openPart(ctx, next)
		} else {
			err = s.openGroup(ctx, next)
		}
		if err != nil {
			return nil, false, err
		}
	}
	s.top.trim()
	hits = s.top.rows[min(max(q.Offset, 0), len(s.top.rows)):]
	more = len(hits) > max(q.Limit, 1)
	return hits[:min(max(q.Limit, 1), len(hits))], more, nil
}

// nearest returns the start that is first in page order.
func (o order) nearest(least, greatest int64) int64 {
	if o.oldest {
		return least
	}
	return greatest
}

func (s *search) openPart(ctx context.Context, at *frontier) error {
	skip, err := s.src.duplicates(ctx, at.part)
	if err != nil {
		return err
	}
	f, err := s.src.open(ctx, &at.part.Manifest)
	if err != nil {
		return err
	}
	for g := range f.Groups {
		if f.Groups[g].Last < s.rest.from || f.Groups[g].First > s.rest.to {
			continue
		}
		next := &frontier{start: s.top.nearest(f.Groups[g].First, f.Groups[g].Last), part: at.part, skip: skip, group: g}
		if len(f.Groups) == 1 { // its bytes have been read
			return s.collect(ctx, f, next)
		}
		heap.Push(&s.ahead, next)
	}
	return nil
}

func (s *search) openGroup(ctx context.Context, at *frontier) error {
	f, err := s.src.open(ctx, &at.part.Manifest)
	if err != nil {
		return err
	}
	return s.collect(ctx, f, at)
}

// collect finds the rows of a group on this page or later ones. It retains only as many
// as the page can need and releases the columns.
func (s *search) collect(ctx context.Context, f *segment.File, at *frontier) error {
	p, top := &s.rest, &s.top
	give, err := s.src.budget.acquire(ctx, f.Weight()+p.need.weight(f, at.group, true)+p.filtersWeight(f, at.group)+f.RecordsWeight())
	if err != nil {
		return err
	}
	defer give()
	if can, err := p.mayHave(ctx, f, at.group); err != nil || !can {
		return err
	}
	t, m, err := p.load(ctx, f, at.group, &p.need, false)
	if err != nil || m.never {
		return err
	}
	starts := t.Ints[segment.Start]
	passes := func(i int) bool {
		return starts[i] >= p.from && starts[i] <= p.to && m.match(i)
	}
	id, err := ids(ctx, f, at.group, t, passes)
	if err != nil || id == nil {
		return err
	}
	found := 0
	for n := 0; n < len(starts) && found < top.most; n++ {
		i := n
		if !top.oldest {
			i = len(starts) - 1 - n
		}
		if !passes(i) || starts[i] == s.before.start && top.atOrBefore(starts[i], id(i), s.before) {
			continue
		}
		if _, twice := slices.BinarySearch(at.skip, segment.HashID(id(i))); !twice {
			top.add(match{starts[i], strings.Clone(id(i)), at.part, at.group, i})
			found++
		}
	}
	return nil
}

// fewIDs is the number of rows up to which ids are read from the records. The column of
// ids is the longest, and it is not cached.
const fewIDs = 3

// ids returns the ids of the matching rows; nil if there are none.
func ids(ctx context.Context, f *segment.File, group int, t *view, passes func(row int) bool) (id func(row int) string, err error) {
	rows := make([]int, 0, fewIDs+1)
	for i := 0; i < t.N && len(rows) <= fewIDs; i++ {
		if passes(i) {
			rows = append(rows, i)
		}
	}
	switch n := len(rows); {
	case n == 0:
		return nil, nil
	case n > fewIDs:
		err := t.load(ctx, f, group, &columns{}, true)
		return func(i int) string { return t.Dims[segment.ID].At(i) }, err
	}
	records, err := f.Records(ctx, group, rows)
	return func(i int) string { return records[slices.Index(rows, i)].ID }, err
}

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

// WithWait gives the reader a separate budget, in which queries wait for the given time.
// It is for callers with many queries and no deadline.
func (r *Reader) WithWait(wait time.Duration) *Reader {
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

package report

import (
	"cmp"
	"container/heap"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/axiomhq/hyperloglog"
	"github.com/oklog/ulid/v2"

	"gateway/shared/blob"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// maxTotal is up to where lists are counted.
const maxTotal = 10_000

// LogQuery asks for a page of logs, newest first.
type LogQuery struct {
	Filter
	Limit   int    // at least 1
	Offset  int    // records to leave out, from the cursor on
	Cursor  string // LogPage.Next of the page before; empty: from the newest
	NoTotal bool   // leave LogPage.Total out
	Bodies  bool   // read the sealed bodies of the records too
}

// LogPage is a page of logs. Their sealed bodies are left out, unless the query asks
// for them: see Log for those of one.
type LogPage struct {
	Records           []usage.Record
	Next              string // cursor of the following page; empty at the end
	Total             int    // records that match, exact up to 10,000
	TotalIsLowerBound bool   // there are more than Total
}

// cursor is a place in the order of logs: behind the record with this start
// (microseconds) and id.
type cursor struct {
	start int64
	id    string
}

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(c.start)), c.id...))
}

// before is where the page begins.
func (q *LogQuery) before() (cursor, error) {
	if q.Cursor == "" {
		return cursor{math.MaxInt64, ""}, nil
	}
	return parseCursor(q.Cursor)
}

// parseCursor takes only what String has written. A text that merely decodes would
// name a place where no log can be, and look like the end of the list.
func parseCursor(s string) (cursor, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != 8+ulid.EncodedSize {
		return cursor{}, notACursor()
	}
	c := cursor{int64(binary.BigEndian.Uint64(b)), string(b[8:])}
	id, err := ulid.ParseStrict(c.id)
	if err != nil || id.String() != c.id || c.start < 0 || c.start > lastStart || c.String() != s {
		return cursor{}, notACursor()
	}
	return c, nil
}

// lastStart is the last time, in microseconds, that a log can have begun: the one
// up to which the ids of logs count.
var lastStart = ulid.Time(ulid.MaxTime()).UnixMicro()

func notACursor() error {
	return fault.Invalid("cursor", "is not a cursor of this list; leave it out to begin with the newest")
}

// Logs gives a page of records, newest first. The filter is valid. Errors: a
// 400 fault for a bad cursor.
func (r *Reader) Logs(ctx context.Context, sc store.Scope, q *LogQuery) (page LogPage, err error) {
	p := compile(sc, &q.Filter)
	before, err := q.before()
	if err != nil {
		return LogPage{}, err
	}
	err = again(func() (err error) {
		page, err = r.page(ctx, p, before, q)
		return err
	})
	if err != nil || q.NoTotal {
		return page, err
	}
	// What is all on one page is counted by it, also where more has arrived since.
	if n := len(page.Records); q.Cursor == "" && page.Next == "" && (n > 0 || q.Offset <= 0) {
		page.Total = max(q.Offset, 0) + n
	} else {
		err = again(func() (err error) {
			page.Total, err = r.count(ctx, p)
			return err
		})
	}
	if page.Total > maxTotal {
		page.Total, page.TotalIsLowerBound = maxTotal, true
	}
	return page, err
}

// counter counts what passes, over all goroutines of a scan.
type counter struct {
	t *view
	n *atomic.Int64
}

func (c *counter) begin(t *view)                          { c.t = t }
func (c *counter) row(i, _ int)                           { c.n.Add(c.t.Records(i)) }
func (c *counter) users(*hyperloglog.Sketch, string, int) {}

// count counts the records that pass; above maxTotal it may stop early.
func (r *Reader) count(ctx context.Context, p *plan) (int, error) {
	leave, err := r.room.enter(ctx, 0)
	if err != nil {
		return 0, err
	}
	defer leave()
	var n atomic.Int64
	err = r.scan(ctx, p, &question{
		cubes:   true,
		bucket:  func(int64) int { return 0 },
		collect: func() collector { return &counter{n: &n} },
		merge:   func(collector) {},
		enough:  func() bool { return n.Load() > maxTotal },
	})
	return int(n.Load()), err
}

// frontier is something that records may come from, in the order of its newest
// record: a segment, or one of its row groups.
type frontier struct {
	start int64
	part  *segment.Part
	skip  []uint64 // of groups: what the part leaves out
	group int      // -1: the segment
}

type newestFirst []*frontier

func (q newestFirst) Len() int           { return len(q) }
func (q newestFirst) Less(i, j int) bool { return q[i].start > q[j].start }
func (q newestFirst) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *newestFirst) Push(x any)        { *q = append(*q, x.(*frontier)) }
func (q *newestFirst) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}

// match is a row that passes, without the columns that it stands in.
type match struct {
	start      int64
	id         string
	part       *segment.Part
	group, row int
}

func (m *match) cursor() cursor { return cursor{m.start, m.id} }

// matchWeight is about what a match takes in memory.
const matchWeight = 100

// newest keeps the newest rows that pass, as many as a page can need.
type newest struct {
	rows []match
	most int
}

func (n *newest) add(m match) {
	if n.rows = append(n.rows, m); len(n.rows) >= 2*n.most {
		n.trim()
	}
}

// trim puts the rows in order, and drops those that are too many.
func (n *newest) trim() {
	slices.SortFunc(n.rows, func(x, y match) int { return cmp.Or(cmp.Compare(y.start, x.start), cmp.Compare(y.id, x.id)) })
	if len(n.rows) > n.most {
		clear(n.rows[n.most:])
		n.rows = n.rows[:n.most]
	}
}

// full tells that nothing which began at or before start can be on the page any more.
func (n *newest) full(start int64) bool {
	if len(n.rows) < n.most {
		return false
	}
	n.trim()
	return start < n.rows[n.most-1].start
}

func (r *Reader) page(ctx context.Context, p *plan, before cursor, q *LogQuery) (LogPage, error) {
	leave, err := r.room.enter(ctx, q.weight())
	if err != nil {
		return LogPage{}, err
	}
	defer leave()
	hits, more, err := r.matches(ctx, p, before, q)
	if err != nil {
		return LogPage{}, err
	}
	records, err := r.read(ctx, hits, q.Bodies)
	if err != nil {
		return LogPage{}, err
	}
	page := LogPage{Records: records}
	if more {
		page.Next = hits[len(hits)-1].cursor().String()
	}
	return page, nil
}

// weight is about what finding the page takes of memory.
func (q *LogQuery) weight() int64 { return int64(2*q.most()) * matchWeight }

// most is how many matches are kept to find the page: one more than it has.
func (q *LogQuery) most() int { return max(q.Offset, 0) + max(q.Limit, 1) + 1 }

// matches finds the rows of a page, newest first; more tells whether there are further
// ones behind it.
func (r *Reader) matches(ctx context.Context, p *plan, before cursor, q *LogQuery) (hits []match, more bool, err error) {
	top := newest{most: q.most()}
	list, err := r.archive.List(ctx, p.org, p.from, min(p.to, before.start))
	if err != nil {
		return nil, false, err
	}
	parts := segment.Parts(list)
	queue := make(newestFirst, 0, len(parts))
	for i := range parts {
		queue = append(queue, &frontier{start: parts[i].Max, part: &parts[i], group: -1})
	}
	heap.Init(&queue)
	for len(queue) > 0 && !top.full(queue[0].start) {
		next := heap.Pop(&queue).(*frontier)
		if next.group < 0 {
			err = r.openPart(ctx, p, before, next, &queue, &top)
		} else {
			err = r.openGroup(ctx, p, before, next, &top)
		}
		if err != nil {
			return nil, false, err
		}
	}
	top.trim()
	hits = top.rows[min(max(q.Offset, 0), len(top.rows)):]
	more = len(hits) > max(q.Limit, 1)
	return hits[:min(max(q.Limit, 1), len(hits))], more, nil
}

func (r *Reader) openPart(ctx context.Context, p *plan, before cursor, at *frontier, queue *newestFirst, top *newest) error {
	skip, err := r.twice(ctx, at.part)
	if err != nil {
		return err
	}
	f, err := r.open(ctx, &at.part.Manifest)
	if err != nil {
		return err
	}
	for g := range f.Groups {
		if f.Groups[g].Last < p.from || f.Groups[g].First > min(p.to, before.start) {
			continue
		}
		next := &frontier{start: f.Groups[g].Last, part: at.part, skip: skip, group: g}
		if len(f.Groups) == 1 { // its bytes are there now
			return r.gather(ctx, p, before, f, next, top)
		}
		heap.Push(queue, next)
	}
	return nil
}

func (r *Reader) openGroup(ctx context.Context, p *plan, before cursor, at *frontier, top *newest) error {
	f, err := r.open(ctx, &at.part.Manifest)
	if err != nil {
		return err
	}
	return r.gather(ctx, p, before, f, at, top)
}

// gather finds the rows of a group that are on this page or later ones: of
// those the newest, as many as the page can need. The columns are let go.
func (r *Reader) gather(ctx context.Context, p *plan, before cursor, f *segment.File, at *frontier, top *newest) error {
	give, err := r.room.take(ctx, f.Weight()+p.need.weight(f, at.group, true)+p.filtersWeight(f, at.group)+f.RecordsWeight())
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
		return starts[i] >= p.from && starts[i] <= p.to && starts[i] <= before.start && m.match(i)
	}
	id, err := ids(ctx, f, at.group, t, passes)
	if err != nil || id == nil {
		return err
	}
	found := 0
	for i := len(starts) - 1; i >= 0 && found < top.most; i-- {
		if !passes(i) || starts[i] == before.start && id(i) >= before.id {
			continue
		}
		if _, twice := slices.BinarySearch(at.skip, segment.HashID(id(i))); !twice {
			top.add(match{starts[i], strings.Clone(id(i)), at.part, at.group, i})
			found++
		}
	}
	return nil
}

// fewIDs is up to how many ids are taken from their records: the column of ids is the
// longest, and not kept.
const fewIDs = 3

// ids gives the ids of the rows that pass; nil where there are none.
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

// read gets the records of the rows, in their order, group by group.
func (r *Reader) read(ctx context.Context, hits []match, bodies bool) ([]usage.Record, error) {
	records := make([]usage.Record, len(hits))
	type place struct {
		part  *segment.Part
		group int
	}
	byGroup := make(map[place][]int) // indexes into hits
	for i, h := range hits {
		k := place{h.part, h.group}
		byGroup[k] = append(byGroup[k], i)
	}
	for k, indexes := range byGroup {
		slices.SortFunc(indexes, func(x, y int) int { return cmp.Compare(hits[x].row, hits[y].row) })
		rows := make([]int, len(indexes))
		for i, at := range indexes {
			rows[i] = hits[at].row
		}
		got, err := r.records(ctx, &k.part.Manifest, k.group, rows, bodies)
		if err != nil {
			return nil, err
		}
		for i, at := range indexes {
			records[at] = got[i]
		}
	}
	return records, nil
}

// records reads records of one group of a segment.
func (r *Reader) records(ctx context.Context, m *segment.Manifest, group int, rows []int, bodies bool) ([]usage.Record, error) {
	f, err := r.open(ctx, m)
	if err != nil {
		return nil, err
	}
	weight := f.RecordsWeight()
	if bodies {
		weight += f.BodiesWeight(group)
	}
	give, err := r.room.take(ctx, weight)
	if err != nil {
		return nil, err
	}
	defer give()
	records, err := f.Records(ctx, group, rows)
	if err != nil || !bodies {
		return records, err
	}
	sealed, err := f.Bodies(ctx, group)
	if err != nil {
		return nil, err
	}
	for i := range records {
		if err := r.bodies(ctx, sealed, rows[i], &records[i]); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// bodies reads the sealed bodies of one record, wherever they are.
func (r *Reader) bodies(ctx context.Context, of *segment.Bodies, row int, rec *usage.Record) (err error) {
	if rec.Bodies, err = of.Row(ctx, row); err != nil {
		return err
	}
	return r.fetchBodies(ctx, rec)
}

// fetchBodies reads bodies that stand in the bucket for themselves. They are kept for
// a shorter time than the record.
func (r *Reader) fetchBodies(ctx context.Context, rec *usage.Record) (err error) {
	if rec.Blob == "" {
		return nil
	}
	if rec.Bodies, err = r.bucket.Get(ctx, rec.Blob, 0); errors.Is(err, blob.ErrNotFound) {
		err = nil
	}
	return err
}

// Log gives one record with its sealed bodies; ok is false when the scope has
// none of that id. The caller opens the bodies.
func (r *Reader) Log(ctx context.Context, sc store.Scope, id string) (rec usage.Record, ok bool, err error) {
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return usage.Record{}, false, nil // no log ever had it
	}
	at := parsed.Timestamp().UnixMicro()
	err = again(func() (err error) {
		rec, ok, err = r.log(ctx, sc, id, at)
		return err
	})
	if err != nil || !ok {
		return rec, ok, err
	}
	err = r.fetchBodies(ctx, &rec)
	return rec, ok, err
}

func (r *Reader) log(ctx context.Context, sc store.Scope, id string, at int64) (usage.Record, bool, error) {
	until := at + time.Millisecond.Microseconds() - 1
	leave, err := r.room.enter(ctx, 0)
	if err != nil {
		return usage.Record{}, false, err
	}
	defer leave()
	list, err := r.archive.List(ctx, sc.Org, at, until)
	if err != nil {
		return usage.Record{}, false, err
	}
	for i := range list {
		f, err := r.open(ctx, &list[i])
		if err != nil {
			return usage.Record{}, false, err
		}
		for g := range f.Groups {
			if f.Groups[g].Last < at || f.Groups[g].First > until {
				continue
			}
			if rec, ok, err := r.pick(ctx, f, g, id); err != nil || ok {
				if ok && sc.Workspace != "" && rec.Workspace != sc.Workspace {
					return usage.Record{}, false, nil
				}
				return rec, ok, err
			}
		}
	}
	return usage.Record{}, false, nil
}

// pick reads the record of an id, with its bodies, from a group that may have it.
func (r *Reader) pick(ctx context.Context, f *segment.File, group int, id string) (rec usage.Record, ok bool, err error) {
	need := columns{}
	give, err := r.room.take(ctx, f.Weight()+need.weight(f, group, true)+f.RecordsWeight()+f.BodiesWeight(group))
	if err != nil {
		return usage.Record{}, false, err
	}
	defer give()
	ids, err := f.Strings(ctx, group, segment.ID)
	if err != nil {
		return usage.Record{}, false, err
	}
	row := find(ids, id)
	if row < 0 {
		return usage.Record{}, false, nil
	}
	records, err := f.Records(ctx, group, []int{row})
	if err != nil {
		return usage.Record{}, false, err
	}
	rec = records[0]
	sealed, err := f.Bodies(ctx, group)
	if err != nil {
		return usage.Record{}, false, err
	}
	rec.Bodies, err = sealed.Row(ctx, row)
	return rec, err == nil, err
}

// find gives the row that has the value, or -1.
func find(s *segment.Strings, value string) int {
	for code, v := range s.Values {
		if v != value {
			continue
		}
		if s.Codes == nil {
			return 0
		}
		return slices.Index(s.Codes, uint32(code))
	}
	return -1
}

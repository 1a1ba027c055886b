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
}

// LogPage is a page of logs. Their sealed bodies are left out: see Log.
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
	before := cursor{math.MaxInt64, ""}
	if q.Cursor != "" {
		if before, err = parseCursor(q.Cursor); err != nil {
			return LogPage{}, err
		}
	}
	err = again(func() (err error) {
		page, err = r.page(ctx, p, before, max(q.Offset, 0), max(q.Limit, 1))
		return err
	})
	if err != nil || q.NoTotal {
		return page, err
	}
	err = again(func() (err error) {
		page.Total, err = r.count(ctx, p)
		return err
	})
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
	var n atomic.Int64
	err := r.scan(ctx, p, &question{
		cubes:   true,
		bucket:  func(int64) int { return 0 },
		collect: func() collector { return &counter{n: &n} },
		merge:   func(collector) {},
		enough:  func() bool { return n.Load() > maxTotal },
	})
	return int(n.Load()), err
}

// frontier is something that records may come from, in the order of its newest
// record: a segment, one of its row groups, or the matching rows of a group.
type frontier struct {
	start int64
	id    string // of rows only
	kind  int8   // parts and groups are opened before rows of the same start are taken
	part  *segment.Part
	file  *segment.File
	group int
	rows  []match // matching rows, ascending; the last one is next
}

// match is a row that passes, without the columns that it stands in.
type match struct {
	row   int
	start int64
	id    string
}

const (
	rowsKind int8 = iota
	groupKind
	partKind
)

type newestFirst []*frontier

func (q newestFirst) Len() int { return len(q) }
func (q newestFirst) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[j].start, q[i].start), cmp.Compare(q[j].kind, q[i].kind), cmp.Compare(q[j].id, q[i].id)) < 0
}
func (q newestFirst) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *newestFirst) Push(x any)   { *q = append(*q, x.(*frontier)) }
func (q *newestFirst) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// found is a row of the page.
type found struct {
	file  *segment.File
	group int
	row   int
}

func (r *Reader) page(ctx context.Context, p *plan, before cursor, offset, limit int) (LogPage, error) {
	list, err := r.archive.List(ctx, p.org, p.from, min(p.to, before.start))
	if err != nil {
		return LogPage{}, err
	}
	leave, err := shared.enter(ctx)
	if err != nil {
		return LogPage{}, err
	}
	defer leave()
	parts, err := r.archive.Overlaps(ctx, list)
	if err != nil {
		return LogPage{}, err
	}
	most := offset + limit + 1
	queue := make(newestFirst, 0, len(parts))
	for i := range parts {
		queue = append(queue, &frontier{start: parts[i].Max, kind: partKind, part: &parts[i]})
	}
	heap.Init(&queue)
	var hits []found
	var last cursor
	more := false
	for len(queue) > 0 {
		top := queue[0]
		switch top.kind {
		case partKind:
			heap.Pop(&queue)
			if err := r.openPart(ctx, p, before, top, &queue); err != nil {
				return LogPage{}, err
			}
		case groupKind:
			heap.Pop(&queue)
			if err := r.openGroup(ctx, p, before, top, most, &queue); err != nil {
				return LogPage{}, err
			}
		default:
			if len(hits) == limit {
				more = true
				queue = nil
				continue
			}
			if offset > 0 {
				offset--
			} else {
				hits = append(hits, found{top.file, top.group, top.rows[len(top.rows)-1].row})
				last = cursor{top.start, top.id}
			}
			if top.step() {
				heap.Fix(&queue, 0)
			} else {
				heap.Pop(&queue)
			}
		}
	}
	records, err := read(ctx, hits)
	if err != nil {
		return LogPage{}, err
	}
	page := LogPage{Records: records}
	if more {
		page.Next = last.String()
	}
	return page, nil
}

// step goes on to the next older row.
func (f *frontier) step() bool {
	f.rows = f.rows[:len(f.rows)-1]
	if len(f.rows) == 0 {
		return false
	}
	f.present()
	return true
}

func (f *frontier) present() {
	last := &f.rows[len(f.rows)-1]
	f.start, f.id = last.start, last.id
}

func (r *Reader) openPart(ctx context.Context, p *plan, before cursor, top *frontier, queue *newestFirst) error {
	f, err := r.archive.File(ctx, &top.part.Manifest)
	if err != nil {
		return err
	}
	for g := range f.Groups {
		if f.Groups[g].Last >= p.from && f.Groups[g].First <= min(p.to, before.start) {
			heap.Push(queue, &frontier{start: f.Groups[g].Last, kind: groupKind, part: top.part, file: f, group: g})
		}
	}
	return nil
}

// openGroup finds the rows of a group that are on this page or later ones: of
// those the newest, as many as the page can need. The columns are let go.
func (r *Reader) openGroup(ctx context.Context, p *plan, before cursor, top *frontier, most int, queue *newestFirst) error {
	give, err := shared.take(ctx, p.need.weight(&top.file.Groups[top.group], true))
	if err != nil {
		return err
	}
	defer give()
	t, err := load(ctx, top.file, top.group, &p.need, true)
	if err != nil {
		return err
	}
	ids, err := top.file.Strings(ctx, top.group, segment.ID)
	if err != nil {
		return err
	}
	t.Dims[segment.ID] = ids
	m := p.matcher(t)
	if m.never {
		return nil
	}
	var rows []match
	starts := t.Ints[segment.Start]
	for i := len(starts) - 1; i >= 0 && len(rows) < most; i-- {
		start := starts[i]
		if start < p.from || start > p.to || start > before.start || start == before.start && ids.At(i) >= before.id || !m.match(i) {
			continue
		}
		if _, twice := top.part.Skip[segment.HashID(ids.At(i))]; !twice {
			rows = append(rows, match{i, start, strings.Clone(ids.At(i))})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.Reverse(rows)
	next := &frontier{kind: rowsKind, part: top.part, file: top.file, group: top.group, rows: rows}
	next.present()
	heap.Push(queue, next)
	return nil
}

// read gets the records of the rows, in their order, group by group.
func read(ctx context.Context, hits []found) ([]usage.Record, error) {
	records := make([]usage.Record, len(hits))
	type place struct {
		file  *segment.File
		group int
	}
	byGroup := make(map[place][]int) // indexes into hits
	for i, h := range hits {
		k := place{h.file, h.group}
		byGroup[k] = append(byGroup[k], i)
	}
	for k, indexes := range byGroup {
		slices.SortFunc(indexes, func(x, y int) int { return cmp.Compare(hits[x].row, hits[y].row) })
		rows := make([]int, len(indexes))
		for i, at := range indexes {
			rows[i] = hits[at].row
		}
		got, err := k.file.Records(ctx, k.group, rows)
		if err != nil {
			return nil, err
		}
		for i, at := range indexes {
			records[at] = got[i]
		}
	}
	return records, nil
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
	if err != nil || !ok || rec.Blob == "" {
		return rec, ok, err
	}
	if rec.Bodies, err = r.bucket.Get(ctx, rec.Blob, 0); errors.Is(err, blob.ErrNotFound) {
		err = nil // kept for a shorter time than the record
	}
	return rec, ok, err
}

func (r *Reader) log(ctx context.Context, sc store.Scope, id string, at int64) (usage.Record, bool, error) {
	until := at + time.Millisecond.Microseconds() - 1
	list, err := r.archive.List(ctx, sc.Org, at, until)
	if err != nil {
		return usage.Record{}, false, err
	}
	for i := range list {
		f, err := r.archive.File(ctx, &list[i])
		if err != nil {
			return usage.Record{}, false, err
		}
		for g := range f.Groups {
			if f.Groups[g].Last < at || f.Groups[g].First > until {
				continue
			}
			ids, err := f.Strings(ctx, g, segment.ID)
			if err != nil {
				return usage.Record{}, false, err
			}
			row := find(ids, id)
			if row < 0 {
				continue
			}
			records, err := f.Records(ctx, g, []int{row})
			if err != nil {
				return usage.Record{}, false, err
			}
			rec := records[0]
			if sc.Workspace != "" && rec.Workspace != sc.Workspace {
				return usage.Record{}, false, nil
			}
			rec.Bodies, err = f.Bodies(ctx, g, row)
			return rec, true, err
		}
	}
	return usage.Record{}, false, nil
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

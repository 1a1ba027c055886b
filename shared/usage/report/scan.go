package report

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/axiomhq/hyperloglog"
	"golang.org/x/sync/errgroup"

	"gateway/shared/blob"
	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// Reader runs queries. It is safe for concurrent use.
type Reader struct {
	src source
	sql *sqlQueries // nil if this process runs all queries
}

// New returns a reader of an archive; bucket contains bodies that records refer to.
func New(a *segment.Archive, b blob.Bucket) *Reader {
	return &Reader{src: source{archive: a, bucket: b, budget: shared}}
}

// query is what a scan needs besides the filter.
type query struct {
	need    columns
	cubes   bool                  // cubes suffice
	users   bool                  // unique end users are counted
	bucket  func(start int64) int // time bucket of a record
	collect func() collector      // one per goroutine
	enough  func() bool           // reports whether the scan may stop; may be nil
	merge   func(collector)       // called for each collector, one at a time
	alone   *sync.Mutex           // all goroutines share one collector, for one table at a time; may be nil
}

// begin waits until the caller may collect from a table; end admits the next one.
func (q *query) begin() (end func()) {
	if q.alone == nil {
		return func() {}
	}
	q.alone.Lock()
	return q.alone.Unlock
}

// collector collects rows.
type collector interface {
	begin(t *view)                                      // rows of t follow
	row(i, bucket int)                                  //
	users(u *hyperloglog.Sketch, ws string, bucket int) // users of one hour of one workspace, instead of the users of rows
}

// readers is the maximum number of segments that one query reads concurrently.
const readers = 8

// run scans for a filter.
func (r *Reader) run(ctx context.Context, sc store.Scope, f *Filter, q *query) error {
	p, err := r.requests(ctx, sc, f)
	if err != nil {
		return err
	}
	return r.scan(ctx, p, q)
}

// scan passes every matching record to a collector, once. The caller was admitted by the
// memory budget.
func (r *Reader) scan(ctx context.Context, p *plan, q *query) error {
	list, err := r.src.archive.List(ctx, p.org, p.from, p.to)
	if err != nil {
		return err
	}
	return newScan(&r.src, p, q).run(ctx, segment.Parts(list))
}

// scan passes every matching record to the collectors of a query, once.
type scan struct {
	src  *source
	p    *plan
	q    *query
	need columns // of both
}

func newScan(src *source, p *plan, q *query) *scan {
	need := q.need
	for d, on := range p.need.dims {
		need.dims[d] = need.dims[d] || on
	}
	for i, on := range p.need.ints {
		need.ints[i] = need.ints[i] || on
	}
	for key := range p.need.meta {
		need.metadata(key)
	}
	return &scan{src, p, q, need}
}

// run scans parts.
func (sc *scan) run(ctx context.Context, parts []segment.Part) error {
	work := make(chan *segment.Part)
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(work)
		for i := range parts {
			if sc.q.enough != nil && sc.q.enough() {
				return nil
			}
			select {
			case work <- &parts[i]:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	// Twice the number of processors: some wait for the store while others compute.
	for range min(len(parts), 2*runtime.GOMAXPROCS(0), readers) {
		g.Go(func() error {
			c := sc.q.collect()
			for part := range work {
				counts, remembers := c.(*counter)
				if remembers && counts.useCached(sc.src.archive, sc.p, part) {
					continue
				}
				if err := sc.part(ctx, part, c); err != nil {
					return err
				}
				if remembers && !sc.q.enough() {
					counts.store(sc.src.archive, sc.p, part)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			sc.q.merge(c)
			return nil
		})
	}
	return g.Wait()
}

// retryMerged repeats a query if a merge has replaced segments that it was reading.
func retryMerged(attempt func() error) error {
	err := attempt()
	if errors.Is(err, segment.ErrDeleted) {
		err = attempt()
	}
	return err
}

// part scans one segment.
func (sc *scan) part(ctx context.Context, part *segment.Part, c collector) error {
	p, q := sc.p, sc.q
	skip, err := sc.src.duplicates(ctx, part)
	if err != nil {
		return err
	}
	var split map[int64]struct{} // hours that the cube does not cover; nil means all hours
	if p.cubes && q.cubes && skip == nil && (!q.users || p.users) {
		if split, err = sc.cube(ctx, part, c); err != nil || len(split) == 0 {
			return err
		}
	}
	f, err := sc.src.open(ctx, &part.Manifest)
	if err != nil {
		return err
	}
	weight := int64(0)
	for g := range f.Groups {
		if p.wanted(&f.Groups[g], split) {
			weight = max(weight, sc.need.weight(f, g, skip != nil)+p.filtersWeight(f, g))
		}
	}
	give, err := sc.src.budget.acquire(ctx, f.Weight()+8*int64(len(skip))+weight)
	if err != nil {
		return err
	}
	defer give()
	for g := range f.Groups {
		if !p.wanted(&f.Groups[g], split) {
			continue
		}
		if q.enough != nil && q.enough() {
			return nil
		}
		if can, err := p.mayHave(ctx, f, g); err != nil {
			return err
		} else if !can {
			continue
		}
		t, m, err := p.load(ctx, f, g, &sc.need, skip != nil)
		if err != nil {
			return err
		}
		if !m.never {
			p.records(q, t, m, skip, split, c)
		}
	}
	return nil
}

// cube scans the cube of a part; split are the hours that the cube does not cover.
func (sc *scan) cube(ctx context.Context, part *segment.Part, c collector) (split map[int64]struct{}, err error) {
	give, err := sc.src.budget.acquire(ctx, part.CubeWeight())
	if err != nil {
		return nil, err
	}
	defer give()
	cube, err := sc.src.archive.Cube(ctx, &part.Manifest)
	if err != nil {
		return nil, err
	}
	defer sc.q.begin()()
	return sc.p.cube(sc.q, cube, c), nil
}

func hourOf(start int64) int64 { return start - start%segment.Hour }

// cube passes the collector the cells that are completely within the time and one bucket,
// hour by hour; split are the hours with other cells.
func (p *plan) cube(q *query, cube *segment.Cube, c collector) (split map[int64]struct{}) {
	t := &view{Table: cube.Cells}
	m := p.matcher(t)
	split = make(map[int64]struct{})
	if m.never {
		return split
	}
	for i := range t.N {
		first, last := t.Seen(i)
		if q.users { // sketches cover whole hours
			first = t.Ints[segment.Start][i]
			last = first + segment.Hour - 1
		}
		whole := first >= p.from && last <= p.to && q.bucket(first) == q.bucket(last)
		if outside := last < p.from || first > p.to; !whole && !outside && m.match(i) {
			split[t.Ints[segment.Start][i]] = struct{}{}
		}
	}
	c.begin(t)
	for i := range t.N {
		hour := t.Ints[segment.Start][i]
		if _, ok := split[hour]; ok {
			continue
		}
		if first, last := t.Seen(i); first >= p.from && last <= p.to && m.match(i) {
			c.row(i, q.bucket(first))
		}
	}
	if !q.users {
		return split
	}
	for k, u := range cube.Users {
		_, ok := split[k.Hour]
		if set := p.dims[segment.Workspace]; set != nil && !ok {
			_, in := set[k.Workspace]
			ok = !in
		}
		if !ok && k.Hour >= p.from && k.Hour >= p.cut.First(k.Workspace) && k.Hour+segment.Hour-1 <= p.to {
			c.users(u, k.Workspace, q.bucket(k.Hour))
		}
	}
	return split
}

// wanted reports whether a row group can contain records of the query.
func (p *plan) wanted(g *segment.Group, split map[int64]struct{}) bool {
	if g.Last < p.from || g.First > p.to {
		return false
	}
	if split == nil {
		return true
	}
	for hour := hourOf(g.First); hour <= g.Last; hour += segment.Hour {
		if _, ok := split[hour]; ok {
			return true
		}
	}
	return false
}

// mayHave reports whether a group may have matching records, as far as that is known
// without reading columns.
func (p *plan) mayHave(ctx context.Context, f *segment.File, group int) (bool, error) {
	for _, d := range segment.FilteredDims() {
		if p.dims[d] == nil {
			continue
		}
		if can, err := f.MayHave(ctx, group, d, p.dims[d]); err != nil || !can {
			return false, err
		}
	}
	return true, nil
}

// filtersWeight estimates the memory in bytes of mayHave for a group.
func (p *plan) filtersWeight(f *segment.File, group int) (sum int64) {
	for _, d := range segment.FilteredDims() {
		if p.dims[d] != nil {
			sum += f.MayHaveWeight(group, d)
		}
	}
	return sum
}

// records passes the matching records to the collector.
func (p *plan) records(q *query, t *view, m *matcher, skip []uint64, split map[int64]struct{}, c collector) {
	defer q.begin()()
	c.begin(t)
	for i, start := range t.Ints[segment.Start] {
		if start < p.from || start > p.to || !m.match(i) {
			continue
		}
		if split != nil {
			if _, ok := split[hourOf(start)]; !ok {
				continue
			}
		}
		if skip != nil {
			if _, twice := slices.BinarySearch(skip, segment.HashID(t.Dims[segment.ID].At(i))); twice {
				continue
			}
		}
		c.row(i, q.bucket(start))
	}
}

// load reads the required columns of a row group: first those of the filter, then the
// others if a record can match.
func (p *plan) load(ctx context.Context, f *segment.File, group int, need *columns, ids bool) (*view, *matcher, error) {
	t := &view{Table: &segment.Table{N: f.Groups[group].Rows}}
	if err := t.load(ctx, f, group, &p.need, false); err != nil {
		return nil, nil, err
	}
	m := p.matcher(t)
	if m.never {
		return t, m, nil
	}
	return t, m, t.load(ctx, f, group, need, ids)
}

// load reads the columns that have not been read yet.
func (t *view) load(ctx context.Context, f *segment.File, group int, need *columns, ids bool) (err error) {
	for d, on := range need.dims {
		if (on || ids && segment.Dim(d) == segment.ID) && t.Dims[d] == nil {
			if t.Dims[d], err = f.Strings(ctx, group, segment.Dim(d)); err != nil {
				return err
			}
		}
	}
	for i, on := range need.ints {
		if on && t.Ints[i] == nil {
			if t.Ints[i], err = f.Ints(ctx, group, segment.Int(i)); err != nil {
				return err
			}
		}
	}
	for key := range need.meta {
		if t.meta == nil {
			t.meta = make(map[string]*segment.Strings)
		}
		if t.meta[key] != nil {
			continue
		}
		if t.meta[key], err = f.Metadata(ctx, group, key); err != nil {
			return err
		}
	}
	return nil
}

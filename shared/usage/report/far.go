package report

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage/segment"
)

// Far is an engine that reads the archive's files by SQL, for questions that are too large
// for one process. It speaks Athena's dialect of SQL.
type Far interface {
	// Table is the name of the files' table in queries.
	Table() string
	// Question returns a context whose queries all belong to one question of a caller: limits
	// on questions are checked only for the first query.
	Question(ctx context.Context) context.Context
	// Query returns the rows of a query about an organisation; nil is a NULL. Errors are
	// faults: a 503 if it takes too long, a 400 if it reads too much, a 429 if it reads too
	// much for this hour.
	Query(ctx context.Context, org, sql string) ([][]*string, error)
}

// FarRecords is a usual limit for WithFar: a question that has to read at least so many
// records one by one goes to the engine. One process reads about a million a second.
const FarRecords = 15_000_000

// WithFar sends questions to an engine that are too large for this process: those that
// would read at least so many records one by one, and those with too many groups to sort
// here. This process still reads the parts of hours at both ends, the hours that are not
// yet completely in the files, and a few segments that are in the store, and adds them: the
// answers are the same.
func (r *Reader) WithFar(f Far, records int64) *Reader {
	r.beyond = &beyond{here: r, far: f, records: records}
	return r
}

// beyond sends questions to the engine that are too large for this process.
type beyond struct {
	here    *Reader // answers for the time and the segments that the files do not cover
	far     Far
	records int64 // with so many records a question is too large for this process
}

// reach is the part of a question that the files answer: whole hours.
type reach struct {
	from, to int64 // microseconds; to is not part of it
	parts    []segment.Part
	holes    []segment.Part // parts of the same time that are in no file: they are read here
}

// Holes are few, and are in hours that are over, so that the same question has the same
// text while new segments arrive.
const (
	mostHoles = 64
	holesLast = 3 * segment.Hour // they end so long before the last record
)

// until is the time up to which the files of a list answer, at most to: it is the beginning
// of the first segment that is in no file and is not a hole.
func until(list []segment.Manifest, to int64) int64 {
	var hidden []*segment.Manifest
	last := int64(math.MinInt64)
	for i := range list {
		if last = max(last, list[i].Max); !list[i].InFile() {
			hidden = append(hidden, &list[i])
		}
	}
	slices.SortFunc(hidden, func(x, y *segment.Manifest) int { return cmp.Compare(x.Min, y.Min) })
	for i, m := range hidden {
		if i == mostHoles || m.Max >= hourOf(last)-holesLast {
			return min(to, hourOf(m.Min))
		}
	}
	return to
}

// records is the number of records in the parts.
func (f *reach) records() (sum int64) {
	for i := range f.parts {
		sum += f.parts[i].Records
	}
	return sum
}

// reach finds which part of a plan the files can answer; nil: none, or not by SQL.
func (e *beyond) reach(ctx context.Context, p *plan) (*reach, error) {
	if !p.speakable() {
		return nil, nil
	}
	list, err := e.here.src.archive.List(ctx, p.org, p.from, p.to)
	if err != nil {
		return nil, err
	}
	f := &reach{from: hourOf(p.from + segment.Hour - 1), to: until(list, hourOf(p.to+1))}
	if f.to <= f.from {
		return nil, nil
	}
	list = slices.DeleteFunc(list, func(m segment.Manifest) bool { return m.Max < f.from || m.Min >= f.to })
	f.holes = segment.Holes(list)
	list = slices.DeleteFunc(list, func(m segment.Manifest) bool { return !m.InFile() })
	if f.parts = segment.Parts(list); len(f.parts) == 0 || len(f.parts) > mostFiles {
		return nil, nil
	}
	return f, nil
}

// outgrown is the reach of a question that would read too many records one by one; nil: the
// question is answered here. That is so if cubes answer it, if its filters by id leave only
// a few files, or if it counts users, because the engine has no sketches of users.
func (e *beyond) outgrown(ctx context.Context, p *plan, q *question) (*reach, error) {
	if e == nil || p.cubes && q.cubes || q.users || p.sought() {
		return nil, nil
	}
	f, err := e.reach(ctx, p)
	if err != nil || f == nil || f.records() < e.records {
		return nil, err
	}
	return f, nil
}

// sought tells whether an id decides which files are read.
func (p *plan) sought() bool {
	return p.dims[segment.TraceID] != nil || p.dims[segment.SpanID] != nil || p.dims[segment.Session] != nil
}

// near reads with this process the parts of a plan's time that the files do not answer.
func (e *beyond) near(ctx context.Context, p *plan, f *reach, q *question) error {
	for _, span := range [][2]int64{{p.from, f.from - 1}, {f.to, p.to}} {
		if span[0] > span[1] {
			continue
		}
		part := *p
		part.from, part.to = span[0], span[1]
		if err := e.here.scan(ctx, &part, q); err != nil {
			return err
		}
	}
	within := *p
	within.from, within.to = f.from, f.to-1
	return newScan(&e.here.src, &within, q).run(ctx, f.holes)
}

// sum gathers the answer in sum, from the files and from the rest. If the question cannot
// be written as a query that the engine reads, it is answered here.
func (e *beyond) sum(ctx context.Context, p *plan, f *reach, q *question, b buckets, sum *tally) error {
	s := statement{far: e.far, plan: p, reach: f, aspect: sum.aspect, buckets: b}
	// Each group has a row for each bucket, and the last group that is gathered may begin at
	// the limit. With so many rows there is one group too many.
	most := sum.maxGroups() + b.n
	stats, latencies := s.stats(most), ""
	if sum.latencies {
		latencies = s.bins(nil, most)
	}
	if !tellable(stats) || !tellable(latencies) {
		return e.here.scan(ctx, p, q)
	}
	sum.far = true
	var rows, bins [][]*string
	g, asking := errgroup.WithContext(e.far.Question(ctx))
	g.Go(func() (err error) {
		rows, err = e.far.Query(asking, p.org, stats)
		return err
	})
	if sum.latencies {
		g.Go(func() (err error) {
			bins, err = e.far.Query(asking, p.org, latencies)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, row := range rows {
		at, i, err := place(row, b)
		if err != nil {
			return err
		}
		list := sum.list(at)
		if list == nil {
			return nil // too many groups; over says so
		}
		if err := list[i].addRow(row[2:]); err != nil {
			return err
		}
	}
	for _, row := range bins {
		at, i, err := place(row, b)
		if err != nil {
			return err
		}
		if list := sum.list(at); list != nil {
			if err := addBins(&list[i].latencies, row[2]); err != nil {
				return err
			}
		}
	}
	return e.near(ctx, p, f, q)
}

// place returns the group and the bucket of a row.
func place(row []*string, b buckets) (group string, bucket int, err error) {
	if len(row) < 3 || row[0] == nil || row[1] == nil {
		return "", 0, errRow
	}
	n, err := strconv.Atoi(*row[1])
	return *row[0], min(max(n, 0), b.n-1), err
}

// mostRanked is how many groups the engine sorts for one page. mostNear is how many groups
// there may be in the hours that the engine does not have.
const (
	mostRanked = 10_000
	mostNear   = 4000
)

// ranked does what Groups does when there are too many groups to gather: the engine sorts
// them. The query names the groups of the hours that the files do not have yet: the engine
// returns their numbers whatever their place is, and of the other groups those that come
// first. ok is false if this is not possible.
func (e *beyond) ranked(ctx context.Context, sc store.Scope, q *GroupQuery, a aspect) (page []Group, n int, ok bool, err error) {
	wanted := q.wanted()
	if isQuantile(q.OrderBy) || wanted > mostRanked {
		return nil, 0, false, nil
	}
	p, err := e.here.requests(ctx, sc, &q.Filter)
	if err != nil {
		return nil, 0, false, err
	}
	f, err := e.reach(ctx, p)
	if err != nil || f == nil {
		return nil, 0, false, err
	}
	a.share, a.shares = 0, 1
	var sum *tally
	err = again(func() error {
		sum = newTally(a, 1)
		return e.near(ctx, p, f, sum.question(whole))
	})
	if err != nil || sum.over.Load() || len(sum.groups) > mostNear {
		return nil, 0, false, err
	}
	s := statement{far: e.far, plan: p, reach: f, aspect: a, buckets: whole}
	names := slices.Sorted(maps.Keys(sum.groups))
	if size := len(strings.Join(names, "', '")); size > mostValues {
		return nil, 0, false, nil
	}
	nearby := len(names)
	if q.MetadataKey == "" && sum.groups[""] != nil {
		nearby--
	}
	asked := s.ranked(q, names, wanted)
	if !tellable(asked) {
		return nil, 0, false, nil
	}
	rows, err := e.far.Query(ctx, p.org, asked)
	if err != nil {
		return nil, 0, false, err
	}
	for _, row := range rows {
		name, _, err := place(row, whole)
		if err != nil || len(row) != 3+len(measures) {
			return nil, 0, false, errRow
		}
		list := sum.groups[name]
		if list == nil {
			list = make([]Stats, 1)
			sum.groups[name] = list
			if n, err = strconv.Atoi(*row[1]); err != nil { // number of groups in the files only
				return nil, 0, false, err
			}
		}
		if err := list[0].addRow(row[3:]); err != nil {
			return nil, 0, false, err
		}
	}
	sum.finish(&q.Filter)
	for value, list := range sum.groups {
		if list[0].Requests > 0 && (value != "" || q.MetadataKey != "") {
			page = append(page, Group{value, list[0]})
		}
	}
	n += nearby
	page = q.trim(page, wanted)
	page = page[min(max(q.Offset, 0), len(page)):]
	if a.latencies && len(page) > 0 {
		err = e.pageBins(ctx, &s, page)
	}
	return page, n, true, err
}

// pageBins adds the latencies in the files to those of a page's groups. If the names take
// more text than the engine reads, it asks for one half after the other.
func (e *beyond) pageBins(ctx context.Context, s *statement, page []Group) error {
	names, at := make([]string, len(page)), make(map[string]*Group, len(page))
	for i := range page {
		names[i], at[page[i].Value] = page[i].Value, &page[i]
	}
	asked := s.bins(names, len(names))
	if half := len(page) / 2; len(asked) > mostText && half > 0 {
		if err := e.pageBins(ctx, s, page[:half]); err != nil {
			return err
		}
		return e.pageBins(ctx, s, page[half:])
	}
	rows, err := e.far.Query(ctx, s.plan.org, asked)
	if err != nil {
		return err
	}
	for _, row := range rows {
		name, _, err := place(row, whole)
		if err != nil {
			return err
		}
		if g := at[name]; g != nil {
			if err := addBins(&g.latencies, row[2]); err != nil {
				return err
			}
		}
	}
	return nil
}

// errRow is returned for rows that no query of ours produces.
var errRow = fault.Unavailable(errStrange{})

type errStrange struct{}

func (errStrange) Error() string {
	return "report: the engine's rows are not those that were asked for"
}

// addRow adds the measures of a row.
func (s *Stats) addRow(row []*string) error {
	if len(row) != len(measures) {
		return errRow
	}
	one := Stats{}
	for i, m := range measures {
		if row[i] == nil {
			return errRow
		}
		n, err := strconv.ParseInt(*row[i], 10, 64)
		if err != nil {
			return errRow
		}
		m.set(&one, n)
	}
	s.merge(&one)
	return nil
}

// addBins adds counts given as text, such as "12:3 14:1".
func addBins(h *segment.Histogram, text *string) error {
	if text == nil {
		return errRow
	}
	for part := range strings.FieldsSeq(*text) {
		bin, count, _ := strings.Cut(part, ":")
		b, err := strconv.Atoi(bin)
		if err != nil {
			return errRow
		}
		n, err := strconv.ParseInt(count, 10, 64)
		if err != nil || n <= 0 || b < 0 || b > math.MaxInt16 {
			return errRow
		}
		h.AddBucket(b, n)
	}
	return nil
}

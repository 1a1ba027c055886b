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

// SQLEngine reads the archive's files by SQL, for queries too large for one process. It
// uses Athena's SQL dialect.
type SQLEngine interface {
	// Table returns the name of the files' table in queries.
	Table() string
	// WithQueryLimits returns a context for all SQL queries of one request: limits are checked
	// only for the first.
	WithQueryLimits(ctx context.Context) context.Context
	// Query returns the rows of a query about an organization; nil is a NULL. Errors are
	// faults: 503 if it takes too long, 400 if it reads too much, 429 if the hour's quota
	// is exhausted.
	Query(ctx context.Context, org, sql string) ([][]*string, error)
}

// SQLEngineRecords is a typical limit for WithSQLEngine: a query that has to read at
// least this many records individually goes to the engine. One process reads about a
// million per second.
const SQLEngineRecords = 15_000_000

// WithSQLEngine sends queries to an engine that are too large for this process: those
// that would read at least the given number of records individually, and those with too
// many groups to sort here. This process still reads partial hours at both ends, hours
// not yet completely in files, and a few segments in the store, and adds them: the
// results are the same.
func (r *Reader) WithSQLEngine(f SQLEngine, records int64) *Reader {
	r.sql = &sqlQueries{inProcess: r, engine: f, records: records}
	return r
}

// sqlQueries runs queries on the engine that are too large for this process.
type sqlQueries struct {
	inProcess *Reader // computes the time and the segments that the files do not cover
	engine    SQLEngine
	records   int64 // minimum number of records of a query for the engine
}

// coverage is the part of a query that the files cover: whole hours.
type coverage struct {
	from, to int64 // microseconds; to is exclusive
	parts    []segment.Part
	holes    []segment.Part // parts of the same time without a file, which this process reads
}

// Holes are few and in past hours, so that the same query has the same text while new
// segments arrive.
const (
	mostHoles = 64
	holesLast = 3 * segment.Hour // they end this long before the last record
)

// until returns the time, at most to, up to which the files cover a list: the start of
// the first segment without a file that is not a hole.
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

// records returns the number of records in the parts.
func (f *coverage) records() (sum int64) {
	for i := range f.parts {
		sum += f.parts[i].Records
	}
	return sum
}

// coverage returns the part of a plan that the files cover; nil if there is none or the
// plan cannot be expressed in SQL.
func (e *sqlQueries) coverage(ctx context.Context, p *plan) (*coverage, error) {
	if !p.expressible() {
		return nil, nil
	}
	list, err := e.inProcess.src.archive.List(ctx, p.org, p.from, p.to)
	if err != nil {
		return nil, err
	}
	f := &coverage{from: hourOf(p.from + segment.Hour - 1), to: until(list, hourOf(p.to+1))}
	if f.to <= f.from {
		return nil, nil
	}
	list = slices.DeleteFunc(list, func(m segment.Manifest) bool { return m.Max < f.from || m.Min >= f.to })
	f.holes = segment.PartsNotInFiles(list)
	list = slices.DeleteFunc(list, func(m segment.Manifest) bool { return !m.InFile() })
	if f.parts = segment.Parts(list); len(f.parts) == 0 || len(f.parts) > maxFiles {
		return nil, nil
	}
	return f, nil
}

// oversized returns the coverage of a query that would read too many records
// individually; nil if this process computes the query. The latter applies if cubes
// suffice, if filters by id leave only a few files, or if users are counted, because the
// engine has no sketches of users.
func (e *sqlQueries) oversized(ctx context.Context, p *plan, q *query) (*coverage, error) {
	if e == nil || p.cubes && q.cubes || q.users || p.selectsByID() {
		return nil, nil
	}
	f, err := e.coverage(ctx, p)
	if err != nil || f == nil || f.records() < e.records {
		return nil, err
	}
	return f, nil
}

// selectsByID reports whether an id determines which files are read.
func (p *plan) selectsByID() bool {
	return p.dims[segment.TraceID] != nil || p.dims[segment.SpanID] != nil || p.dims[segment.Session] != nil
}

// scanRemainder reads the parts of a plan's time that the files do not cover.
func (e *sqlQueries) scanRemainder(ctx context.Context, p *plan, f *coverage, q *query) error {
	for _, span := range [][2]int64{{p.from, f.from - 1}, {f.to, p.to}} {
		if span[0] > span[1] {
			continue
		}
		part := *p
		part.from, part.to = span[0], span[1]
		if err := e.inProcess.scan(ctx, &part, q); err != nil {
			return err
		}
	}
	within := *p
	within.from, within.to = f.from, f.to-1
	return newScan(&e.inProcess.src, &within, q).run(ctx, f.holes)
}

// sum collects the result in sum, from the files and the remainder. A query that the
// engine cannot read is computed in this process.
func (e *sqlQueries) sum(ctx context.Context, p *plan, f *coverage, q *query, b buckets, sum *tally) error {
	s := statement{engine: e.engine, plan: p, covered: f, aspect: sum.aspect, buckets: b}
	// Each group has a row per bucket, and the last group may begin at the limit. This
	// many rows mean one group too many.
	most := sum.maxGroups() + b.n
	stats, latencies := s.stats(most), ""
	if sum.latencies {
		latencies = s.bins(nil, most)
	}
	if !sendable(stats) || !sendable(latencies) {
		return e.inProcess.scan(ctx, p, q)
	}
	sum.fromSQL = true
	var rows, bins [][]*string
	g, groupCtx := errgroup.WithContext(e.engine.WithQueryLimits(ctx))
	g.Go(func() (err error) {
		rows, err = e.engine.Query(groupCtx, p.org, stats)
		return err
	})
	if sum.latencies {
		g.Go(func() (err error) {
			bins, err = e.engine.Query(groupCtx, p.org, latencies)
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
			return nil // too many groups, as overflow reports
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
	return e.scanRemainder(ctx, p, f, q)
}

// place returns the group and the bucket of a row.
func place(row []*string, b buckets) (group string, bucket int, err error) {
	if len(row) < 3 || row[0] == nil || row[1] == nil {
		return "", 0, errRow
	}
	n, err := strconv.Atoi(*row[1])
	return *row[0], min(max(n, 0), b.n-1), err
}

// maxRankedGroups limits the groups that the engine sorts for one page,
// maxRemainderGroups those in the hours that the engine does not have.
const (
	maxRankedGroups    = 10_000
	maxRemainderGroups = 4000
)

// ranked implements Groups for too many groups to collect: the engine sorts them. The
// query names the groups of the hours not in files: the engine returns their numbers at
// any rank, and the first ones of the other groups. ok is false if this is impossible.
func (e *sqlQueries) ranked(ctx context.Context, sc store.Scope, q *GroupQuery, a aspect) (page []Group, n int, ok bool, err error) {
	wanted := q.wanted()
	if isQuantile(q.OrderBy) || wanted > maxRankedGroups {
		return nil, 0, false, nil
	}
	p, err := e.inProcess.requests(ctx, sc, &q.Filter)
	if err != nil {
		return nil, 0, false, err
	}
	f, err := e.coverage(ctx, p)
	if err != nil || f == nil {
		return nil, 0, false, err
	}
	a.share, a.shares = 0, 1
	var sum *tally
	err = retryMerged(func() error {
		sum = newTally(a, 1)
		return e.scanRemainder(ctx, p, f, sum.query(allTime))
	})
	if err != nil || sum.overflow.Load() || len(sum.groups) > maxRemainderGroups {
		return nil, 0, false, err
	}
	s := statement{engine: e.engine, plan: p, covered: f, aspect: a, buckets: allTime}
	names := slices.Sorted(maps.Keys(sum.groups))
	if size := len(strings.Join(names, "', '")); size > mostValues {
		return nil, 0, false, nil
	}
	nearby := len(names)
	if q.MetadataKey == "" && sum.groups[""] != nil {
		nearby--
	}
	querySQL := s.ranked(q, names, wanted)
	if !sendable(querySQL) {
		return nil, 0, false, nil
	}
	rows, err := e.engine.Query(ctx, p.org, querySQL)
	if err != nil {
		return nil, 0, false, err
	}
	for _, row := range rows {
		name, _, err := place(row, allTime)
		if err != nil || len(row) != 3+len(measures) {
			return nil, 0, false, errRow
		}
		list := sum.groups[name]
		if list == nil {
			list = make([]Stats, 1)
			sum.groups[name] = list
			if n, err = strconv.Atoi(*row[1]); err != nil { // number of groups that are only in the files
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

// pageBins adds the latencies in the files to those of a page's groups. If the names
// exceed the limit of a query's text, it queries the two halves separately.
func (e *sqlQueries) pageBins(ctx context.Context, s *statement, page []Group) error {
	names, at := make([]string, len(page)), make(map[string]*Group, len(page))
	for i := range page {
		names[i], at[page[i].Value] = page[i].Value, &page[i]
	}
	querySQL := s.bins(names, len(names))
	if half := len(page) / 2; len(querySQL) > maxText && half > 0 {
		if err := e.pageBins(ctx, s, page[:half]); err != nil {
			return err
		}
		return e.pageBins(ctx, s, page[half:])
	}
	rows, err := e.engine.Query(ctx, s.plan.org, querySQL)
	if err != nil {
		return err
	}
	for _, row := range rows {
		name, _, err := place(row, allTime)
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

// errRow is returned for unexpected rows of a query.
var errRow = fault.Unavailable(errUnexpectedRow{})

type errUnexpectedRow struct{}

func (errUnexpectedRow) Error() string {
	return "report: the engine returned unexpected rows"
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

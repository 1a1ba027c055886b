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

// Far is an engine that reads the archive's files by SQL, for questions that outgrow one
// process. Its dialect is that of Athena.
type Far interface {
	// Table is the table of the files, as it stands in queries.
	Table() string
	// Question gives a context in which all queries are one question of a caller: bounds
	// that hold for questions are asked for the first of them alone.
	Question(ctx context.Context) context.Context
	// Query gives the rows of a query about an organisation; nil is a NULL. Errors are
	// faults: what takes too long is a 503, what reads too much a 400, or a 429 where it
	// is too much for this hour.
	Query(ctx context.Context, org, sql string) ([][]*string, error)
}

// FarRecords is from how many records on, that would have to be read one by one, a
// question is handed on. One process reads about a million a second.
const FarRecords = 15_000_000

// WithFar hands questions on that outgrow this process: those that would read more than
// so many records one by one, and groups that are too many to be put in order here. The
// parts of hours at both ends, the hours that are not whole in the files yet, and a few
// segments that stand in the store are still read here and added: answers are the same.
func (r *Reader) WithFar(f Far, records int64) *Reader {
	r.beyond = &beyond{here: r, far: f, records: records}
	return r
}

// beyond are the questions that outgrow this process, and the engine that is asked them.
type beyond struct {
	here    *Reader // answers what the files do not
	far     Far
	records int64 // from which on a question outgrows this process
}

// reach is what the files answer of a question: whole hours.
type reach struct {
	from, to int64 // microseconds; to is not part of it
	parts    []segment.Part
	holes    []segment.Part // of this time too, in no file: they are read here
}

// Holes are few, and of hours that are over: while segments come, the same question is to
// have the same text.
const (
	mostHoles = 64
	holesLast = 3 * segment.Hour // before the last record there are none
)

// until is up to where the files of a list answer, at most to: up to the first segment
// that stands in none and is no hole.
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

// records are those of the parts.
func (f *reach) records() (sum int64) {
	for i := range f.parts {
		sum += f.parts[i].Records
	}
	return sum
}

// reach finds what the files answer of a plan; nil: nothing, or not in SQL.
func (e *beyond) reach(ctx context.Context, p *plan) (*reach, error) {
	if !p.speakable() {
		return nil, nil
	}
	list, err := e.here.archive.List(ctx, p.org, p.from, p.to)
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

// outgrown is reach of a question that would read too many records one by one. Those
// that cubes answer, that few files can have by their filters of ids, and that count
// users are answered here: sketches of users come from no engine.
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

// sought tells whether files are chosen by an id.
func (p *plan) sought() bool {
	return p.dims[segment.TraceID] != nil || p.dims[segment.SpanID] != nil || p.dims[segment.Session] != nil
}

// near asks the reader of the parts of a plan's time that the files do not answer.
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
	return e.here.scanParts(ctx, &within, q, f.holes)
}

// sum gathers in sum what a question asks, of the files and of the rest. A question
// that an engine cannot be asked, or that takes more text than it reads, is answered here.
func (e *beyond) sum(ctx context.Context, p *plan, f *reach, q *question, b buckets, sum *tally) error {
	s := statement{far: e.far, plan: p, reach: f, aspect: sum.aspect, buckets: b}
	// Groups have a row for each bucket, and the last one that is gathered may begin at
	// the bound: with so many rows there is a group that is one too many.
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
			return nil // too many groups: see over
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

// place is the group and the bucket of a row.
func place(row []*string, b buckets) (group string, bucket int, err error) {
	if len(row) < 3 || row[0] == nil || row[1] == nil {
		return "", 0, errRow
	}
	n, err := strconv.Atoi(*row[1])
	return *row[0], min(max(n, 0), b.n-1), err
}

// mostRanked is how many groups an engine puts in order for one page, and mostNear how
// many there may be in the hours that it does not have.
const (
	mostRanked = 10_000
	mostNear   = 4000
)

// ranked is Groups where there are too many to be gathered: the engine puts them in
// order. Groups of the hours that the files do not have yet are told to it: it gives
// their numbers whatever their place is, and of the others those that come first. ok is
// false where that cannot be.
func (e *beyond) ranked(ctx context.Context, sc store.Scope, q *GroupQuery, a aspect) (page []Group, n int, ok bool, err error) {
	wanted := q.wanted()
	if isQuantile(q.OrderBy) || wanted > mostRanked {
		return nil, 0, false, nil
	}
	p, err := e.here.plan(ctx, sc, &q.Filter)
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
			if n, err = strconv.Atoi(*row[1]); err != nil { // how many are in the files alone
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

// pageBins adds to the latencies of a page's groups what the files have of them. Of
// names that take more text than an engine reads it asks one half after the other.
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

// errRow is given for rows that no query of ours has.
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

// addBins adds counts that stand in a text, such as "12:3 14:1".
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

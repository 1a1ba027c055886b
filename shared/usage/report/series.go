package report

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// Step returns the width of time buckets for a query: a minute up to two hours, an hour
// up to two days, a day up to sixty days, otherwise a week.
func Step(from, to time.Time) time.Duration {
	switch span := to.Sub(from); {
	case span <= 2*time.Hour:
		return time.Minute
	case span <= 48*time.Hour:
		return time.Hour
	case span <= 60*24*time.Hour:
		return 24 * time.Hour
	}
	return 7 * 24 * time.Hour
}

// buckets divides a time range. Days begin at midnight and weeks on Monday, in the time
// zone offset of the query's From.
type buckets struct {
	from  int64 // start of the first, microseconds
	width int64
	n     int
	zone  *time.Location
}

// mondayOffset is the time from the Monday before 1 January 1970, a Thursday, to that
// day.
const mondayOffset = 3 * 24 * time.Hour

func divide(f *Filter) buckets {
	step := Step(f.From, f.To)
	_, offset := f.From.Zone()
	shift := (time.Duration(offset) * time.Second).Microseconds()
	if step > 24*time.Hour {
		shift += mondayOffset.Microseconds()
	}
	b := buckets{width: step.Microseconds(), zone: f.From.Location()}
	b.from = floor(f.From.UnixMicro()+shift, b.width) - shift
	b.n = int((f.To.UnixMicro()-b.from)/b.width) + 1
	return b
}

func floor(n, width int64) int64 {
	rest := n % width
	if rest < 0 {
		rest += width
	}
	return n - rest
}

// allTime is a single bucket of all time.
var allTime = buckets{width: math.MaxInt64, n: 1, zone: time.UTC}

func (b *buckets) of(start int64) int {
	return min(max(int((start-b.from)/b.width), 0), b.n-1)
}

// at returns the start of a bucket.
func (b *buckets) at(i int) time.Time {
	return time.UnixMicro(b.from + int64(i)*b.width).In(b.zone)
}

// series collects Stats by group and bucket. by is segment.NumDims for a single group,
// named "".
func (r *Reader) series(ctx context.Context, sc store.Scope, f *Filter, a aspect) (buckets, map[string][]Stats, error) {
	b := divide(f)
	groups, err := r.tally(ctx, sc, f, a, b)
	return b, groups, err
}

// tally collects Stats by group, each by bucket.
func (r *Reader) tally(ctx context.Context, sc store.Scope, f *Filter, a aspect, b buckets) (map[string][]Stats, error) {
	leave, err := r.src.budget.admit(ctx, a.weight(b.n))
	if err != nil {
		return nil, err
	}
	defer leave()
	sum, err := r.sum(ctx, sc, f, a, b)
	if err != nil {
		return nil, err
	}
	if sum.overflow.Load() {
		return nil, fault.Invalid("time_of_generation_max", "is too far from time_of_generation_min: the result has more than %d groups by time; narrow the time or the filter", a.maxGroups())
	}
	return sum.groups, nil
}

// sum is tally for a query that was admitted by the memory budget.
func (r *Reader) sum(ctx context.Context, sc store.Scope, f *Filter, a aspect, b buckets) (sum *tally, err error) {
	err = retryMerged(func() error {
		sum = newTally(a, b.n)
		q := sum.query(b)
		p, err := r.requests(ctx, sc, f)
		if err != nil {
			return err
		}
		reach, err := r.sql.oversized(ctx, p, q)
		if err != nil {
			return err
		}
		if reach != nil && a.shares <= 1 {
			return r.sql.sum(ctx, p, reach, q, b, sum)
		}
		return r.scan(ctx, p, q)
	})
	if err != nil {
		return nil, err
	}
	sum.finish(f)
	return sum, nil
}

// total adds the buckets of a series.
func total(list []Stats) *Stats {
	sum := new(Stats)
	for i := range list {
		sum.merge(&list[i])
	}
	return sum
}

// Log returns one record with its sealed bodies; ok is false if the scope has no record
// with that id. The caller opens the bodies.
func (r *Reader) Log(ctx context.Context, sc store.Scope, id string) (rec usage.Record, ok bool, err error) {
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return usage.Record{}, false, nil // no log can have this id
	}
	at := parsed.Timestamp().UnixMicro()
	cut, err := r.src.archive.Cut(ctx, sc)
	if err != nil {
		return usage.Record{}, false, err
	}
	err = retryMerged(func() (err error) {
		rec, ok, err = r.log(ctx, sc, id, at)
		return err
	})
	if err != nil || !ok {
		return rec, ok, err
	}
	if rec.Start.UnixMicro() < cut.First(rec.Workspace) {
		return usage.Record{}, false, nil
	}
	err = r.src.fetchBodies(ctx, &rec)
	return rec, ok, err
}

func (r *Reader) log(ctx context.Context, sc store.Scope, id string, at int64) (usage.Record, bool, error) {
	until := at + time.Millisecond.Microseconds() - 1
	leave, err := r.src.budget.admit(ctx, 0)
	if err != nil {
		return usage.Record{}, false, err
	}
	defer leave()
	list, err := r.src.archive.List(ctx, sc.Org, at, until)
	if err != nil {
		return usage.Record{}, false, err
	}
	for i := range list {
		f, err := r.src.open(ctx, &list[i])
		if err != nil {
			return usage.Record{}, false, err
		}
		for g := range f.Groups {
			if f.Groups[g].Last < at || f.Groups[g].First > until {
				continue
			}
			if rec, ok, err := r.src.pick(ctx, f, g, id); err != nil || ok {
				if ok && sc.Workspace != "" && rec.Workspace != sc.Workspace {
					return usage.Record{}, false, nil
				}
				return rec, ok, err
			}
		}
	}
	return usage.Record{}, false, nil
}

// find returns the row that has the value, or -1.
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

// EachLog calls visit with the logs of a page, in order, until visit returns false. If
// the query requests bodies, it reads those of one log at a time, so memory holds the
// records of one page and the bodies of one log. next is the cursor after the last
// visited log; it is empty at the end, and after an error the position at which to
// continue.
func (r *Reader) EachLog(ctx context.Context, sc store.Scope, q *LogQuery, visit func(*usage.Record) (more bool, err error)) (next string, err error) {
	rest := *q
	p, err := r.plan(ctx, sc, &q.Filter)
	if err != nil {
		return rest.Cursor, err
	}
	err = retryMerged(func() (err error) { // starts after the logs that were visited
		next, err = r.eachLog(ctx, p, &rest, visit)
		return err
	})
	if err != nil {
		return rest.Cursor, err
	}
	return next, nil
}

// eachLog records its progress in the query.
func (r *Reader) eachLog(ctx context.Context, p *plan, rest *LogQuery, visit func(*usage.Record) (bool, error)) (next string, err error) {
	before, err := rest.position()
	if err != nil {
		return "", err
	}
	leave, err := r.src.budget.admit(ctx, rest.weight())
	if err != nil {
		return "", err
	}
	defer leave()
	hits, behind, err := r.matches(ctx, p, before, rest)
	if err != nil {
		return "", err
	}
	records, err := r.src.read(ctx, hits, false)
	if err != nil {
		return "", err
	}
	sealed := openBodies{src: &r.src}
	defer sealed.close()
	for i := range records {
		if rest.Bodies {
			if err := sealed.load(ctx, &hits[i], &records[i]); err != nil {
				return "", err
			}
		}
		more, err := visit(&records[i])
		if err != nil {
			return "", err
		}
		records[i] = usage.Record{} // releases its bodies
		last := i == len(records)-1
		rest.Cursor, rest.Limit, rest.Offset = hits[i].cursor().String(), rest.Limit-1, 0
		if !more && !last {
			return rest.Cursor, nil
		}
	}
	if !behind {
		return "", nil
	}
	return rest.Cursor, nil
}

// openBodies holds the bodies of the group that contained the last record.
type openBodies struct {
	src     *source
	part    *segment.Part
	group   int
	bodies  *segment.Bodies
	release func()
}

func (o *openBodies) load(ctx context.Context, at *match, rec *usage.Record) error {
	if o.bodies == nil || o.part != at.part || o.group != at.group {
		o.close()
		f, err := o.src.open(ctx, &at.part.Manifest)
		if err != nil {
			return err
		}
		if o.release, err = o.src.budget.acquire(ctx, f.BodiesWeight(at.group)); err != nil {
			return err
		}
		if o.bodies, err = f.Bodies(ctx, at.group); err != nil {
			return err
		}
		o.part, o.group = at.part, at.group
	}
	return o.src.bodies(ctx, o.bodies, at.row, rec)
}

func (o *openBodies) close() {
	if o.release != nil {
		o.release()
	}
	o.release, o.bodies = nil, nil
}

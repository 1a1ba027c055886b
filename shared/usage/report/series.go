package report

import (
	"context"
	"math"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
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

package report

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/axiomhq/hyperloglog"
	"github.com/oklog/ulid/v2"

	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// maxTotal is the limit up to which lists are counted.
const maxTotal = 10_000

// LogQuery is a query for a page of logs, newest first.
type LogQuery struct {
	Filter
	Limit   int    // at least 1
	Offset  int    // records to skip after the cursor
	Cursor  string // LogPage.Next of the previous page; "" for the newest
	NoTotal bool   // leave LogPage.Total unset
	Bodies  bool   // also read the sealed bodies
	Oldest  bool   // reverse order: oldest first
}

// LogPage is a page of logs. It contains their sealed bodies only if requested; Log
// returns those of one log.
type LogPage struct {
	Records           []usage.Record
	Next              string // cursor of the next page; "" at the end
	Total             int    // number of matching records, exact up to 10,000
	TotalIsLowerBound bool   // there are more than Total
}

// cursor is a position in the order of logs: after the record with this start
// (microseconds) and id.
type cursor struct {
	start int64
	id    string
}

func (c cursor) String() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(c.start)), c.id...))
}

// position returns the start of the page.
func (q *LogQuery) position() (cursor, error) {
	if q.Cursor == "" && q.Oldest {
		return cursor{math.MinInt64, ""}, nil
	}
	if q.Cursor == "" {
		return cursor{math.MaxInt64, ""}, nil
	}
	return parseCursor(q.Cursor)
}

// parseCursor accepts only the output of String. Other decodable text could be a position
// without logs, and the page would look like the end of the list.
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

// lastStart is the latest time in a log's id, in microseconds.
var lastStart = ulid.Time(ulid.MaxTime()).UnixMicro()

func notACursor() error {
	return fault.Invalid("cursor", "is not a cursor of this list; omit it to begin with the newest")
}

// Logs returns a page of records, newest first. The filter is valid. Errors: a 400 fault
// for an invalid cursor.
func (r *Reader) Logs(ctx context.Context, sc store.Scope, q *LogQuery) (page LogPage, err error) {
	before, err := q.position()
	if err != nil {
		return LogPage{}, err
	}
	p, err := r.plan(ctx, sc, &q.Filter)
	if err != nil {
		return LogPage{}, err
	}
	err = retryMerged(func() (err error) {
		page, err = r.page(ctx, p, before, q)
		return err
	})
	if err != nil || q.NoTotal {
		return page, err
	}
	// If everything is on one page, its length is the total, even if more records have
	// arrived since.
	if n := len(page.Records); q.Cursor == "" && page.Next == "" && (n > 0 || q.Offset <= 0) {
		page.Total = max(q.Offset, 0) + n
	} else {
		err = retryMerged(func() (err error) {
			page.Total, err = r.count(ctx, p)
			return err
		})
	}
	if page.Total > maxTotal {
		page.Total, page.TotalIsLowerBound = maxTotal, true
	}
	return page, err
}

// counter counts matching records, over all goroutines of a scan.
type counter struct {
	t      *view
	n      *atomic.Int64
	part   int64  // count of the current part
	filter string // see filterKey
}

func (c *counter) begin(t *view) { c.t = t }
func (c *counter) row(i, _ int) {
	n := c.t.Records(i)
	c.part += n
	c.n.Add(n)
}
func (c *counter) users(*hyperloglog.Sketch, string, int) {}

// count counts the matching records; it may stop early above maxTotal.
func (r *Reader) count(ctx context.Context, p *plan) (int, error) {
	leave, err := r.src.budget.admit(ctx, 0)
	if err != nil {
		return 0, err
	}
	defer leave()
	var n atomic.Int64
	filter := p.filterKey()
	err = r.scan(ctx, p, &query{
		cubes:   true,
		bucket:  func(int64) int { return 0 },
		collect: func() collector { return &counter{n: &n, filter: filter} },
		merge:   func(collector) {},
		enough:  func() bool { return n.Load() > maxTotal },
	})
	return int(n.Load()), err
}

// The number of a segment's records that match a filter never changes, so it is cached:
// clients request the same list again and again, page by page.

// filterKey returns a cache key for the filter of a plan, without its time.
func (p *plan) filterKey() string {
	var b strings.Builder
	for d, set := range p.dims {
		if set != nil {
			fmt.Fprintf(&b, "%d=%q\n", d, slices.Sorted(maps.Keys(set)))
		}
	}
	fmt.Fprintf(&b, "%q\n", p.models)
	for _, key := range slices.Sorted(maps.Keys(p.metadata)) {
		fmt.Fprintf(&b, "%q=%q\n", key, p.metadata[key])
	}
	for _, r := range p.ranges {
		fmt.Fprintf(&b, "%d:", r.of)
		for _, end := range []*int64{r.Min, r.Max} {
			if end != nil {
				fmt.Fprintf(&b, "%d", *end)
			}
			b.WriteByte(',')
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:16])
}

// countsAll reports whether all records of a part are counted: none is excluded by the
// time, by its workspace's retention, or as a duplicate.
func (p *plan) countsAll(part *segment.Part) bool {
	return part.Min >= p.from && part.Max <= p.to && p.cut.Most() <= part.Min && !part.Overlaps()
}

// useCached adds the cached count of a part.
func (c *counter) useCached(a *segment.Archive, p *plan, part *segment.Part) bool {
	c.part = 0
	if !p.countsAll(part) {
		return false
	}
	n, ok := a.CachedCount(&part.Manifest, c.filter)
	c.n.Add(n)
	return ok
}

// store caches the count of a part that was read completely.
func (c *counter) store(a *segment.Archive, p *plan, part *segment.Part) {
	if p.countsAll(part) {
		a.CacheCount(&part.Manifest, c.filter, c.part)
	}
}

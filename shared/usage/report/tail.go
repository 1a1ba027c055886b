package report

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// Tail returns records soon after they are kept, each once. It reads each segment when it
// appears. When a segment was merged before it was read, the tail reads the merged segment
// instead, and takes the records that ended since the tail began. It is not safe for
// concurrent use.
type Tail struct {
	r     *Reader
	scope store.Scope
	since mark
	// Missed is set if the mark from which the tail was to go on is too old: what was kept
	// between Missed and Since is not returned.
	Missed, Since time.Time

	read  map[string]int64 // names of segments that need not be read again, with the start of their last record
	given map[uint64]int64 // hashes of ids of records that have been seen, with their end
}

// mark is a place in the order in which segments appear: after the segment with this time
// (milliseconds) and name.
type mark struct {
	at   int64
	name string
}

func (m mark) String() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(m.at)), m.name...))
}

func (m mark) before(other mark) bool {
	return m.at < other.at || m.at == other.at && m.name < other.name
}

// maxMark limits the text of a mark, in bytes: names of segments are shorter.
const maxMark = 200

func parseMark(s string) (mark, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(s) > maxMark || len(b) < 8 {
		return mark{}, false
	}
	m := mark{int64(binary.BigEndian.Uint64(b)), string(b[8:])}
	return m, m.at >= 0 && m.at < math.MaxInt64/2000 && m.String() == s
}

// Fresh is a record that a tail returns.
type Fresh struct {
	Record usage.Record // without bodies
	Mark   string       // from where a later tail goes on, see Reader.Tail
}

const (
	// tailReach is how long before its end a record may have begun.
	tailReach = time.Hour
	// tailMemory is for how long a tail remembers what it has seen. Within that time it must
	// read a segment, even if the segment is merged first.
	tailMemory = 5 * time.Minute
	// maxTailed limits how much a tail remembers.
	maxTailed = 200_000
	// maxAway is how old a mark may be.
	maxAway = 15 * time.Minute
	// maxSkew is how far clocks may be apart.
	maxSkew = time.Minute
)

// Tail begins a tail. after is a Fresh.Mark: the tail first returns what was kept since, if
// it is at most fifteen minutes old (see Missed). "" or another text: the tail begins now.
func (r *Reader) Tail(sc store.Scope, now time.Time, after string) *Tail {
	t := &Tail{r: r, scope: sc, since: mark{at: now.UnixMilli()}, read: map[string]int64{}, given: map[uint64]int64{}}
	if m, ok := parseMark(after); ok && m.at <= now.Add(maxSkew).UnixMilli() {
		if t.since = m; now.Sub(time.UnixMilli(m.at)) > maxAway {
			t.since = mark{at: now.Add(-maxAway).UnixMilli()}
			t.Missed = time.UnixMilli(m.at)
		}
	}
	t.Since = time.UnixMilli(t.since.at)
	return t
}

// Next returns the records that pass the filter and were kept since the last call; the
// times of the filter do not count. It returns at most so many records, and how many more
// there were.
func (t *Tail) Next(ctx context.Context, now time.Time, f *Filter, most int) (fresh []Fresh, more int, err error) {
	since := time.UnixMilli(t.since.at)
	if recent := now.Add(-tailMemory); recent.After(since) {
		since = recent
	}
	ended, reach := since.UnixMicro(), *f
	reach.From, reach.To = since.Add(-tailReach), now.Add(tailReach)
	p, err := t.r.plan(ctx, t.scope, &reach)
	if err != nil {
		return nil, 0, err
	}
	p.need.ints[segment.Duration] = true
	list, err := t.r.src.archive.Recent(ctx, p.org, now.Add(-maxAway-tailReach).UnixMicro(), time.UnixMilli(t.since.at))
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(list, func(x, y segment.Manifest) int {
		return cmp.Or(cmp.Compare(x.Created.UnixMilli(), y.Created.UnixMilli()), cmp.Compare(x.Name, y.Name))
	})
	for i := range list {
		m := &list[i]
		at := mark{m.Created.UnixMilli(), m.Name}
		if _, done := t.read[m.Name]; done || !t.since.before(at) {
			continue
		}
		got, left, err := t.segment(ctx, p, m, ended, most-len(fresh))
		if err != nil && !errors.Is(err, segment.ErrGone) { // a segment that was merged is read as a part of the new one
			return fresh, more, err
		}
		t.read[m.Name], more = m.Max, more+left
		for j := range got {
			fresh = append(fresh, Fresh{got[j], at.String()})
		}
	}
	t.forget(now)
	return fresh, more, nil
}

// segment reads the records of a segment that are new. In a merged segment there may be
// records that were kept before the tail began.
func (t *Tail) segment(ctx context.Context, p *plan, m *segment.Manifest, ended int64, most int) (out []usage.Record, more int, err error) {
	leave, err := t.r.src.room.enter(ctx, 0)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	if m.Tier == segment.TierBatch {
		p, ended = p.ofAnyTime(), math.MinInt64
	}
	file, err := t.r.src.open(ctx, m)
	if err != nil {
		return nil, 0, err
	}
	for g := range file.Groups {
		if file.Groups[g].Last < p.from {
			continue
		}
		rows, err := t.rows(ctx, p, file, g, ended)
		if err != nil {
			return nil, 0, err
		}
		keep := min(len(rows), max(most-len(out), 0))
		more += len(rows) - keep
		if keep == 0 {
			continue
		}
		records, err := t.r.src.records(ctx, m, g, rows[:keep], false)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, records...)
	}
	return out, more, nil
}

// ofAnyTime is the plan without its times.
func (p *plan) ofAnyTime() *plan {
	all := *p
	all.from, all.to = math.MinInt64, math.MaxInt64
	return &all
}

// rows are the rows of a group that pass and have not been seen.
func (t *Tail) rows(ctx context.Context, p *plan, f *segment.File, group int, ended int64) (rows []int, err error) {
	give, err := t.r.src.room.take(ctx, f.Weight()+p.need.weight(f, group, true))
	if err != nil {
		return nil, err
	}
	defer give()
	v, m, err := p.load(ctx, f, group, &p.need, true)
	if err != nil || m.never {
		return nil, err
	}
	ids, starts, took := v.Dims[segment.ID], v.Ints[segment.Start], v.Ints[segment.Duration]
	for i, start := range starts {
		if start < p.from || start+took[i] < ended || !m.match(i) {
			continue
		}
		id := segment.HashID(ids.At(i))
		if _, twice := t.given[id]; !twice {
			t.given[id] = start + took[i]
			rows = append(rows, i)
		}
	}
	return rows, nil
}

// forget drops what cannot come again in a segment that is read later.
func (t *Tail) forget(now time.Time) {
	old := now.Add(-tailMemory - time.Minute).UnixMicro()
	for id, end := range t.given {
		if end < old || len(t.given) > maxTailed {
			delete(t.given, id)
		}
	}
	gone := now.Add(-maxAway - tailReach).UnixMicro()
	for name, last := range t.read {
		if last < gone {
			delete(t.read, name)
		}
	}
}

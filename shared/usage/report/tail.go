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

// Tail returns records soon after they are stored, each once. It reads each segment when
// it appears. If a segment was merged before it was read, the tail reads the merged
// segment and selects the records that ended since the tail began. It is not safe for
// concurrent use.
type Tail struct {
	r     *Reader
	scope store.Scope
	since tailMark
	// Missed is set if the mark at which the tail was to continue is too old: records
	// stored between Missed and Since are not returned.
	Missed, Since time.Time

	read     map[string]int64 // names of segments to skip, with the start of their last record
	returned map[uint64]int64 // hashes of returned record ids, with their end
}

// tailMark is a position in the order in which segments appear: after the segment with
// this time (milliseconds) and name.
type tailMark struct {
	at   int64
	name string
}

func (m tailMark) String() string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(m.at)), m.name...))
}

func (m tailMark) before(other tailMark) bool {
	return m.at < other.at || m.at == other.at && m.name < other.name
}

// maxMark limits the text of a mark, in bytes: names of segments are shorter.
const maxMark = 200

func parseMark(s string) (tailMark, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(s) > maxMark || len(b) < 8 {
		return tailMark{}, false
	}
	m := tailMark{int64(binary.BigEndian.Uint64(b)), string(b[8:])}
	return m, m.at >= 0 && m.at < math.MaxInt64/2000 && m.String() == s
}

// TailRecord is a record that a tail returns.
type TailRecord struct {
	Record usage.Record // without bodies
	Mark   string       // position at which a later tail continues, see Reader.Tail
}

const (
	// tailReach is the maximum age of a record's start at its end.
	tailReach = time.Hour
	// tailMemory is how long a tail remembers returned records. It must read a segment
	// within that time, even if the segment is merged first.
	tailMemory = 5 * time.Minute
	// maxRemembered limits the number of remembered records.
	maxRemembered = 200_000
	// maxMarkAge is the maximum age of a mark.
	maxMarkAge = 15 * time.Minute
	// maxSkew is the maximum difference between clocks.
	maxSkew = time.Minute
)

// Tail begins a tail. after is a TailRecord.Mark: the tail first returns the records
// stored since, if it is at most fifteen minutes old (see Missed). With any other text
// the tail begins now.
func (r *Reader) Tail(sc store.Scope, now time.Time, after string) *Tail {
	t := &Tail{r: r, scope: sc, since: tailMark{at: now.UnixMilli()}, read: map[string]int64{}, returned: map[uint64]int64{}}
	if m, ok := parseMark(after); ok && m.at <= now.Add(maxSkew).UnixMilli() {
		if t.since = m; now.Sub(time.UnixMilli(m.at)) > maxMarkAge {
			t.since = tailMark{at: now.Add(-maxMarkAge).UnixMilli()}
			t.Missed = time.UnixMilli(m.at)
		}
	}
	t.Since = time.UnixMilli(t.since.at)
	return t
}

// Next returns the matching records stored since the last call, ignoring the times of the
// filter. It returns at most most records and the number of further ones.
func (t *Tail) Next(ctx context.Context, now time.Time, f *Filter, most int) (fresh []TailRecord, more int, err error) {
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
	list, err := t.r.src.archive.Recent(ctx, p.org, now.Add(-maxMarkAge-tailReach).UnixMicro(), time.UnixMilli(t.since.at))
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(list, func(x, y segment.Manifest) int {
		return cmp.Or(cmp.Compare(x.Created.UnixMilli(), y.Created.UnixMilli()), cmp.Compare(x.Name, y.Name))
	})
	for i := range list {
		m := &list[i]
		at := tailMark{m.Created.UnixMilli(), m.Name}
		if _, done := t.read[m.Name]; done || !t.since.before(at) {
			continue
		}
		got, left, err := t.segment(ctx, p, m, ended, most-len(fresh))
		if err != nil && !errors.Is(err, segment.ErrDeleted) { // a merged segment is read as a part of the new one
			return fresh, more, err
		}
		t.read[m.Name], more = m.Max, more+left
		for j := range got {
			fresh = append(fresh, TailRecord{got[j], at.String()})
		}
	}
	t.evict(now)
	return fresh, more, nil
}

// segment reads the new records of a segment. A merged segment may contain records stored
// before the tail began.
func (t *Tail) segment(ctx context.Context, p *plan, m *segment.Manifest, ended int64, most int) (out []usage.Record, more int, err error) {
	leave, err := t.r.src.budget.admit(ctx, 0)
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
		count := min(len(rows), max(most-len(out), 0))
		more += len(rows) - count
		if count == 0 {
			continue
		}
		records, err := t.r.src.records(ctx, m, g, rows[:count], false)
		if err != nil {
			return nil, 0, err
		}
		out = append(out, records...)
	}
	return out, more, nil
}

// ofAnyTime returns the plan without its times.
func (p *plan) ofAnyTime() *plan {
	all := *p
	all.from, all.to = math.MinInt64, math.MaxInt64
	return &all
}

// rows returns the matching rows of a group that have not been returned.
func (t *Tail) rows(ctx context.Context, p *plan, f *segment.File, group int, ended int64) (rows []int, err error) {
	give, err := t.r.src.budget.acquire(ctx, f.Weight()+p.need.weight(f, group, true))
	if err != nil {
		return nil, err
	}
	defer give()
	v, m, err := p.load(ctx, f, group, &p.need, true)
	if err != nil || m.never {
		return nil, err
	}
	ids, starts, durations := v.Dims[segment.ID], v.Ints[segment.Start], v.Ints[segment.Duration]
	for i, start := range starts {
		if start < p.from || start+durations[i] < ended || !m.match(i) {
			continue
		}
		id := segment.HashID(ids.At(i))
		if _, twice := t.returned[id]; !twice {
			t.returned[id] = start + durations[i]
			rows = append(rows, i)
		}
	}
	return rows, nil
}

// evict drops records that cannot occur in later segments.
func (t *Tail) evict(now time.Time) {
	old := now.Add(-tailMemory - time.Minute).UnixMicro()
	for id, end := range t.returned {
		if end < old || len(t.returned) > maxRemembered {
			delete(t.returned, id)
		}
	}
	gone := now.Add(-maxMarkAge - tailReach).UnixMicro()
	for name, last := range t.read {
		if last < gone {
			delete(t.read, name)
		}
	}
}

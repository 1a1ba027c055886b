package segment

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"gateway/shared/blob"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Archive ingests, compacts and reads segments. It is safe for concurrent use, by many
// processes on one store.
type Archive struct {
	store   store.Store
	table   store.Table
	bucket  blob.Bucket
	objects objects
	o       Options
	cache   *cache
	twice   *cache // what pairs of segments have in common, and counts; these are small, and worth more than the rest of the cache
	noted   dueCache
}

// Options are the choices of an archive.
type Options struct {
	CacheBytes    int64                      // decoded cubes and columns kept in memory; CacheBytes when 0
	Retention     usage.Retention            // how long usage is kept; zero: for ever
	Kept          Kept                       // which workspaces keep their logs for a shorter time; nil: none
	MaxDayRecords int64                      // days with more records stay divided into hours; 500,000 when 0
	Clock         func() time.Time           // time.Now when nil
	Inline        int                        // objects of up to so many bytes are in the store; 0: as much as a row can hold
	Files         bool                       // records of hours that are over are in files, however few there are, so that other tools see all of them
	MinMerge      int                        // batches of an hour that still lasts are merged when there are so many; 4 when 0
	OnBad         func(id string, err error) // is called for records that cannot be kept; may be nil
}

// Kept tells for how many days the workspaces of an organisation keep their logs by the
// settings of this moment. If the scope is a workspace, it may return the days of that
// workspace as the standard.
type Kept func(ctx context.Context, sc store.Scope) (usage.KeptDays, error)

// CacheBytes is how much an archive keeps in memory by default.
const CacheBytes = 20 << 20

// Cheapest is the best Inline where a row is paid for by the kilobyte and an object in the
// bucket at a fixed price: writing eight kilobytes to rows costs as much as an object.
const Cheapest = 8 << 10

// FewerMerges is the best MinMerge there: a merge within an hour costs as much as six
// batches, and only helps readers of that hour.
const FewerMerges = 12

// New opens the archive of a store and a bucket.
func New(s store.Store, b blob.Bucket, o Options) *Archive {
	if o.CacheBytes <= 0 {
		o.CacheBytes = CacheBytes
	}
	if o.MaxDayRecords <= 0 {
		o.MaxDayRecords = 500_000
	}
	if o.Inline <= 0 || o.Inline > maxInline {
		o.Inline = maxInline
	}
	if o.MinMerge <= 0 {
		o.MinMerge = minMinute
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.OnBad == nil {
		o.OnBad = func(string, error) {}
	}
	table := s.Table(store.Usage)
	return &Archive{
		store: s, table: table, bucket: b, objects: objects{table, b, o.Inline, o.Files}, o: o,
		cache: newCache(o.CacheBytes - o.CacheBytes/8), twice: newCache(o.CacheBytes / 8),
	}
}

// Cut says from which time on records are shown.
type Cut struct {
	standard int64
	of       map[string]int64 // by workspace, if its time differs from the standard
	least    int64
	most     int64
}

// First is the time, in microseconds, from which on records of a workspace are shown.
func (c *Cut) First(workspace string) int64 {
	if first, ok := c.of[workspace]; ok {
		return first
	}
	return c.standard
}

// Least and Most are the earliest and the latest of these times.
func (c *Cut) Least() int64 { return c.least }
func (c *Cut) Most() int64  { return c.most }

// Own returns these times for the workspaces whose time differs from the standard.
func (c *Cut) Own() map[string]int64 { return c.of }

// One tells whether the time is the same for all workspaces.
func (c *Cut) One() bool { return len(c.of) == 0 }

// Cut returns from which time on records of a scope are shown. Records that are older than
// a workspace keeps are not shown, even if they have not been deleted yet.
func (a *Archive) Cut(ctx context.Context, sc store.Scope) (Cut, error) {
	cut := Cut{standard: math.MinInt64, least: math.MinInt64, most: math.MinInt64}
	if a.o.Kept == nil {
		return cut, nil
	}
	kept, err := a.o.Kept(ctx, sc)
	if err != nil || !kept.Any() {
		return cut, err
	}
	now := a.o.Clock()
	cut.standard = kept.First("", now)
	cut.least, cut.most = cut.standard, cut.standard
	for ws := range kept.Of {
		first := kept.First(ws, now)
		if first == cut.standard {
			continue
		}
		if cut.of == nil {
			cut.of = make(map[string]int64)
		}
		cut.of[ws] = first
		cut.least, cut.most = min(cut.least, first), max(cut.most, first)
	}
	return cut, nil
}

// Cube returns a segment's cube.
func (a *Archive) Cube(ctx context.Context, m *Manifest) (*Cube, error) {
	key := m.Name + "/cube"
	if v, ok := a.cache.get(key); ok {
		return v.(*Cube), nil
	}
	b, err := a.objects.get(ctx, m, cubeObject)
	if err != nil {
		return nil, err
	}
	c, err := decodeCube(b)
	if err != nil {
		return nil, err
	}
	a.cache.put(key, c, c.bytes)
	return c, nil
}

// ids returns the hashes of a segment's event ids, sorted.
func (a *Archive) ids(ctx context.Context, m *Manifest) ([]uint64, error) {
	c, err := a.Cube(ctx, m)
	if err != nil {
		return nil, err
	}
	if c.ids != nil || m.Records == 0 {
		return c.ids, nil
	}
	key := m.Name + "/ids"
	if v, ok := a.cache.get(key); ok {
		return v.([]uint64), nil
	}
	f, err := a.File(ctx, m)
	if err != nil {
		return nil, err
	}
	ids := make([]uint64, 0, m.Records)
	for g := range f.Groups {
		s, err := f.Strings(ctx, g, ID)
		if err != nil {
			return nil, err
		}
		for i := range f.Groups[g].Rows {
			ids = append(ids, hashID(s.At(i)))
		}
	}
	slices.Sort(ids)
	a.cache.put(key, ids, int64(8*len(ids)))
	return ids, nil
}

// columnKey is the name of a decoded column in the cache.
func columnKey(name string, group int, column string) string {
	return name + "/" + strconv.Itoa(group) + "/" + column
}

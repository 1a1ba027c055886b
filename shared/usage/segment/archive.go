package segment

import (
	"context"
	"slices"
	"strconv"
	"time"

	"gateway/shared/blob"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Archive is where segments are: it ingests, compacts and reads them. Safe for
// concurrent use, by many processes on one store.
type Archive struct {
	store  store.Store
	table  store.Table
	bucket blob.Bucket
	o      Options
	cache  *cache
	twice  *cache // what pairs of segments have in common: small, and worth more than what else is kept
	noted  dueCache
}

// Options are the choices of an archive.
type Options struct {
	CacheBytes    int64                      // decoded cubes and columns kept in memory; CacheBytes when 0
	Retention     usage.Retention            // how long usage is kept; for ever when zero
	MaxDayRecords int64                      // days with more stay in hours; 500,000 when 0
	Clock         func() time.Time           // time.Now when nil
	Inline        int                        // bytes up to which an object stands in the store; as much as a row holds when 0
	MinMerge      int                        // batches of an hour that lasts are merged from this number on; 4 when 0
	OnBad         func(id string, err error) // hears of records that cannot be kept; may be nil
}

// CacheBytes is what an archive keeps in memory where nothing else is said.
const CacheBytes = 20 << 20

// Cheapest is the Inline where a row is paid for by the kilobyte and an object in the
// bucket by itself: eight units of writing cost what one object does.
const Cheapest = 8 << 10

// FewerMerges is the MinMerge there: a merge within an hour costs what half a dozen
// batches do, and is only for readers of that hour.
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
	return &Archive{store: s, table: s.Table(store.Usage), bucket: b, o: o, cache: newCache(o.CacheBytes - o.CacheBytes/8), twice: newCache(o.CacheBytes / 8)}
}

// Cube gives a segment's cube.
func (a *Archive) Cube(ctx context.Context, m *Manifest) (*Cube, error) {
	key := m.Name + "/cube"
	if v, ok := a.cache.get(key); ok {
		return v.(*Cube), nil
	}
	b, err := a.object(ctx, m, cubeObject)
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

// ids gives the sorted hashes of a segment's event ids.
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

// columnKey names a decoded column in the cache.
func columnKey(name string, group int, column string) string {
	return name + "/" + strconv.Itoa(group) + "/" + column
}

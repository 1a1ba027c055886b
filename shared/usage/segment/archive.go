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
	noted  dueCache
}

// Options are the choices of an archive.
type Options struct {
	CacheBytes    int64                      // decoded cubes and columns kept in memory; 64 MiB when 0
	Retention     usage.Retention            // how long usage is kept; for ever when zero
	MaxDayRecords int64                      // days with more stay in hours; 500,000 when 0
	Clock         func() time.Time           // time.Now when nil
	OnBad         func(id string, err error) // hears of records that cannot be kept; may be nil
}

// New opens the archive of a store and a bucket.
func New(s store.Store, b blob.Bucket, o Options) *Archive {
	if o.CacheBytes <= 0 {
		o.CacheBytes = 64 << 20
	}
	if o.MaxDayRecords <= 0 {
		o.MaxDayRecords = 500_000
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.OnBad == nil {
		o.OnBad = func(string, error) {}
	}
	return &Archive{store: s, table: s.Table(store.Usage), bucket: b, o: o, cache: newCache(o.CacheBytes)}
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

// Part is a segment and what to leave out of it.
type Part struct {
	Manifest
	Skip map[uint64]struct{} // HashID of records that an earlier part has; nil: none
}

// HashID is what Part.Skip holds of an event id.
func HashID(id string) uint64 { return hashID(id) }

// Overlaps turns segments into parts in which every record stands once. The
// most merged segment keeps a record that several have.
func (a *Archive) Overlaps(ctx context.Context, list []Manifest) ([]Part, error) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(x, y Manifest) int {
		if x.Tier != y.Tier {
			return int(y.Tier - x.Tier)
		}
		if x.ID < y.ID {
			return -1
		}
		return 1
	})
	parts := make([]Part, len(list))
	byMin := make([]int, len(list))
	for i := range list {
		parts[i].Manifest = list[i]
		byMin[i] = i
	}
	slices.SortFunc(byMin, func(x, y int) int { return compare(list[x].Min, list[y].Min) })
	var open []int // segments that may overlap with the next ones
	for _, i := range byMin {
		kept := open[:0]
		for _, j := range open {
			if list[j].Max < list[i].Min {
				continue
			}
			kept = append(kept, j)
			first, second := min(i, j), max(i, j)
			twice, err := a.shared(ctx, &list[first], &list[second])
			if err != nil {
				return nil, err
			}
			for _, id := range twice {
				if parts[second].Skip == nil {
					parts[second].Skip = make(map[uint64]struct{})
				}
				parts[second].Skip[id] = struct{}{}
			}
		}
		open = append(kept, i)
	}
	return parts, nil
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// shared gives the ids that two segments have in common. Segments never change,
// so the answer is remembered.
func (a *Archive) shared(ctx context.Context, x, y *Manifest) ([]uint64, error) {
	key := x.Name + "&" + y.Name
	if v, ok := a.cache.get(key); ok {
		return v.([]uint64), nil
	}
	if x.Records > y.Records {
		x, y = y, x
	}
	few, err := a.ids(ctx, x)
	if err != nil {
		return nil, err
	}
	many, err := a.ids(ctx, y)
	if err != nil {
		return nil, err
	}
	var both []uint64
	for _, id := range few {
		at, found := slices.BinarySearch(many, id)
		if found {
			both = append(both, id)
		}
		many = many[at:]
	}
	a.cache.put(key, both, int64(8*len(both)+200))
	return both, nil
}

// columnKey names a decoded column in the cache.
func columnKey(name string, group int, column string) string {
	return name + "/" + strconv.Itoa(group) + "/" + column
}

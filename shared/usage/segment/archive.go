package segment

import (
	"container/list"
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"gateway/shared/blob"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// Archive ingests, compacts and reads segments. It is safe for concurrent use, by many
// processes on one store.
type Archive struct {
	store      store.Store
	table      store.Table
	bucket     blob.Bucket
	objects    objects
	o          Options
	cache      *cache
	duplicates *cache // ids common to pairs of segments, and counts; small, and more valuable than the rest of the cache
	noted      dueCache
}

// Options configures an archive.
type Options struct {
	CacheBytes         int64                      // decoded cubes and columns in memory; CacheBytes if zero
	Retention          usage.Retention            // of the installation; the zero value means forever
	WorkspaceRetention RetentionFunc              // workspaces with a shorter retention; nil if none
	MaxDayRecords      int64                      // days with more records remain divided into hours; 500,000 if zero
	Clock              func() time.Time           // time.Now if nil
	Inline             int                        // objects of at most this size are in the store; the maximum size of a row if zero
	Files              bool                       // write the records of past hours to files, however few, so that other tools see all of them
	MinMerge           int                        // number of batches of the current hour that triggers a merge; 4 if zero
	OnRejected         func(id string, err error) // called for records that cannot be stored; may be nil
}

// RetentionFunc returns the current log retention of an organization's workspaces. If the
// scope is a workspace, it may return that workspace's retention as the standard.
type RetentionFunc func(ctx context.Context, sc store.Scope) (usage.WorkspaceRetention, error)

// CacheBytes is the default size of an archive's cache.
const CacheBytes = 20 << 20

// CheapestInline is the best Inline if rows are priced by the kilobyte and objects in the
// bucket per write: writing eight kilobytes to rows costs as much as an object.
const CheapestInline = 8 << 10

// CheapestMinMerge is the best MinMerge with the same prices: a merge within an hour
// costs as much as six batches and only helps readers of that hour.
const CheapestMinMerge = 12

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
	if o.OnRejected == nil {
		o.OnRejected = func(string, error) {}
	}
	table := s.Table(store.Usage)
	return &Archive{
		store: s, table: table, bucket: b, objects: objects{table, b, o.Inline, o.Files}, o: o,
		cache: newCache(o.CacheBytes - o.CacheBytes/8), duplicates: newCache(o.CacheBytes / 8),
	}
}

// Cut is the time from which records are visible.
type Cut struct {
	standard int64
	of       map[string]int64 // by workspace, if it differs from the standard
	least    int64
	most     int64
}

// First returns the time, in microseconds, of a workspace's first visible record.
func (c *Cut) First(workspace string) int64 {
	if first, ok := c.of[workspace]; ok {
		return first
	}
	return c.standard
}

// Least and Most are the earliest and the latest of these times.
func (c *Cut) Least() int64 { return c.least }
func (c *Cut) Most() int64  { return c.most }

// Overrides returns these times for the workspaces with a time other than the standard.
func (c *Cut) Overrides() map[string]int64 { return c.of }

// Uniform reports whether the time is the same for all workspaces.
func (c *Cut) Uniform() bool { return len(c.of) == 0 }

// Cut returns the time from which a scope's records are visible. Records beyond a
// workspace's retention are invisible even before they are deleted.
func (a *Archive) Cut(ctx context.Context, sc store.Scope) (Cut, error) {
	cut := Cut{standard: math.MinInt64, least: math.MinInt64, most: math.MinInt64}
	if a.o.WorkspaceRetention == nil {
		return cut, nil
	}
	retention, err := a.o.WorkspaceRetention(ctx, sc)
	if err != nil || !retention.HasOverrides() {
		return cut, err
	}
	now := a.o.Clock()
	cut.standard = retention.Cutoff("", now)
	cut.least, cut.most = cut.standard, cut.standard
	for ws := range retention.Of {
		first := retention.Cutoff(ws, now)
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

// columnKey returns the cache key of a decoded column.
func columnKey(name string, group int, column string) string {
	return name + "/" + strconv.Itoa(group) + "/" + column
}

// cache holds decoded objects, up to a number of bytes; it evicts the least recently used
// first. Objects must not be modified. A nil cache stores nothing.
type cache struct {
	mu    sync.Mutex
	limit int64
	used  int64
	order *list.List // of *cached, most recent first
	items map[string]*list.Element
}

type cached struct {
	key   string
	value any
	bytes int64
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, order: list.New(), items: make(map[string]*list.Element)}
}

func (c *cache) get(key string) (any, bool) {
	if c == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.items[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).value, true
}

// put stores a value of approximately the given size, unless it exceeds a quarter of the
// limit.
func (c *cache) put(key string, value any, bytes int64) {
	bytes += int64(len(key)) + 128
	if c == nil || bytes > c.limit/4 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.items[key]; ok {
		return
	}
	c.items[key] = c.order.PushFront(&cached{key, value, bytes})
	for c.used += bytes; c.used > c.limit; {
		last := c.order.Back()
		old := c.order.Remove(last).(*cached)
		delete(c.items, old.key)
		c.used -= old.bytes
	}
}

// CachedCount returns the number of a segment's records that match a filter, if
// CacheCount stored it.
func (a *Archive) CachedCount(m *Manifest, filter string) (n int64, ok bool) {
	v, ok := a.duplicates.get(m.Name + "/count/" + filter)
	if !ok {
		return 0, false
	}
	return v.(int64), true
}

// CacheCount stores the number of a segment's records that match a filter, in a cache
// that columns cannot evict.
func (a *Archive) CacheCount(m *Manifest, filter string, n int64) {
	a.duplicates.put(m.Name+"/count/"+filter, n, 8)
}

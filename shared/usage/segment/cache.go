package segment

import (
	"container/list"
	"sync"
)

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

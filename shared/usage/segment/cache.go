package segment

import (
	"container/list"
	"sync"
)

// cache keeps decoded objects in memory up to a number of bytes; the least recently used
// ones leave first. The objects must not be changed. A nil cache keeps nothing.
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

// put keeps a value of about so many bytes. It does not keep a value above a quarter of the
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

// Counted returns how many records of a segment pass a filter, if Count was called for
// that.
func (a *Archive) Counted(m *Manifest, filter string) (n int64, ok bool) {
	v, ok := a.twice.get(m.Name + "/count/" + filter)
	if !ok {
		return 0, false
	}
	return v.(int64), true
}

// Count keeps how many records of a segment pass a filter. The count is in a cache from
// which columns cannot push it out.
func (a *Archive) Count(m *Manifest, filter string, n int64) {
	a.twice.put(m.Name+"/count/"+filter, n, 8)
}

package resource

import (
	"sync"
	"sync/atomic"
)

// readMap is a map for many readers: entries are read from an atomically swapped map
// without a lock. Additions are collected in a second map under a lock. They are merged
// when so many reads had to look there that the copy is worth its cost.
type readMap[K comparable, V any] struct {
	clean   atomic.Pointer[map[K]V]
	pending atomic.Int64 // entries in dirty

	mu     sync.Mutex
	dirty  map[K]V
	misses int
}

func (m *readMap[K, V]) get(k K) (V, bool) {
	clean := m.clean.Load()
	if clean != nil {
		if v, ok := (*clean)[k]; ok {
			return v, true
		}
	}
	if m.pending.Load() == 0 && clean == m.clean.Load() {
		var none V
		return none, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lookup(k)
}

// lookup reads both maps under the lock.
func (m *readMap[K, V]) lookup(k K) (V, bool) {
	if v, ok := m.dirty[k]; ok {
		m.missed()
		return v, true
	}
	if clean := m.clean.Load(); clean != nil {
		v, ok := (*clean)[k]
		return v, ok
	}
	var none V
	return none, false
}

// getOrPut gives the value under k, and stores v there when there is none.
func (m *readMap[K, V]) getOrPut(k K, v V) (got V, found bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.lookup(k); ok {
		return old, true
	}
	if m.dirty == nil {
		m.dirty = make(map[K]V)
	}
	m.dirty[k] = v
	m.pending.Store(int64(len(m.dirty)))
	return v, false
}

// clear removes everything.
func (m *readMap[K, V]) clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clean.Store(nil)
	m.dirty, m.misses = nil, 0
	m.pending.Store(0)
}

// size is the number of entries.
func (m *readMap[K, V]) size() int {
	n := int(m.pending.Load())
	if clean := m.clean.Load(); clean != nil {
		n += len(*clean)
	}
	return n
}

// missed counts a read that needed the lock, and merges when such reads have cost about as
// much as the copy will.
func (m *readMap[K, V]) missed() {
	m.misses++
	clean := m.clean.Load()
	n := len(m.dirty)
	if clean != nil {
		n += len(*clean)
	}
	if m.misses >= max(4, n/8) {
		m.merge()
	}
}

func (m *readMap[K, V]) merge() {
	if len(m.dirty) == 0 {
		return
	}
	next := make(map[K]V, m.size())
	if clean := m.clean.Load(); clean != nil {
		for k, v := range *clean {
			next[k] = v
		}
	}
	for k, v := range m.dirty {
		next[k] = v
	}
	m.clean.Store(&next)
	m.dirty, m.misses = nil, 0
	m.pending.Store(0)
}

package response

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// UnreadLimit is how often a prefix is written in succession before callers get a warning.
const UnreadLimit = 3

// maxRemembered limits the remembered prompts; evicted ones are counted from zero.
const maxRemembered = 8192

// PromptSource identifies prompts that are counted together: those of one caller, in one session if it
// names one, to one model.
type PromptSource struct{ Org, Workspace, Key, Provider, Model, Session string }

// CachedPrompts counts in one process only. The zero value is ready to use, and safe for concurrent
// use.
type CachedPrompts struct {
	mu      sync.Mutex
	seed    maphash.Seed
	written map[uint64]uint8
	any     atomic.Bool
}

// Observe records the cache usage in a response.
func (p *CachedPrompts) Observe(of PromptSource, written, read bool) {
	if !written && !read || read && !p.any.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.written == nil {
		p.written, p.seed = make(map[uint64]uint8), maphash.MakeSeed()
	}
	key := maphash.Comparable(p.seed, of)
	if read {
		delete(p.written, key)
		p.any.Store(len(p.written) > 0)
		return
	}
	if _, known := p.written[key]; !known && len(p.written) >= maxRemembered {
		for other := range p.written {
			delete(p.written, other)
			break
		}
	}
	p.written[key] = min(p.written[key]+1, UnreadLimit)
	p.any.Store(true)
}

// Any reports whether any prompt is remembered. It is cheap enough to call for each request.
func (p *CachedPrompts) Any() bool { return p.any.Load() }

// IsUnread reports whether the prefix was written UnreadLimit times in succession.
func (p *CachedPrompts) IsUnread(of PromptSource) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written != nil && p.written[maphash.Comparable(p.seed, of)] >= UnreadLimit
}

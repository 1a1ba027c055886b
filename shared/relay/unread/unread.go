// Package unread detects prompts with a marked prefix that is repeatedly written to a provider's
// cache and never read: the prefix changes with each request, or requests are too infrequent.
// Writing to the cache costs more than not marking the prefix.
package unread

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Times is how often a prefix is written in succession before callers get a warning.
const Times = 3

// most limits the remembered prompts; evicted ones are counted from zero.
const most = 8192

// Of identifies prompts that are counted together: those of one caller, in one session if it
// names one, to one model.
type Of struct{ Org, Workspace, Key, Provider, Model, Session string }

// Prompts counts in one process only. The zero value is ready to use, and safe for concurrent
// use.
type Prompts struct {
	mu      sync.Mutex
	seed    maphash.Seed
	written map[uint64]uint8
	any     atomic.Bool
}

// Note records the cache usage in a response.
func (p *Prompts) Note(of Of, written, read bool) {
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
	if _, known := p.written[key]; !known && len(p.written) >= most {
		for other := range p.written {
			delete(p.written, other)
			break
		}
	}
	p.written[key] = min(p.written[key]+1, Times)
	p.any.Store(true)
}

// Any reports whether any prompt is remembered. It is cheap enough to call for each request.
func (p *Prompts) Any() bool { return p.any.Load() }

// Unread reports whether the prefix was written Times in succession.
func (p *Prompts) Unread(of Of) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written != nil && p.written[maphash.Comparable(p.seed, of)] >= Times
}

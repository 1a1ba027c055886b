// Package unread notices prompts whose marked beginning is written to a provider's
// cache again and again and never read: what stands there changes from one request to
// the next, or nobody asks again in time. Writing costs more than not marking it.
package unread

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// Times is how often a beginning is written in a row before callers are told.
const Times = 3

// most bounds what is remembered; what is forgotten is counted anew.
const most = 8192

// Of is whose prompts are counted together: those of one caller, in one session where it
// names one, to one model.
type Of struct{ Org, Workspace, Key, Provider, Model, Session string }

// Prompts counts in one process: what another one saw is not known here. The zero value
// is good, and safe for concurrent use.
type Prompts struct {
	mu      sync.Mutex
	seed    maphash.Seed
	written map[uint64]uint8
	any     atomic.Bool
}

// Note takes what an answer told of its prompt.
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

// Any tells whether anything is remembered: asked for each request.
func (p *Prompts) Any() bool { return p.any.Load() }

// Unread tells whether the beginnings have been written Times in a row.
func (p *Prompts) Unread(of Of) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.written != nil && p.written[maphash.Comparable(p.seed, of)] >= Times
}

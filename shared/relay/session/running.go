package session

import (
	"sync"
	"time"
)

// Summary returns how the session ended, for its record.
func (r *Result) Summary() string {
	switch {
	case r.Code == Lost:
		return "lost"
	case r.ByClient:
		return "closed_by_client"
	case r.ByProvider:
		return "closed_by_provider"
	case r.Code == Policy:
		return "ended_by_policy"
	case r.Code == GoingAway:
		return "ended_by_restart"
	}
	return "closed_by_provider"
}

// Ender is a session that can be ended.
type Ender interface {
	// Drain ends it once no response is under way; it does not wait.
	Drain()
	// Break ends it now.
	Break()
}

// Running are the sessions of a process. The zero value has none.
type Running struct {
	mu     sync.Mutex
	all    map[Ender]struct{}
	ending bool
	wg     sync.WaitGroup
}

// Begin adds a session; ok is false if no new sessions are started.
func (r *Running) Begin(s Ender) (end func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending {
		return nil, false
	}
	if r.all == nil {
		r.all = make(map[Ender]struct{})
	}
	r.all[s] = struct{}{}
	r.wg.Add(1)
	return func() {
		r.mu.Lock()
		delete(r.all, s)
		r.mu.Unlock()
		r.wg.Done()
	}, true
}

// Open reports whether new sessions are started.
func (r *Running) Open() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ending
}

// Drain makes all sessions end once no response is in progress.
func (r *Running) Drain() {
	r.mu.Lock()
	r.ending = true
	all := make([]Ender, 0, len(r.all))
	for s := range r.all {
		all = append(all, s)
	}
	r.mu.Unlock()
	for _, s := range all {
		s.Drain()
	}
}

// lastTurn is how long a response may continue while sessions are draining.
const lastTurn = 20 * time.Second

// End ends all sessions and waits for them.
func (r *Running) End() {
	r.Drain()
	late := time.AfterFunc(lastTurn, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for s := range r.all {
			go s.Break() // ends with the session
		}
	})
	defer late.Stop()
	r.wg.Wait()
}

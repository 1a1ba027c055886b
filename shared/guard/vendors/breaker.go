package vendors

import (
	"sync"
	"time"
)

// Limits of breakers.
const (
	tripsAt     = 3 // consecutive outages
	restsFor    = 30 * time.Second
	maxCircuits = 4096
)

// breakers prevent vendors with outages from delaying every request. There is one for each
// address, credential and timeout, so that one customer's settings cannot block a vendor for
// others. When there are too many, all are dropped.
type breakers struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[[32]byte]*circuit
}

// circuit counts consecutive outages. After too many it opens for a while and no request calls
// the vendor. Then one request calls, and the others wait for its result.
type circuit struct {
	outages int
	until   time.Time // no calls until then
}

// allow reports whether the vendor may be called.
func (b *breakers) allow(key [32]byte) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.known[key]
	if c == nil || c.outages < tripsAt {
		return true
	}
	now := b.now()
	if now.Before(c.until) {
		return false
	}
	c.until = now.Add(restsFor) // blocks the others during this attempt
	return true
}

// record records the result of a call.
func (b *breakers) record(key [32]byte, outage bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.known[key]
	switch {
	case !outage:
		delete(b.known, key)
		return
	case c == nil:
		if len(b.known) >= maxCircuits {
			clear(b.known)
		}
		c = &circuit{}
		b.known[key] = c
	}
	if c.outages++; c.outages >= tripsAt {
		c.until = b.now().Add(restsFor)
	}
}

package vendors

import (
	"sync"
	"time"
)

// Bounds of breakers.
const (
	tripsAt     = 3 // outages in a row
	restsFor    = 30 * time.Second
	maxCircuits = 4096
)

// breakers keep vendors that do not answer from costing their time on every request:
// one for each address, credential and time that is waited, so that nobody's settings
// close a vendor to others. When there are too many, all are forgotten.
type breakers struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[[32]byte]*circuit
}

// circuit counts outages in a row. While it is open nobody calls; then one does, and
// the others wait for what becomes of it.
type circuit struct {
	outages int
	until   time.Time // nobody calls before it
}

// may tells whether the vendor may be called.
func (b *breakers) may(key [32]byte) bool {
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
	c.until = now.Add(restsFor) // the others, while this one tries
	return true
}

// told keeps what became of a call.
func (b *breakers) told(key [32]byte, outage bool) {
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

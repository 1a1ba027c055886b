// Package attempts bounds how often somebody may try something on the way in: a count in
// the store for each minute, of which every process takes a few at a time, so that most
// attempts write nothing and all processes together let no more through.
package attempts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Bound is how many attempts a subject has in each window.
type Bound struct {
	Name string // of what is tried
	Most int64
	Take int64 // at a time, by each process
	Each time.Duration
}

// kind is the partition kind of counts.
const kind = "ATTEMPTS"

// maxHeld bounds the subjects that a process knows about.
const maxHeld = 20_000

type held struct {
	until time.Time
	left  int64
	full  bool
}

// Counter counts attempts. It is safe for concurrent use.
type Counter struct {
	Store store.Store

	mu   sync.Mutex
	held map[string]held
}

// Try counts one attempt, and refuses it where there were too many.
func (c *Counter) Try(ctx context.Context, b Bound, subject string, now time.Time) error {
	window := now.UnixNano() / int64(b.Each)
	until := time.Unix(0, (window+1)*int64(b.Each))
	sum := sha256.Sum256([]byte(b.Name + "\x00" + strconv.FormatInt(window, 10) + "\x00" + subject))
	name := hex.EncodeToString(sum[:])
	if ok, known := c.use(name, now); known {
		if !ok {
			return refused(until.Sub(now))
		}
		return nil
	}
	_, after, err := c.Store.Table(store.Keys).Update(ctx, store.Update{
		Key: store.Credential(kind, name), Add: []store.Increment{{Path: store.At("n"), By: b.Take}}, Expires: until.Add(time.Minute),
	})
	if err != nil {
		return fault.Unavailable(err)
	}
	if left := b.Take - max(0, after.Int("n")-b.Most); left > 0 {
		c.hold(name, held{until: until, left: left - 1}, now)
		return nil
	}
	c.hold(name, held{until: until, full: true}, now)
	return refused(until.Sub(now))
}

// use takes one of what the process has; known is false where it has to ask.
func (c *Counter) use(name string, now time.Time) (ok, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, there := c.held[name]
	switch {
	case !there || !now.Before(h.until):
		return false, false
	case h.full:
		return false, true
	case h.left == 0:
		return false, false
	}
	h.left--
	c.held[name] = h
	return true, true
}

func (c *Counter) hold(name string, h held, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) >= maxHeld {
		for other, of := range c.held {
			if !now.Before(of.until) {
				delete(c.held, other)
			}
		}
		if len(c.held) >= maxHeld { // what was taken is lost, and none is let through that was not counted
			clear(c.held)
		}
	}
	if c.held == nil {
		c.held = map[string]held{}
	}
	if before, there := c.held[name]; there && !h.full {
		h.left += before.left // another call has taken some meanwhile
	}
	c.held[name] = h
}

func refused(after time.Duration) error {
	f := fault.New(fault.RateLimited, "", "There were too many attempts to sign in. Try again later")
	f.RetryAfter = max(after, time.Second)
	return f
}

// From is whom an address stands for: of the newer addresses a whole network, which is
// what one machine has.
func From(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return address
	}
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}

// Package attempts rate-limits sign-in attempts. The store has a count for each minute. Every
// process reserves several attempts at a time, so that most attempts write nothing, but all
// processes together never exceed the limit.
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

// Limit is the number of attempts per subject and window.
type Limit struct {
	Name string // name of the attempted action
	Most int64
	Take int64 // number of attempts that a process reserves at a time
	Each time.Duration
}

// kind is the partition kind of counts.
const kind = "ATTEMPTS"

// maxHeld is the number of subjects in memory.
const maxHeld = 20_000

// reservation is a process's reservation. Attempts of one subject are serialized, so that a
// reservation is used up before the next.
type reservation struct {
	until time.Time

	mu   sync.Mutex
	left int64
	full bool
}

// Counter counts attempts. It is safe for concurrent use.
type Counter struct {
	Store store.Store

	mu           sync.Mutex
	reservations map[string]*reservation
}

// Count counts one attempt. It returns a fault if there were too many.
func (c *Counter) Count(ctx context.Context, b Limit, subject string, now time.Time) error {
	window := now.UnixNano() / int64(b.Each)
	until := time.Unix(0, (window+1)*int64(b.Each))
	name := b.row(window, subject)
	h := c.of(name, until, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.left == 0 && !h.full {
		_, after, err := c.Store.Table(store.Keys).Update(ctx, store.Update{
			Key: store.Credential(kind, name), Add: []store.Increment{{Path: store.At("n"), By: b.Take}}, Expires: until.Add(time.Minute),
		})
		if err != nil {
			return fault.Unavailable(err)
		}
		h.left = max(0, b.Take-max(0, after.Int("n")-b.Most))
		h.full = h.left == 0
	}
	if h.full {
		return rejected(until.Sub(now))
	}
	h.left--
	return nil
}

// Exhausted returns an error if a subject has no attempts left in this window. It counts
// nothing, so that only attempts that fail need to be counted with Count; b.Take should be 1.
func (c *Counter) Exhausted(ctx context.Context, b Limit, subject string, now time.Time) error {
	window := now.UnixNano() / int64(b.Each)
	it, _, err := c.Store.Table(store.Keys).Get(ctx, store.Credential(kind, b.row(window, subject)), true)
	if err != nil {
		return fault.Unavailable(err)
	}
	if it.Int("n") >= b.Most {
		return rejected(time.Unix(0, (window+1)*int64(b.Each)).Sub(now))
	}
	return nil
}

// row returns the name of a subject's count in a window.
func (b Limit) row(window int64, subject string) string {
	sum := sha256.Sum256([]byte(b.Name + "\x00" + strconv.FormatInt(window, 10) + "\x00" + subject))
	return hex.EncodeToString(sum[:])
}

// of returns the process's reservation of a count.
func (c *Counter) of(name string, until, now time.Time) *reservation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, there := c.reservations[name]; there {
		return h
	}
	if len(c.reservations) >= maxHeld {
		for other, h := range c.reservations {
			if !now.Before(h.until) {
				delete(c.reservations, other)
			}
		}
		if len(c.reservations) >= maxHeld { // drops reservations, which never allows uncounted attempts
			clear(c.reservations)
		}
	}
	if c.reservations == nil {
		c.reservations = map[string]*reservation{}
	}
	h := &reservation{until: until}
	c.reservations[name] = h
	return h
}

func rejected(after time.Duration) error {
	f := fault.New(fault.RateLimited, "", "There were too many attempts to sign in. Try again later")
	f.RetryAfter = max(after, time.Second)
	return f
}

// From returns the subject of an IP address. For IPv6 it is the network, because one machine
// has that many addresses.
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

package egress

import (
	"sync"
	"time"
)

// Bounds of idle connections. Streams hold a connection each, so the pool is as
// wide as the concurrency that a process is expected to carry.
const (
	maxIdle        = 2048
	maxIdlePerHost = 512
	idleTime       = 90 * time.Second
)

// hostKey names the connections that one request can use for another's: scheme,
// host and port as they are written, and whose they are.
type hostKey struct {
	secure bool
	host   string
	lane   lane
}

// idlePool keeps connections between requests. The one used last is used first,
// so that those beyond the need grow old.
type idlePool struct {
	keep time.Duration // how long a connection stays idle

	mu    sync.Mutex
	hosts map[hostKey][]*conn // by time of return, the oldest first
	n     int
	sweep *time.Timer // nil while there is nothing to sweep
}

// get gives a live connection, or nil.
func (p *idlePool) get(key hostKey) *conn {
	for {
		c := p.pop(key)
		if c == nil {
			return nil
		}
		if time.Since(c.idleSince) < p.keep && c.alive() {
			c.reused = true
			return c
		}
		c.close()
	}
}

func (p *idlePool) pop(key hostKey) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.hosts[key]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	list[len(list)-1] = nil
	p.hosts[key] = list[:len(list)-1]
	p.n--
	return c
}

// put takes a connection back, or closes it when there are enough.
func (p *idlePool) put(c *conn) {
	c.idleSince = time.Now()
	p.mu.Lock()
	list := p.hosts[c.key]
	if p.n >= maxIdle || len(list) >= maxIdlePerHost {
		p.mu.Unlock()
		c.close()
		return
	}
	if p.hosts == nil {
		p.hosts = make(map[hostKey][]*conn)
	}
	p.hosts[c.key] = append(list, c)
	p.n++
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.keep, p.expire)
	}
	p.mu.Unlock()
}

// expire closes what has been idle for too long and forgets hosts without
// connections.
func (p *idlePool) expire() {
	var old []*conn
	now := time.Now()
	p.mu.Lock()
	for key, list := range p.hosts {
		n := 0
		for n < len(list) && now.Sub(list[n].idleSince) >= p.keep {
			n++
		}
		old = append(old, list[:n]...)
		p.n -= n
		if n == len(list) {
			delete(p.hosts, key)
		} else if n > 0 {
			p.hosts[key] = append(list[:0:0], list[n:]...)
		}
	}
	if p.sweep = nil; p.n > 0 {
		p.sweep = time.AfterFunc(p.keep/2, p.expire)
	}
	p.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

func (p *idlePool) closeAll() {
	p.mu.Lock()
	hosts := p.hosts
	p.hosts, p.n = nil, 0
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
	p.mu.Unlock()
	for _, list := range hosts {
		for _, c := range list {
			c.close()
		}
	}
}

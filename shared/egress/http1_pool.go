package egress

import (
	"sync"
	"time"
)

// Bounds of idle connections. Each stream holds a connection, so the pool is as wide as the
// concurrency that a process is expected to carry. A tenant may have at most half of it.
const (
	maxIdle          = 2048
	maxIdlePerHost   = 512
	maxIdlePerTenant = 1024
	idleTimeout      = 90 * time.Second
	purgeEvery       = time.Second
)

// hostKey identifies connections that different requests may share: scheme, host and port
// as they are written, and the lane.
type hostKey struct {
	secure bool
	host   string
	lane   lane
}

// The lists that an idle connection is in. Each is ordered by time of return, the oldest
// first.
const (
	ofAll = iota
	ofTenant
	ofHost
	lists
)

// idleList is one of these lists. It is linked through the connections.
type idleList struct {
	first, last *conn
	n           int
}

type links struct{ prev, next *conn }

func (l *idleList) push(kind int, c *conn) {
	c.links[kind] = links{prev: l.last}
	if l.last != nil {
		l.last.links[kind].next = c
	} else {
		l.first = c
	}
	l.last = c
	l.n++
}

func (l *idleList) remove(kind int, c *conn) {
	at := c.links[kind]
	if at.prev != nil {
		at.prev.links[kind].next = at.next
	} else {
		l.first = at.next
	}
	if at.next != nil {
		at.next.links[kind].prev = at.prev
	} else {
		l.last = at.prev
	}
	c.links[kind] = links{}
	l.n--
}

// idlePool holds idle connections. It returns the most recently used first, so that
// superfluous ones age. If there are too many, it closes the least recently used.
type idlePool struct {
	idleTimeout time.Duration // how long a connection stays idle

	mu      sync.Mutex
	all     idleList
	tenants map[string]*idleList
	hosts   map[hostKey]*idleList
	purged  time.Time
	sweep   *time.Timer // nil while there is nothing to sweep
}

// get returns a live connection, or nil.
func (p *idlePool) get(key hostKey) *conn {
	for {
		c := p.pop(key)
		if c == nil {
			return nil
		}
		if time.Since(c.idleSince) < p.idleTimeout && c.alive() {
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
	if list == nil || list.n == 0 {
		return nil
	}
	c := list.last
	p.take(c)
	return c
}

// take takes a connection out of its lists.
func (p *idlePool) take(c *conn) {
	p.all.remove(ofAll, c)
	tenant, host := p.tenants[c.key.lane.tenant], p.hosts[c.key]
	tenant.remove(ofTenant, c)
	host.remove(ofHost, c)
}

// put returns a connection to the pool. If there are then too many, those that their hosts
// have closed are removed first, and then the one used least recently.
func (p *idlePool) put(c *conn) {
	c.idleSince = time.Now()
	p.mu.Lock()
	if p.hosts == nil {
		p.hosts, p.tenants = make(map[hostKey]*idleList), make(map[string]*idleList)
	}
	host, tenant := listOf(p.hosts, c.key), listOf(p.tenants, c.key.lane.tenant)
	p.all.push(ofAll, c)
	tenant.push(ofTenant, c)
	host.push(ofHost, c)
	var last *conn
	if p.all.n > maxIdle || tenant.n > maxIdlePerTenant || host.n > maxIdlePerHost {
		p.purge(c.idleSince)
		switch {
		case host.n > maxIdlePerHost:
			last = host.first
		case tenant.n > maxIdlePerTenant:
			last = tenant.first
		case p.all.n > maxIdle:
			last = p.all.first
		}
		if last != nil {
			p.take(last)
		}
	}
	if p.sweep == nil {
		p.sweep = time.AfterFunc(p.idleTimeout, p.expire)
	}
	p.mu.Unlock()
	if last != nil {
		last.close()
	}
}

func listOf[K comparable](m map[K]*idleList, key K) *idleList {
	l := m[key]
	if l == nil {
		l = new(idleList)
		m[key] = l
	}
	return l
}

// purge closes connections that hosts have closed or sent something on. It looks at every
// connection, so it is done only once in a while.
func (p *idlePool) purge(now time.Time) {
	if now.Sub(p.purged) < purgeEvery {
		return
	}
	p.purged = now
	for c := p.all.first; c != nil; {
		next := c.links[ofAll].next
		if c.sock != nil && !c.silent() {
			p.take(c)
			c.close()
		}
		c = next
	}
}

// expire closes connections that have been idle for too long and evicts hosts and tenants
// without connections.
func (p *idlePool) expire() {
	var old []*conn
	now := time.Now()
	p.mu.Lock()
	for c := p.all.first; c != nil && now.Sub(c.idleSince) >= p.idleTimeout; c = p.all.first {
		p.take(c)
		old = append(old, c)
	}
	for key, list := range p.hosts {
		if list.n == 0 {
			delete(p.hosts, key)
		}
	}
	for key, list := range p.tenants {
		if list.n == 0 {
			delete(p.tenants, key)
		}
	}
	if p.sweep = nil; p.all.n > 0 {
		p.sweep = time.AfterFunc(p.idleTimeout/2, p.expire)
	}
	p.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

func (p *idlePool) closeAll() {
	p.mu.Lock()
	first := p.all.first
	p.hosts, p.tenants, p.all = nil, nil, idleList{}
	if p.sweep != nil {
		p.sweep.Stop()
		p.sweep = nil
	}
	p.mu.Unlock()
	for c := first; c != nil; {
		next := c.links[ofAll].next
		c.links = [lists]links{}
		c.close()
		c = next
	}
}

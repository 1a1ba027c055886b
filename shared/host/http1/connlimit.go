package http1

import (
	"io"
	"net"
	"net/netip"
	"sync"
)

// connLimit counts the connections, in total and by address. Beyond the limits it accepts
// a few at a time, for one request each, so that the server can respond that it is
// overloaded and alive.
type connLimit struct {
	all, each, reserve int // 0 means no limit

	mu    sync.Mutex
	open  int
	from  map[netip.Prefix]int
	spare []*ticket // beyond the limits, oldest first
}

// defaultReserve is the number of connections accepted beyond the limits.
const defaultReserve = 16

func newConnLimit(o *Options) *connLimit {
	return &connLimit{all: o.MaxConns, each: o.MaxPerAddress, reserve: defaultReserve, from: make(map[netip.Prefix]int)}
}

// ticket represents a connection from accept to close.
type ticket struct {
	gate  *connLimit
	who   netip.Prefix
	spare bool // beyond the limits; immutable
	conn  io.Closer
	left  bool
}

// enter counts a connection. If the reserve is full, it closes the oldest connection of
// the reserve; a client that sends its request immediately has its response by then.
func (g *connLimit) enter(from net.Addr, c io.Closer) *ticket {
	t := &ticket{gate: g, who: origin(from), conn: c}
	var oldest *ticket
	g.mu.Lock()
	t.spare = g.all > 0 && g.open >= g.all || g.each > 0 && g.from[t.who] >= g.each
	if t.spare {
		if len(g.spare) >= g.reserve {
			oldest = g.spare[0]
		}
		g.spare = append(g.spare, t)
	} else {
		g.open++
		g.from[t.who]++
	}
	g.mu.Unlock()
	if oldest != nil {
		oldest.leave()
		_ = oldest.conn.Close()
	}
	return t
}

// leave stops counting a connection. It is idempotent.
func (t *ticket) leave() {
	g := t.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.left {
		return
	}
	t.left = true
	if t.spare {
		for i, other := range g.spare {
			if other == t {
				g.spare = append(g.spare[:i], g.spare[i+1:]...)
				break
			}
		}
		return
	}
	g.open--
	if g.from[t.who]--; g.from[t.who] == 0 {
		delete(g.from, t.who)
	}
}

// origin returns the key by which connections are counted: an IPv4 address, or the /64
// prefix of an IPv6 address, which a site shares. All other addresses count as one.
func origin(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // an invalid address has no prefix, which counts as one
	return p
}

package http1

import (
	"io"
	"net"
	"net/netip"
	"sync"
)

// gate counts the connections, in all and by address. Beyond the bounds a few are still
// taken at a time, for one request each, so that the server can say that it is crowded and
// alive.
type gate struct {
	all, each, reserve int // 0: no bound

	mu    sync.Mutex
	open  int
	from  map[netip.Prefix]int
	spare []*ticket // beyond the bounds, oldest first
}

// defaultReserve is how many connections are taken beyond the bounds.
const defaultReserve = 16

func newGate(o *Options) *gate {
	return &gate{all: o.MaxConns, each: o.MaxPerAddress, reserve: defaultReserve, from: make(map[netip.Prefix]int)}
}

// ticket stands for a connection from when it is taken until it is closed.
type ticket struct {
	gate  *gate
	who   netip.Prefix
	spare bool // beyond the bounds; does not change
	conn  io.Closer
	left  bool
}

// enter counts a connection. When there is no room for one more beyond the bounds, the
// oldest of those is closed; a client that asks at once has its answer by then.
func (g *gate) enter(from net.Addr, c io.Closer) *ticket {
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

// leave counts a connection no more. Leaving again does nothing.
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

// origin is what connections are counted by: an address of IPv4, or the 64 bits of
// one of IPv6 that a site shares. All that have neither count as one.
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
	p, _ := ip.Prefix(bits) // an address that is none gives no prefix, which counts as one
	return p
}

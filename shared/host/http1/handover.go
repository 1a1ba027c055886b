package http1

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// handover is the listener of the net/http server behind this one.
type handover struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newHandover(addr net.Addr) *handover {
	return &handover{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

// handOver hands a connection over. It closes the connection if the server is closed.
func (h *handover) handOver(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.done:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr implements net.Listener.
func (h *handover) Addr() net.Addr { return h.addr }

// countedListener is the listener of a server that only uses net/http.
type countedListener struct {
	net.Listener
	s *Server
}

// Close implements net.Listener. The caller that ends the server closes the listener
// first, then net/http does.
func (l countedListener) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Accept implements net.Listener.
func (l countedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &replayConn{Conn: c, ticket: l.s.gate.enter(c.RemoteAddr(), c), writeTime: l.s.options.WriteTime}, nil
}

// replayConn is a connection that net/http serves after some bytes were read. Read
// returns these first. Its other methods are those that net/http uses.
type replayConn struct {
	net.Conn
	read      []byte
	ticket    *ticket
	writeTime time.Duration
	taken     atomic.Bool // by a handler, which sets its own write deadlines
}

// Read implements io.Reader.
func (b *replayConn) Read(p []byte) (int, error) {
	if len(b.read) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.read)
	if b.read = b.read[n:]; len(b.read) == 0 {
		b.read = nil
	}
	return n, nil
}

// writeChunk is how many bytes are written within one write deadline.
const writeChunk = 64 << 10

// Write implements io.Writer: the client must accept each chunk in time.
func (b *replayConn) Write(p []byte) (n int, err error) {
	if b.writeTime <= 0 || b.taken.Load() {
		return b.Conn.Write(p)
	}
	for n < len(p) && err == nil {
		var m int
		_ = b.Conn.SetWriteDeadline(time.Now().Add(b.writeTime)) // an error also fails the write
		m, err = b.Conn.Write(p[n:min(len(p), n+writeChunk)])
		n += m
	}
	return n, err
}

// CloseWrite closes the sending side.
func (b *replayConn) CloseWrite() error {
	if tcp, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return nil
}

// Close implements io.Closer.
func (b *replayConn) Close() error {
	b.ticket.leave()
	return b.Conn.Close()
}

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

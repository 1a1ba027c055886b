package http1

import (
	"errors"
	"net"
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

// give hands a connection over. When the server is closed, so is the connection.
func (h *handover) give(c net.Conn) {
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

// counted is the listener of a server that is net/http alone.
type counted struct {
	net.Listener
	s *Server
}

// Close implements net.Listener. Who ends the server closes the listener first, and
// then net/http does.
func (l counted) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Accept implements net.Listener.
func (l counted) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &begun{Conn: c, ticket: l.s.gate.enter(c.RemoteAddr(), c), writeTime: l.s.options.WriteTime}, nil
}

// begun is a connection that net/http serves, some of whose bytes may have been read
// already. Read gives them first. Its other methods are those that net/http asks a
// connection for.
type begun struct {
	net.Conn
	read      []byte
	ticket    *ticket
	writeTime time.Duration
	taken     atomic.Bool // by a handler, which bounds its own writes
}

// Read implements io.Reader.
func (b *begun) Read(p []byte) (int, error) {
	if len(b.read) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.read)
	if b.read = b.read[n:]; len(b.read) == 0 {
		b.read = nil
	}
	return n, nil
}

// piece is how much is written within one time for writes, in bytes.
const piece = 64 << 10

// Write implements io.Writer: the client must take each piece in time.
func (b *begun) Write(p []byte) (n int, err error) {
	if b.writeTime <= 0 || b.taken.Load() {
		return b.Conn.Write(p)
	}
	for n < len(p) && err == nil {
		var m int
		_ = b.Conn.SetWriteDeadline(time.Now().Add(b.writeTime)) // an error is the write's, too
		m, err = b.Conn.Write(p[n:min(len(p), n+piece)])
		n += m
	}
	return n, err
}

// CloseWrite ends what is sent.
func (b *begun) CloseWrite() error {
	if tcp, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return tcp.CloseWrite()
	}
	return nil
}

// Close implements io.Closer.
func (b *begun) Close() error {
	b.ticket.leave()
	return b.Conn.Close()
}

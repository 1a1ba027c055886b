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

// give hands a connection over. It closes the connection if the server is closed.
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

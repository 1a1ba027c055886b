package http1

import (
	"io"
	"net"
	"sync"
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

// begun is a connection whose first bytes were read already. Read gives them
// first. Its other methods are those that net/http asks a connection for.
type begun struct {
	net.Conn // a *net.TCPConn
	read     []byte
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

// CloseWrite ends what is sent.
func (b *begun) CloseWrite() error { return b.Conn.(*net.TCPConn).CloseWrite() }

// ReadFrom implements io.ReaderFrom.
func (b *begun) ReadFrom(r io.Reader) (int64, error) { return b.Conn.(*net.TCPConn).ReadFrom(r) }

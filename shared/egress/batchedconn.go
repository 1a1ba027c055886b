package egress

import (
	"crypto/tls"
	"net"
	"runtime"
	"sync"
	"time"
)

// maxGathered bounds what waits to be written on a connection. A writer that exceeds it
// waits until some of it was written.
const maxGathered = 128 << 10

// closeTime is how long the closing message of a connection may take.
const closeTime = 250 * time.Millisecond

// gatherings holds memory in which writes are gathered. A connection has none while nothing
// is written.
var gatherings = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

func giveBack(b *[]byte) {
	if cap(*b) <= 2*maxGathered {
		*b = (*b)[:0]
		gatherings.Put(b)
	}
}

// batchedConn is an HTTP/2 connection over TLS that batches writes. The client of HTTP/2
// writes the head of a request, and its body in frames of 16 KB and 9 bytes; each write
// would be one or two TLS records and a system call. Here everything that is written
// during the previous system call, or before the writing goroutine waits, is sent by one
// call, regardless of the request.
//
// An error appears in the next write, and ends the reading side of the connection.
type batchedConn struct {
	net.Conn // secure
	secure   *tls.Conn
	wire     *corked       // beneath TLS
	settled  chan struct{} // closed when the client has handled the host's first frame, its settings
	first    firstFrame    // of the reading goroutine

	mu      sync.Mutex
	room    sync.Cond // signals that pending has space
	pending *[]byte   // written but not yet sent; nil means nothing
	flushes bool      // a goroutine is sending pending
	err     error
}

// ConnectionState returns the state of TLS, for the HTTP/2 client.
func (g *batchedConn) ConnectionState() tls.ConnectionState { return g.secure.ConnectionState() }

func gather(secure *tls.Conn, wire *corked) *batchedConn {
	g := &batchedConn{Conn: secure, secure: secure, wire: wire, settled: make(chan struct{})}
	g.room.L = &g.mu
	return g
}

// Read implements net.Conn. The client of HTTP/2 reads again when it has handled every
// frame that it has read completely.
func (g *batchedConn) Read(p []byte) (int, error) {
	if g.first.done {
		return g.Conn.Read(p)
	}
	if g.first.whole() {
		g.first.done = true
		close(g.settled)
	}
	n, err := g.Conn.Read(p)
	g.first.add(p[:n])
	if err != nil && !g.first.done {
		g.first.done = true
		close(g.settled)
	}
	return n, err
}

// firstFrame follows the first frame of a connection, which begins with its length in three
// of nine bytes of head (RFC 9113, 4.1).
type firstFrame struct {
	done   bool
	read   int // bytes
	length int
}

func (f *firstFrame) add(p []byte) {
	for i := 0; f.read+i < 3 && i < len(p); i++ {
		f.length = f.length<<8 | int(p[i])
	}
	f.read += len(p)
}

func (f *firstFrame) whole() bool { return f.read >= 9+f.length }

// Write implements net.Conn.
func (g *batchedConn) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.err == nil && g.pending != nil && len(*g.pending)+len(p) > maxGathered {
		g.room.Wait()
	}
	if g.err != nil {
		return 0, g.err
	}
	if g.pending == nil {
		g.pending = gatherings.Get().(*[]byte)
	}
	*g.pending = append(*g.pending, p...)
	if !g.flushes {
		g.flushes = true
		go g.flush()
	}
	return len(p), nil
}

// flush writes until nothing is pending.
func (g *batchedConn) flush() {
	runtime.Gosched() // lets the body be written after its head
	g.mu.Lock()
	for g.err == nil && g.pending != nil {
		out := g.pending
		g.pending = nil
		g.room.Broadcast()
		g.mu.Unlock()
		err := g.send(*out)
		giveBack(out)
		g.mu.Lock()
		if err != nil && g.err == nil {
			g.err = err
			_ = g.secure.NetConn().Close() // so that readers do not wait forever
		}
	}
	g.flushes = false
	g.room.Broadcast()
	g.mu.Unlock()
}

// send makes as few TLS records as possible, and one call.
func (g *batchedConn) send(out []byte) error {
	g.wire.cork()
	_, err := g.Conn.Write(out)
	if sent := g.wire.uncork(); err == nil {
		err = sent
	}
	return err
}

// Close implements net.Conn. Pending writes are not sent.
func (g *batchedConn) Close() error {
	g.mu.Lock()
	if g.err == nil {
		g.err = net.ErrClosed
	}
	g.pending = nil
	g.room.Broadcast()
	g.mu.Unlock()
	// The socket may be too full for the closing message of TLS.
	t := time.AfterFunc(closeTime, func() { _ = g.secure.NetConn().Close() })
	defer t.Stop()
	return g.Conn.Close()
}

// corked buffers writes between cork and uncork, and combines them.
type corked struct {
	net.Conn

	mu     sync.Mutex
	buffer *[]byte // nil means not corked
}

func (c *corked) cork() {
	c.mu.Lock()
	c.buffer = gatherings.Get().(*[]byte)
	c.mu.Unlock()
}

// Write implements net.Conn.
func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buffer == nil {
		return c.Conn.Write(p)
	}
	*c.buffer = append(*c.buffer, p...)
	return len(p), nil
}

// uncork writes the buffer.
func (c *corked) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.buffer
	c.buffer = nil
	defer giveBack(held)
	if len(*held) == 0 {
		return nil
	}
	_, err := c.Conn.Write(*held)
	return err
}

package egress

import (
	"crypto/tls"
	"net"
	"runtime"
	"sync"
	"time"
)

// mostGathered bounds what waits to be written on a connection; who writes more waits
// until some of it has gone.
const mostGathered = 128 << 10

// closeTime is how long a connection may take to say that it ends.
const closeTime = 250 * time.Millisecond

// gatherings is the memory in which writes are gathered: a connection has none while
// nothing is written.
var gatherings = sync.Pool{New: func() any { b := make([]byte, 0, 16<<10); return &b }}

func giveBack(b *[]byte) {
	if cap(*b) <= 2*mostGathered {
		*b = (*b)[:0]
		gatherings.Put(b)
	}
}

// gathered is a connection of HTTP/2 over TLS whose writes go out together. The client
// of HTTP/2 writes the head of a request, and its body in frames of 16 KB and 9 bytes,
// each of which would be a record of TLS, or two, and a call to the system. Here what is
// written while the one before goes out, or before the one who wrote waits for
// anything, goes out by one call, whatever requests it belongs to.
//
// An error shows in the next write, and ends what reads the connection.
type gathered struct {
	*tls.Conn
	wire *corked // beneath TLS

	mu      sync.Mutex
	room    sync.Cond // of pending
	pending *[]byte   // written, and not gone; nil: nothing
	flushes bool      // somebody writes pending
	err     error
}

func gather(secure *tls.Conn, wire *corked) *gathered {
	g := &gathered{Conn: secure, wire: wire}
	g.room.L = &g.mu
	return g
}

// Write implements net.Conn.
func (g *gathered) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.err == nil && g.pending != nil && len(*g.pending)+len(p) > mostGathered {
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
func (g *gathered) flush() {
	runtime.Gosched() // a body follows its head
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
			_ = g.NetConn().Close() // what waits for answers must not wait for ever
		}
	}
	g.flushes = false
	g.room.Broadcast()
	g.mu.Unlock()
}

// send writes as few records as TLS has it, by one call.
func (g *gathered) send(out []byte) error {
	g.wire.cork()
	_, err := g.Conn.Write(out)
	if sent := g.wire.uncork(); err == nil {
		err = sent
	}
	return err
}

// Close implements net.Conn. What is pending does not go out.
func (g *gathered) Close() error {
	g.mu.Lock()
	if g.err == nil {
		g.err = net.ErrClosed
	}
	g.pending = nil
	g.room.Broadcast()
	g.mu.Unlock()
	// The last word of TLS may find no room on its way.
	t := time.AfterFunc(closeTime, func() { _ = g.NetConn().Close() })
	defer t.Stop()
	return g.Conn.Close()
}

// corked holds what is written between cork and uncork, and writes it as one.
type corked struct {
	net.Conn

	mu   sync.Mutex
	held *[]byte // nil: not corked
}

func (c *corked) cork() {
	c.mu.Lock()
	c.held = gatherings.Get().(*[]byte)
	c.mu.Unlock()
}

// Write implements net.Conn.
func (c *corked) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil {
		return c.Conn.Write(p)
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// uncork writes what was held.
func (c *corked) uncork() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.held
	c.held = nil
	defer giveBack(held)
	if len(*held) == 0 {
		return nil
	}
	_, err := c.Conn.Write(*held)
	return err
}

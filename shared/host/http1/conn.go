package http1

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/wire/socket"
)

// frame buffers bytes read from a connection. A head that does not fit is left to
// net/http. A connection without unprocessed bytes has no frame.
type frame [16 << 10]byte

var frames = sync.Pool{New: func() any { return new(frame) }}

// conn is one connection, served by one goroutine.
type conn struct {
	s      *Server
	net    *socket.Conn
	ticket *ticket
	spare  bool // over the limit: serves one request
	remote string

	in   *frame // nil when r == w
	r, w int    // received and unconsumed bytes are in[r:w]
	line int    // offset after r of the first unchecked line of the head
	ends int    // number of line ends dropped before the head

	header http.Header // empty header for the next response; nil to create one

	state   atomic.Uint64
	current atomic.Pointer[exchange]
	later   bool // a request has been served

	awaits  bool          // a body is being read
	allowed atomic.Int64  // maximum duration of the receiving state, as a time.Duration
	stalled atomic.Uint64 // the tick at which a write began to wait, plus one; 0 if none waits

	// The methods as values, created once.
	receiveFunc func(fd uintptr) bool
	peek        func(fd uintptr) // called by the watcher
	ended       bool             // its result
}

// newConn returns nil if the socket does not support raw access.
func newConn(s *Server, tcp *net.TCPConn, t *ticket) *conn {
	sock, err := socket.New(tcp)
	if err != nil {
		return nil
	}
	c := &conn{s: s, net: sock, ticket: t, spare: t.spare, remote: tcp.RemoteAddr().String()}
	c.receiveFunc = c.receive
	c.peek = func(fd uintptr) { c.ended = socket.Ended(fd) }
	sock.BeforeWaiting(c.startBodyWait)
	sock.OnFull(c.startWriteWait)
	return c
}

// release returns the frame to the pool if it has no unconsumed bytes.
func (c *conn) release() {
	if c.in != nil && c.r == c.w {
		frames.Put(c.in)
		c.in, c.r, c.w = nil, 0, 0
	}
}

// serve serves requests until the connection ends or is handed over.
func (c *conn) serve() {
	handed := false
	defer func() {
		c.s.remove(c)
		if !handed {
			c.ticket.leave()
			_ = c.net.Close()
		}
		if c.in != nil {
			frames.Put(c.in)
			c.in = nil
		}
	}()
	for {
		x, next := c.request()
		if next == serveNext {
			if !x.serve() {
				return
			}
			c.later = true
			continue
		}
		if next == handOverNext && !c.s.closing.Load() {
			handed = true
			c.handOver()
		}
		return
	}
}

// handOver gives the connection to net/http with the unconsumed bytes.
func (c *conn) handOver() {
	read := bytes.Clone(c.in[c.r:c.w])
	c.r = c.w
	c.s.handed.handOver(&replayConn{Conn: c.net.TCP(), read: read, ticket: c.ticket, writeTime: c.s.options.WriteTime})
}

// next is the next action on a connection.
type next uint8

const (
	closeNext    next = iota // close it
	waitNext                 // wait for more bytes
	serveNext                // serve a complete head
	handOverNext             // leave it to net/http
)

// receive reads available bytes. The raw read of the socket calls it and waits as long as
// it returns false, so a waiting connection has no frame. A closed connection has no
// frame either.
func (c *conn) receive(fd uintptr) bool {
	in := frames.Get().(*frame)
	n, again, _ := c.net.ReadNow(fd, in[:])
	if n == 0 {
		frames.Put(in)
		return !again
	}
	c.in, c.r, c.w = in, 0, n
	return true
}

// await waits for the first bytes of a request; false if the connection has ended.
func (c *conn) await() bool {
	c.release()
	waits := fresh
	if c.later {
		waits = idle
	}
	state := c.enter(waits)
	return c.net.Sys().Read(c.receiveFunc) == nil && c.in != nil && c.state.CompareAndSwap(state, busy)
}

// request returns the next request.
func (c *conn) request() (*exchange, next) {
	if c.in == nil && !c.await() {
		return nil, closeNext
	}
	for state := busy; ; {
		x, next := c.parseFrame()
		if next != waitNext {
			if state != busy && !c.state.CompareAndSwap(state, busy) {
				return nil, closeNext
			}
			return x, next
		}
		if c.r == c.w { // only line ends
			if !c.await() {
				return nil, closeNext
			}
			continue
		}
		if state == busy {
			state = c.enter(heading)
		}
		if c.r > 0 {
			c.w, c.r = copy(c.in[:], c.in[c.r:c.w]), 0
		}
		n, err := c.net.Read(c.in[c.w:])
		if c.w += n; n > 0 {
			continue
		}
		// net/http responds to a partial head, but not to fewer bytes than it waits for
		// between requests.
		if err == io.EOF && (!c.later || c.w >= 4) && c.state.CompareAndSwap(state, busy) {
			return nil, handOverNext
		}
		return nil, closeNext
	}
}

// parseFrame parses a request in the frame and consumes its head.
func (c *conn) parseFrame() (*exchange, next) {
	if !c.skipLineEnds() {
		return nil, waitNext
	}
	from := c.r + max(0, c.line-2)
	n := bytes.Index(c.in[from:c.w], []byte("\r\n\r\n"))
	if n < 0 {
		if !c.plausible() || c.r == 0 && c.w == len(c.in) {
			return nil, handOverNext
		}
		return nil, waitNext
	}
	start, end := c.r, from+n+4
	c.r = end
	x, ok := c.parse(string(c.in[start:end]))
	if !ok {
		c.r = start
		return nil, handOverNext
	}
	c.line, c.ends = 0, 0
	return x, serveNext
}

// maxLineEnds is the maximum number of line end bytes before a request. Some clients send
// them after a body or a head; net/http drops as many after the body of a POST (RFC 9112,
// 2.2).
const maxLineEnds = 4

// skipLineEnds drops line ends before a head; false if nothing else has arrived.
func (c *conn) skipLineEnds() bool {
	for c.ends < maxLineEnds && c.line == 0 && c.r < c.w && (c.in[c.r] == '\r' || c.in[c.r] == '\n') {
		c.r++
		c.ends++
	}
	return c.r < c.w
}

// plausible reports whether the complete lines so far may be a supported request. If not,
// net/http can respond without waiting for more.
func (c *conn) plausible() bool {
	for {
		b := c.in[c.r+c.line : c.w]
		n := bytes.IndexByte(b, '\n')
		if n < 0 {
			return true
		}
		if n == 0 || b[n-1] != '\r' {
			return false
		}
		line := string(b[:n-1])
		if c.line == 0 {
			if _, _, ok := requestLine(line); !ok {
				return false
			}
		} else if _, _, ok := fieldLine(line); !ok {
			return false
		}
		c.line += n + 1
	}
}

// fill reads bytes of a body into the empty frame.
func (c *conn) fill(b *body) error {
	if c.in == nil {
		c.in = frames.Get().(*frame)
	}
	n, err := b.receive(c.in[:])
	if c.r, c.w = 0, n; n > 0 {
		return nil
	}
	c.release()
	return err
}

// rstPause is how long a client that is still sending may read from a closed connection,
// because the reset caused by its bytes would destroy the response. It equals that of
// net/http.
const rstPause = 500 * time.Millisecond

// closeSlowly closes a connection with a client that may still be sending.
func (c *conn) closeSlowly() {
	_ = c.net.CloseWrite()
	_ = c.net.SetReadDeadline(time.Now().Add(rstPause))
	if c.in == nil {
		c.in = frames.Get().(*frame)
	}
	for {
		if n, err := c.net.Read(c.in[:]); n == 0 || err != nil {
			return
		}
	}
}

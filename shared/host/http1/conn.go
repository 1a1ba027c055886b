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

// frame holds what was read of a connection. A head that does not fit is one for
// net/http. A connection without bytes to work on has none.
type frame [16 << 10]byte

var frames = sync.Pool{New: func() any { return new(frame) }}

// conn is one connection, served by one goroutine.
type conn struct {
	s      *Server
	net    *socket.Conn
	ticket *ticket
	spare  bool // beyond the bounds: one request
	remote string

	in   *frame // nil when r == w
	r, w int    // what was received and not consumed is in[r:w]
	line int    // where, after r, the first line of the head begins that was not looked at
	ends int    // line ends that were dropped before the head

	header http.Header // for the next answer, empty; nil: it makes one

	state   atomic.Uint64
	current atomic.Pointer[exchange]
	later   bool // a request has been served

	awaits  bool          // a body is read
	allowed atomic.Int64  // how long a receiving connection may last in that, as a time.Duration
	stalled atomic.Uint64 // the tick at which a write began to wait, and one; 0: none waits

	// The methods as values, made once.
	came  func(fd uintptr) bool
	peek  func(fd uintptr) // called by the watcher
	ended bool             // what it found
}

// newConn is nil when the socket cannot be looked at.
func newConn(s *Server, tcp *net.TCPConn, t *ticket) *conn {
	sock, err := socket.New(tcp)
	if err != nil {
		return nil
	}
	c := &conn{s: s, net: sock, ticket: t, spare: t.spare, remote: tcp.RemoteAddr().String()}
	c.came = c.receive
	c.peek = func(fd uintptr) { c.ended = socket.Ended(fd) }
	sock.BeforeWaiting(c.waitsForBody)
	sock.WhenFull(c.waitsForReader)
	return c
}

// release gives the frame back when nothing in it is left to be consumed.
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
		c.s.forget(c)
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
		if next == serveIt {
			if !x.serve() {
				return
			}
			c.later = true
			continue
		}
		if next == handIt && !c.s.closing.Load() {
			handed = true
			c.handOver()
		}
		return
	}
}

// handOver gives the connection to net/http with what was read and not consumed.
func (c *conn) handOver() {
	read := bytes.Clone(c.in[c.r:c.w])
	c.r = c.w
	c.s.handed.give(&begun{Conn: c.net.TCP(), read: read, ticket: c.ticket, writeTime: c.s.options.WriteTime})
}

// next is what becomes of a connection.
type next uint8

const (
	endIt   next = iota // it is over
	waitIt              // more must come
	serveIt             // a whole head of a request that is taken here
	handIt              // one for net/http
)

// receive takes what has come. A read of the socket calls it and waits as long as it
// returns false; so a connection that waits holds no frame. Once the connection has ended,
// for whatever reason, there is no frame.
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

// await waits for the first bytes of a request; false when the connection has ended.
func (c *conn) await() bool {
	c.release()
	waits := fresh
	if c.later {
		waits = idle
	}
	state := c.enter(waits)
	return c.net.Sys().Read(c.came) == nil && c.in != nil && c.state.CompareAndSwap(state, busy)
}

// request gives the next request.
func (c *conn) request() (*exchange, next) {
	if c.in == nil && !c.await() {
		return nil, endIt
	}
	for state := busy; ; {
		x, next := c.look()
		if next != waitIt {
			if state != busy && !c.state.CompareAndSwap(state, busy) {
				return nil, endIt
			}
			return x, next
		}
		if c.r == c.w { // nothing but line ends
			if !c.await() {
				return nil, endIt
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
		// net/http answers half a head, but not less than it waits for between
		// requests.
		if err == io.EOF && (!c.later || c.w >= 4) && c.state.CompareAndSwap(state, busy) {
			return nil, handIt
		}
		return nil, endIt
	}
}

// look looks for a request in the frame and consumes its head.
func (c *conn) look() (*exchange, next) {
	if !c.skipLineEnds() {
		return nil, waitIt
	}
	from := c.r + max(0, c.line-2)
	n := bytes.Index(c.in[from:c.w], []byte("\r\n\r\n"))
	if n < 0 {
		if !c.plausible() || c.r == 0 && c.w == len(c.in) {
			return nil, handIt
		}
		return nil, waitIt
	}
	start, end := c.r, from+n+4
	c.r = end
	x, ok := c.parse(string(c.in[start:end]))
	if !ok {
		c.r = start
		return nil, handIt
	}
	c.line, c.ends = 0, 0
	return x, serveIt
}

// maxLineEnds is how many bytes of line ends may come before a request. Some clients send
// them behind a body or a head. It is as many as net/http drops behind the body of a POST
// (RFC 9112, 2.2).
const maxLineEnds = 4

// skipLineEnds drops line ends before a head; false when nothing else is there yet.
func (c *conn) skipLineEnds() bool {
	for c.ends < maxLineEnds && c.line == 0 && c.r < c.w && (c.in[c.r] == '\r' || c.in[c.r] == '\n') {
		c.r++
		c.ends++
	}
	return c.r < c.w
}

// plausible tells whether the complete lines so far may belong to a request that is taken
// here. If not, net/http can answer without waiting for more.
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

// fill reads of a body into the frame, which holds nothing.
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
// because the reset that its bytes cause would destroy the answer. net/http waits as long.
const rstPause = 500 * time.Millisecond

// closeSlowly ends a connection whose client may still be sending.
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

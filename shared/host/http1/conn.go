package http1

import (
	"bytes"
	"io"
	"net"
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
	remote string

	in   *frame // nil when r == w
	r, w int    // what was received and not consumed is in[r:w]
	line int    // where, after r, the first line of the head begins that was not looked at
	post bool   // the request before was a POST

	state   atomic.Uint64
	current atomic.Pointer[exchange]
	later   bool // a request has been served

	// The methods as values, made once.
	came  func(fd uintptr) bool
	peek  func(fd uintptr) // called by the watcher
	ended bool             // what it found
}

// newConn is nil when the socket cannot be looked at.
func newConn(s *Server, tcp *net.TCPConn) *conn {
	sock, err := socket.New(tcp)
	if err != nil {
		return nil
	}
	c := &conn{s: s, net: sock, remote: tcp.RemoteAddr().String()}
	c.came = c.receive
	c.peek = func(fd uintptr) { c.ended = socket.Ended(fd) }
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
	c.s.handed.give(&begun{Conn: c.net.TCPConn, read: read})
}

// next is what becomes of a connection.
type next uint8

const (
	endIt   next = iota // it is over
	waitIt              // more must come
	serveIt             // a whole head of a request that is taken here
	handIt              // one for net/http
)

// receive takes what has come. It is called back by a read of the socket, which
// waits as long as receive is false: so a connection that waits holds no frame.
// There is no frame after the connection's end, for whatever reason.
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

// request gives the next request.
func (c *conn) request() (*exchange, next) {
	if c.in == nil {
		state := c.state.Load()
		if c.later {
			state = c.enter(idle)
		}
		if c.net.Sys().Read(c.came) != nil || c.in == nil || !c.state.CompareAndSwap(state, busy) {
			return nil, endIt
		}
	}
	for state := busy; ; {
		x, next := c.look()
		if next != waitIt {
			if state != busy && !c.state.CompareAndSwap(state, busy) {
				return nil, endIt
			}
			return x, next
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
	if c.post && !c.skipBlank() {
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
	c.line = 0
	return x, serveIt
}

// skipBlank drops the line ends that some clients send behind the body of a POST,
// among the four bytes that net/http looks at. It is false when more must come
// before that can be told.
func (c *conn) skipBlank() bool {
	b := c.in[c.r:c.w]
	if len(b) > 0 && b[0] != '\r' && b[0] != '\n' {
		return true
	}
	if len(b) < 4 {
		return false
	}
	c.post = false
	for n := 0; n < 4 && (b[n] == '\r' || b[n] == '\n'); n++ {
		c.r++
	}
	return c.r < c.w
}

// plausible tells whether the lines that have come whole may be of a request that
// is taken here, so that net/http answers the others without waiting for more.
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

// fill reads into the frame, which holds nothing.
func (c *conn) fill() error {
	if c.in == nil {
		c.in = frames.Get().(*frame)
	}
	n, err := c.net.Read(c.in[:])
	if c.r, c.w = 0, n; n > 0 {
		return nil
	}
	c.release()
	return err
}

// rstPause is how long a closed connection may go on to be read by a client that
// is still sending: the reset that its bytes cause would take the answer away. It
// is what net/http waits.
const rstPause = 500 * time.Millisecond

// closeSlowly ends a connection whose client may still be sending.
func (c *conn) closeSlowly() {
	_ = c.net.CloseWrite()
	select {
	case <-time.After(rstPause):
	case <-c.s.done:
	}
}

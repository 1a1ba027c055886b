package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"gateway/shared/wire/socket"
)

// frame is the memory that a connection uses while it serves a request. An idle connection
// has none.
type frame struct {
	b    [32 << 10]byte // one read takes many events of a stream
	r, w int            // received and unconsumed bytes are b[r:w]
}

var frames = sync.Pool{New: func() any { return new(frame) }}

func newFrame() *frame {
	f := frames.Get().(*frame)
	f.r, f.w = 0, 0
	return f
}

// conn is one connection. It serves one request at a time, in the caller's goroutines.
type conn struct {
	pool      *idlePool
	key       hostKey
	net       net.Conn     // for reading and writing
	sock      *socket.Conn // the socket below net, or net itself; nil where sockets cannot be inspected
	tls       *tls.ConnectionState
	reused    bool
	release   func() // called when it is closed; may be nil counts it
	idleSince time.Time
	links     [lists]links // while it is idle; guarded by the pool's lock

	sending turnState

	// The methods as values, so that they are allocated once.
	abort  func()
	turned func(fd uintptr) bool
	peek   func(fd uintptr) bool
	gone   bool // the result of peek
}

func newConn(p *idlePool, key hostKey, c net.Conn, secure *tls.Conn) *conn {
	n := &conn{pool: p, key: key, net: c}
	raw := c
	if secure != nil {
		raw = secure.NetConn()
		state := secure.ConnectionState()
		n.tls = &state
	}
	if wire, ok := raw.(*corked); ok { // HTTP/2 was offered
		raw = wire.Conn
	}
	n.sock, _ = raw.(*socket.Conn)
	n.abort = func() { _ = c.SetDeadline(expiredDeadline) }
	n.turned = n.turn
	n.peek = func(fd uintptr) bool { n.gone = !socket.IsIdle(fd); return true }
	return n
}

func (c *conn) close() {
	_ = c.net.Close()
	if c.release != nil {
		c.release()
	}
}

// plain reports whether turn sends the requests.
func (c *conn) plain() bool { return c.sock != nil && c.tls == nil }

// alive reports whether an idle connection is still open and silent. Unrequested bytes
// make it unusable, because they would be taken for the next answer. A plain connection
// is checked when a request is sent.
func (c *conn) alive() bool {
	if c.plain() {
		return true
	}
	if c.sock != nil && !c.silent() {
		return false
	}
	return c.tls == nil || c.drained()
}

// silent reports whether nothing has come on an idle connection, not even its end.
func (c *conn) silent() bool {
	c.gone = true
	return c.sock.Sys().Read(c.peek) == nil && !c.gone
}

// drained reports whether TLS holds no received data: records that arrived with the
// response are no longer in the socket. With its deadline in the past, a read returns
// those and does not wait for more.
func (c *conn) drained() bool {
	var one [1]byte
	if c.net.SetReadDeadline(expiredDeadline) != nil {
		return false
	}
	n, err := c.net.Read(one[:])
	return n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.net.SetReadDeadline(time.Time{}) == nil
}

// maxInline is the largest body that is written by a blocking write before the response is
// read. A host's receive buffer takes that much even if the host is not reading, so neither
// side can wait for the other.
const maxInline = 64 << 10

// staleTime is how soon after the request the end of a reused connection means that the
// host had closed it while it was idle. Later the host may have worked on the request, which
// is not sent again then.
const staleTime = 2 * time.Second

// earlyTime is how long to wait for a response after a write has failed: a host may reject
// a request and close before it has read all of it.
const earlyTime = 200 * time.Millisecond

// roundTrip sends a request and reads the head of its response. again reports that the
// request may still be sent on another connection.
func (c *conn) roundTrip(req *http.Request, body *Body) (resp *http.Response, err error, again bool) {
	ctx := req.Context()
	x := &exchange{c: c, ctx: ctx, f: newFrame()}
	began := time.Now()
	x.watch.Begin(ctx, c.abort)
	sent, err := x.send(req, body)
	if err != nil {
		if x.ended { // nothing was sent yet
			return nil, err, false
		}
		if err == errStale {
			x.end(false)
			return nil, err, true
		}
		if sent == 0 {
			x.end(false)
			return nil, err, c.reused
		}
		// A response may have come before the host closed the connection.
		_ = c.net.SetReadDeadline(time.Now().Add(earlyTime))
		x.cut = true
	}
	h, herr := x.head()
	if herr != nil {
		x.end(false)
		if err != nil {
			return nil, err, !x.responded && c.reused && closed(err) && time.Since(began) < staleTime
		}
		return nil, herr, !x.responded && c.reused && closed(herr) && (idempotent(req) || time.Since(began) < staleTime)
	}
	if x.cut {
		_ = c.net.SetReadDeadline(time.Time{})
		if ctx.Err() != nil {
			c.abort()
		}
	}
	return x.respond(req, h), nil, false
}

// closed reports whether the other side has ended a connection.
func closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// send writes the request and reports how much of it was sent. If the socket does not
// take a large body at once, a goroutine continues writing it, so that a response is
// noticed that comes before the host has read the body.
func (x *exchange) send(req *http.Request, body *Body) (sent int, err error) {
	c := x.c
	var data []byte
	if body != nil {
		data = body.data
	}
	head, err := appendHead(x.f.b[:0], req, len(data))
	if err != nil {
		wrote(req, body, err)
		x.end(false)
		return 0, err
	}
	if len(head)+len(data) <= cap(x.f.b) {
		head, data = append(head, data...), nil
	}
	if c.plain() {
		sent, err = x.sendRequest(req, body, head, data)
		if err != nil || sent == len(head)+len(data) {
			return sent, err
		}
		head, data = head[min(sent, len(head)):], data[max(0, sent-len(head)):]
	} else if len(data) <= maxInline {
		sent, err = c.gather(head, data)
		wrote(req, body, err)
		return sent, err
	}
	x.sendOn(req, body, head, data)
	return max(sent, 1), nil
}

// gather writes two parts in as few writes as possible.
func (c *conn) gather(a, b []byte) (int, error) {
	if c.plain() {
		return c.sock.WriteParts(a, b)
	}
	n, err := c.net.Write(a) // a TLS record takes as much as fits
	if err == nil && len(b) > 0 {
		var m int
		m, err = c.net.Write(b)
		n += m
	}
	return n, err
}

// sendOn writes the rest of a request while its response may already come.
func (x *exchange) sendOn(req *http.Request, body *Body, head, data []byte) {
	sending := x.f // head is in it
	x.f = newFrame()
	x.writing = make(chan error, 1)
	c, done := x.c, x.writing
	go func() {
		_, err := c.gather(head, data)
		frames.Put(sending)
		wrote(req, body, err)
		done <- err
	}()
}

// head reads heads until one is not informational.
func (x *exchange) head() (responseHead, error) {
	for total := 0; ; {
		text, err := x.headText(maxHead - total)
		if err != nil {
			return responseHead{}, err
		}
		total += len(text)
		h, err := parseHead(text)
		if err != nil {
			return h, err
		}
		if h.status == http.StatusSwitchingProtocols {
			return h, malformed("an upgrade that was not requested")
		}
		if h.status >= 200 {
			return h, nil
		}
	}
}

// headText reads a complete head of at most limit bytes.
func (x *exchange) headText(limit int) (string, error) {
	if x.lost != nil {
		return "", x.failure(noResponse, x.lost)
	}
	f := x.f
	b := f.b[f.r:f.w]
	grown := []byte(nil) // for a head that is larger than the frame
	line := 0
	for {
		end, next := headEnd(b, line)
		if end > limit || end == 0 && len(b) >= limit {
			return "", malformed("the head is too large")
		}
		if end > 0 {
			text := string(b[:end])
			if grown == nil {
				f.r += end
			} else {
				f.r, f.w = 0, copy(f.b[:], b[end:])
			}
			return text, nil
		}
		line = next
		if grown == nil && f.r > 0 {
			f.w = copy(f.b[:], b)
			f.r = 0
		}
		if grown == nil && f.w == len(f.b) {
			grown = append(make([]byte, 0, limit), b...)
		}
		var n int
		var err error
		if grown == nil {
			n, err = x.c.net.Read(f.b[f.w:])
			f.w += n
			b = f.b[f.r:f.w]
		} else {
			// At most as much as the frame can take back of what follows the head.
			n, err = x.c.net.Read(grown[len(grown):min(cap(grown), len(grown)+len(f.b))])
			grown = grown[:len(grown)+n]
			b = grown
		}
		x.responded = x.responded || n > 0
		if err != nil && n == 0 {
			return "", x.failure(noResponse, err)
		}
	}
}

const noResponse = "the host closed the connection before its response"

// failure returns the cause of a connection's failure.
func (x *exchange) failure(what string, err error) error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return broken(what, err)
}

// turnState holds what turn needs and its results.
type turnState struct {
	x          *exchange
	req        *http.Request
	body       *Body
	head, data []byte
	started    bool
	stale      bool
	sent       int
	err        error // the write's error
}

// errStale reports that a connection was closed, or received unrequested bytes, while it was
// idle.
var errStale = errors.New("egress: the connection is stale")

// sendRequest sends as much of a request as the socket takes at once. If it took all, it also waits
// for the first bytes of the response. An error means that sending failed.
func (x *exchange) sendRequest(req *http.Request, body *Body, head, data []byte) (sent int, err error) {
	c := x.c
	a := &c.sending
	*a = turnState{x: x, req: req, body: body, head: head, data: data}
	err = c.sock.Sys().Read(c.turned)
	stale, whole := a.stale, a.err == nil && a.sent == len(head)+len(data)
	sent, begun, werr := a.sent, a.started, a.err
	*a = turnState{}
	switch {
	case stale:
		return 0, errStale
	case whole:
		if err != nil {
			x.lost = err
		}
		return sent, nil
	case begun && werr == nil: // others send the rest
		return sent, nil
	case werr != nil:
		err = werr
	}
	wrote(req, body, err)
	return sent, err
}

// turn sends a request and reads the first bytes of its response. One raw read of the
// socket calls it. It first reads without waiting, to check that an idle connection has
// no data. After that the wait misses no data, so it needs no further read before it
// begins.
func (c *conn) turn(fd uintptr) bool {
	a := &c.sending
	if !a.started {
		if c.reused && !socket.IsIdle(fd) {
			a.stale = true
			return true
		}
		a.started = true
		a.sent, a.err = c.sock.TryParts(a.head, a.data)
		if a.err != nil || a.sent < len(a.head)+len(a.data) {
			return true
		}
		wrote(a.req, a.body, nil)
		if c.reused {
			return false
		}
		// It was not checked whether the host sent something, or closed, before the request.
	}
	x := a.x
	n, again, err := c.sock.ReadNow(fd, x.f.b[:])
	if again {
		return false
	}
	x.f.w, x.responded, x.lost = n, n > 0, err
	return true
}

package egress

import (
	"errors"
	"net/http"

	"gateway/shared/wire/socket"
)

// turnState holds what turn needs and its results.
type turnState struct {
	x          *exchange
	req        *http.Request
	body       *Body
	head, data []byte
	begun      bool
	stale      bool
	sent       int
	err        error // the write's error
}

// errStale says that a connection was closed, or received unrequested bytes, while it was
// idle.
var errStale = errors.New("egress: the connection is stale")

// ask sends as much of a request as the socket takes at once. If it took all, it also waits
// for the first bytes of the answer. An error means that sending failed.
func (x *exchange) ask(req *http.Request, body *Body, head, data []byte) (sent int, err error) {
	c := x.c
	a := &c.asking
	*a = turnState{x: x, req: req, body: body, head: head, data: data}
	err = c.sock.Sys().Read(c.turned)
	stale, whole := a.stale, a.err == nil && a.sent == len(head)+len(data)
	sent, begun, werr := a.sent, a.begun, a.err
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
	a := &c.asking
	if !a.begun {
		if c.reused && !socket.Quiet(fd) {
			a.stale = true
			return true
		}
		a.begun = true
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
	x.f.w, x.heard, x.lost = n, n > 0, err
	return true
}

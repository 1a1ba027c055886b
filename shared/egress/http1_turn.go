package egress

import (
	"errors"
	"net/http"

	"gateway/shared/wire/socket"
)

// asking is what turn works on.
type asking struct {
	x          *exchange
	req        *http.Request
	body       *Body
	head, data []byte
	begun      bool
	stale      bool
	sent       int
	err        error // of the write
}

// errStale says that a connection was closed, or spoke unasked, while it was idle.
var errStale = errors.New("egress: the connection is stale")

// ask sends a request as far as the socket takes it at once, and waits for the
// first bytes of the answer when it took all. An error is one of sending.
func (x *exchange) ask(req *http.Request, body *Body, head, data []byte) (sent int, err error) {
	c := x.c
	a := &c.asking
	*a = asking{x: x, req: req, body: body, head: head, data: data}
	err = c.sock.Sys().Read(c.turned)
	stale, whole := a.stale, a.err == nil && a.sent == len(head)+len(data)
	sent, begun, werr := a.sent, a.begun, a.err
	*a = asking{}
	switch {
	case stale:
		return 0, errStale
	case whole:
		if err != nil {
			x.lost = err
		}
		return sent, nil
	case begun && werr == nil: // the rest is sent by others
		return sent, nil
	case werr != nil:
		err = werr
	}
	wrote(req, body, err)
	return sent, err
}

// turn sends a request and takes the first bytes of its answer, called back by one
// read of the socket. That an idle connection is silent is seen by a read that finds
// nothing; from there on nothing that comes is missed by the wait for the answer,
// which needs no such read of its own.
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
		// Nobody has looked whether the host spoke, or closed, before it was asked.
	}
	x := a.x
	n, again, err := c.sock.ReadNow(fd, x.f.b[:])
	if again {
		return false
	}
	x.f.w, x.heard, x.lost = n, n > 0, err
	return true
}

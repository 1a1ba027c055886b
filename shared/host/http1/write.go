package http1

import "strconv"

var crlf = []byte("\r\n")

// emit appends pending bytes and p to the output, after the head. It sends what does not
// fit.
func (x *exchange) emit(p []byte) error {
	if x.err != nil {
		return x.err
	}
	a := x.a
	first := a.pending[:a.n]
	a.n = 0
	if !x.committed {
		if len(first) > 0 {
			x.commit(first)
		} else {
			x.commit(p)
		}
	}
	size := len(first) + len(p)
	if size == 0 || x.head {
		return nil
	}
	if x.chunked {
		a.out = strconv.AppendInt(a.out, int64(size), 16)
		a.out = append(a.out, crlf...)
	}
	most := maxSmall
	if x.chunked {
		most = maxLarge
	}
	if rest := len(first) + len(p) + len(crlf); len(a.out)+rest <= most {
		a.grow(rest)
		a.out = append(append(a.out, first...), p...)
		if x.chunked {
			a.out = append(a.out, crlf...)
		}
		return nil
	}
	a.out = append(a.out, first...)
	if x.chunked {
		return x.send(a.out, p, crlf)
	}
	return x.send(a.out, p)
}

// push sends the output.
func (x *exchange) push() error {
	if x.err != nil || len(x.a.out) == 0 {
		return x.err
	}
	return x.send(x.a.out)
}

// send writes to the connection. An error ends the request: its client has disconnected.
func (x *exchange) send(parts ...[]byte) error {
	_, x.err = x.c.net.WriteParts(parts...)
	if x.c.stalled.Load() != 0 {
		x.c.stalled.Store(0)
	}
	x.a.reset()
	if x.err != nil {
		x.life.End()
	}
	return x.err
}

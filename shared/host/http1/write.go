package http1

import "strconv"

var crlf = []byte("\r\n")

// emit puts what is pending, and p behind it, into what goes out, with the head
// before it. What has no room there is sent.
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
	a.out = append(a.out, first...)
	switch {
	case len(a.out)+len(p)+2 <= maxOut:
		a.out = append(a.out, p...)
		if x.chunked {
			a.out = append(a.out, crlf...)
		}
		return nil
	case x.chunked:
		return x.send(a.out, p, crlf)
	case len(p) > 0:
		return x.send(a.out, p)
	}
	return nil
}

// push sends what is to go out.
func (x *exchange) push() error {
	if x.err != nil || len(x.a.out) == 0 {
		return x.err
	}
	return x.send(x.a.out)
}

// send writes to the connection. An error ends the request: its client has gone.
func (x *exchange) send(parts ...[]byte) error {
	x.err = x.c.write(parts...)
	x.a.out = x.a.out[:0]
	if x.err != nil {
		x.cancel()
	}
	return x.err
}

package egress

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"gateway/shared/wire/reqctx"
)

// exchange is one request and its response on a connection. It is also the response's body:
// when it was read to its end, the connection goes back to the pool; when it is aborted
// earlier, the connection is closed.
type exchange struct {
	resp  http.Response
	c     *conn
	ctx   context.Context
	watch reqctx.Watch // watches ctx
	f     *frame

	writing     chan error // of a request that is still being sent; nil after it was sent completely
	cut         bool       // part of the request was not sent
	responded   bool       // a part of the response was received
	waitFuncSet bool       // BeforeWaiting has set a function
	lost        error      // the error that occurred while turn waited for a response

	mu         sync.Mutex // guards what follows and f once the response is given out
	framing    framing
	persistent bool
	left       int64 // of the body, or of the chunk
	started    bool  // a chunk was read
	excess     int64 // bytes of chunk heads beyond what such small chunks may have
	err        error // the first error, which stays
	ended      bool  // the connection was given away
}

type framing uint8

const (
	byLength framing = iota
	byChunks
	byClose
)

// Limits of the bytes between chunks.
const (
	maxChunkLine = 4 << 10
	maxExcess    = 16 << 10
	maxTrailers  = 8 << 10
)

var chunked = []string{"chunked"}

// respond makes the response from its head.
func (x *exchange) respond(req *http.Request, h responseHead) *http.Response {
	r := &x.resp
	*r = http.Response{
		Status: h.reason, StatusCode: h.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: h.minor,
		Header: h.header, ContentLength: h.length, Close: !h.persistent, Request: req, TLS: x.c.tls, Body: x,
	}
	if h.minor == 0 {
		r.Proto = "HTTP/1.0"
	}
	x.persistent = h.persistent
	bodyless := req.Method == http.MethodHead || h.status == http.StatusNoContent || h.status == http.StatusNotModified
	switch {
	case bodyless:
		if req.Method != http.MethodHead {
			r.ContentLength = 0
		}
		x.finish()
	case h.chunked:
		r.TransferEncoding, x.framing = chunked, byChunks
	case h.length >= 0:
		if x.left = h.length; x.left == 0 {
			x.finish()
		}
	default:
		x.framing, x.persistent = byClose, false
	}
	if x.ended {
		r.Body = http.NoBody
	}
	return r
}

// finish ends a response that was read completely.
func (x *exchange) finish() {
	x.err = io.EOF
	x.end(x.persistent && x.f.r == x.f.w && x.sentWhole())
}

// writeGrace is how long to wait for the end of a request with a complete response: the
// host has read it, only the goroutine that wrote it has not reported that yet.
const writeGrace = 50 * time.Millisecond

func (x *exchange) sentWhole() bool {
	if x.cut || x.writing == nil {
		return !x.cut
	}
	select {
	case err := <-x.writing:
		return err == nil
	default:
	}
	t := time.NewTimer(writeGrace)
	defer t.Stop()
	select {
	case err := <-x.writing:
		return err == nil
	case <-t.C:
		return false
	}
}

// end returns the connection to the pool, or closes it.
func (x *exchange) end(reuse bool) {
	if x.ended {
		return
	}
	x.ended = true
	// If the watch has already acted, the connection's deadline is in the past.
	reuse = x.watch.Stop() && reuse
	if x.f != nil {
		frames.Put(x.f)
		x.f = nil
	}
	if x.waitFuncSet {
		x.c.sock.BeforeWaiting(nil)
	}
	if reuse {
		x.c.pool.put(x.c)
	} else {
		x.c.close()
	}
}

// BeforeWaiting makes Reads of a response's body call f each time before they wait for
// the host, so that the bytes read until then can be forwarded together. It returns false
// for bodies that do not support this.
func BeforeWaiting(body io.Reader, f func()) bool {
	x, ok := body.(*exchange)
	if !ok || x.c.sock == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.ended {
		x.waitFuncSet = true
		x.c.sock.BeforeWaiting(f)
	}
	return true
}

// Read implements io.Reader. If the end is known, it comes with the last bytes.
func (x *exchange) Read(p []byte) (n int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		return 0, x.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if x.framing == byChunks {
		n, err = x.readChunks(p)
	} else {
		n, err = x.readPlain(p)
	}
	if err == io.EOF {
		x.finish()
	} else if err != nil {
		x.err = err
		x.end(false)
	}
	return n, err
}

// readPlain reads a body without chunks.
func (x *exchange) readPlain(p []byte) (int, error) {
	if x.framing == byLength && int64(len(p)) > x.left {
		p = p[:x.left]
	}
	n, err := x.take(p)
	if x.framing == byClose {
		if err != nil && err != io.EOF {
			err = x.failure("the response was truncated", err)
		}
		return n, err
	}
	if x.left -= int64(n); x.left == 0 {
		return n, io.EOF
	}
	if err != nil {
		err = x.failure("the response was truncated", err)
	}
	return n, err
}

// take returns what was received, or reads more.
func (x *exchange) take(p []byte) (int, error) {
	f := x.f
	if f.r < f.w {
		n := copy(p, f.b[f.r:f.w])
		f.r += n
		return n, nil
	}
	return x.c.net.Read(p)
}

// readChunks reads the data of chunks, as many as have come and fit.
func (x *exchange) readChunks(p []byte) (n int, err error) {
	f := x.f
	for n < len(p) {
		if x.left == 0 {
			last, ok, err := x.nextChunk()
			switch {
			case err != nil:
				return n, err
			case ok && last:
				return n, io.EOF
			case ok:
				continue
			}
		} else if f.r < f.w {
			m := copy(p[n:], f.b[f.r:min(int64(f.w), int64(f.r)+x.left)])
			f.r, n, x.left = f.r+m, n+m, x.left-int64(m)
			continue
		}
		if n > 0 {
			break // what has come is given before waiting for more
		}
		if x.left >= int64(len(f.b)) { // f is empty: no need to go through it
			n, err = x.c.net.Read(p[:min(int64(len(p)), x.left)])
			x.left -= int64(n)
			if err != nil {
				err = x.failure("the response was truncated", err)
			}
			return n, err
		}
		if err := x.fill(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// fill reads more into the frame. There is space: lines are shorter than the frame.
func (x *exchange) fill() error {
	f := x.f
	if f.r > 0 {
		f.w = copy(f.b[:], f.b[f.r:f.w])
		f.r = 0
	}
	n, err := x.c.net.Read(f.b[f.w:])
	f.w += n
	if n == 0 && err != nil {
		return x.failure("the response was truncated", err)
	}
	return nil
}

// nextChunk consumes the bytes between two chunks, or after the last one: all of them or,
// if they have not fully arrived, none.
func (x *exchange) nextChunk() (last, ok bool, err error) {
	b := x.f.b[x.f.r:x.f.w]
	at := 0
	if x.started {
		switch {
		case len(b) > 0 && b[0] != '\r', len(b) > 1 && b[1] != '\n':
			return false, false, malformed("a chunk does not end where it said")
		case len(b) < 2:
			return false, false, nil
		}
		at = 2
	}
	size, n, err := chunkSize(b[at:])
	if n == 0 || err != nil {
		return false, false, err
	}
	// Many tiny chunks with long heads are not worth their cost.
	x.excess = max(0, x.excess+int64(n)-16-2*size)
	if x.excess > maxExcess {
		return false, false, malformed("chunks with too much around them")
	}
	at += n
	if size > 0 {
		x.f.r, x.left, x.started = x.f.r+at, size, true
		return false, true, nil
	}
	end, _ := headEnd(b, at)
	if end == 0 {
		if len(b)-at > maxTrailers {
			return false, false, malformed("the trailers are too large")
		}
		return false, false, nil
	}
	if end-at > maxTrailers {
		return false, false, malformed("the trailers are too large")
	}
	x.f.r += end
	return true, true, nil
}

// chunkSize parses the line before a chunk: hexadecimal digits, then ignored padding or
// extensions, CRLF. n is the length of the line, 0 if it has not fully arrived.
func chunkSize(b []byte) (size int64, n int, err error) {
	digits := 0
	for digits < len(b) {
		c := b[digits]
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20-'a' <= 5:
			c = c | 0x20 - 'a' + 10
		default:
			c = 0xff
		}
		if c == 0xff {
			break
		}
		if digits == 15 {
			return 0, 0, malformed("the size of a chunk is too large")
		}
		size = size<<4 | int64(c)
		digits++
	}
	extended := false
	for i := digits; i < len(b) && i < maxChunkLine; i++ {
		c := b[i]
		extended = extended || i == digits && c == ';'
		switch {
		case digits == 0, !extended && c != '\r' && c != ' ' && c != '\t':
			return 0, 0, malformed("the size of a chunk is not a number")
		case c == '\r':
			if i+1 == len(b) {
				return 0, 0, nil
			}
			if b[i+1] != '\n' {
				return 0, 0, malformed("a control character in the head of a chunk")
			}
			return size, i + 2, nil
		case c < ' ' && c != '\t' || c == 0x7f:
			return 0, 0, malformed("a control character in the head of a chunk")
		}
	}
	if len(b) >= maxChunkLine {
		return 0, 0, malformed("the head of a chunk is too long")
	}
	return 0, 0, nil
}

// Close abandons the body. If its end has already been received, the connection is
// reused; otherwise it is closed. A concurrent Read ends.
func (x *exchange) Close() error {
	if !x.mu.TryLock() {
		x.c.close()
		x.mu.Lock()
	}
	defer x.mu.Unlock()
	if x.ended {
		return nil
	}
	if x.received() {
		x.finish()
	}
	x.end(false)
	if x.err == nil {
		x.err = http.ErrBodyReadAfterClose
	}
	return nil
}

// received skips the content of the frame and reports whether the body ends there.
func (x *exchange) received() bool {
	f := x.f
	for {
		n := int64(f.w - f.r)
		switch x.framing {
		case byClose:
			return false
		case byLength:
			if n < x.left {
				return false
			}
			f.r += int(x.left)
			return true
		}
		if n < x.left {
			return false
		}
		f.r += int(x.left)
		x.left = 0
		if last, ok, err := x.nextChunk(); err != nil || !ok || last {
			return err == nil && ok
		}
	}
}

package http1

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"gateway/shared/wire/reqctx"
)

// responseBuffer is the memory in which a response is assembled.
type responseBuffer struct {
	out     []byte           // pending output: a head, chunks; in small, in large, or larger than both
	n       int              // length of pending
	pending [maxPending]byte // bytes of the body that are in no chunk yet
	small   [maxSmall]byte
	large   *[maxLarge]byte // nil until needed
}

const (
	// maxPending is how much of a body is buffered until it is known whether it is
	// complete, in bytes: a response that is no larger gets a Content-Length. It equals
	// that of net/http.
	maxPending = 2048
	// maxSmall fits the head and the body of most responses, and typical writes of a
	// stream.
	maxSmall = 4 << 10
	// maxLarge is how much is copied so that the end of a chunked body is sent together
	// with its previous bytes.
	maxLarge = 32 << 10
)

var (
	answers = sync.Pool{New: func() any { return new(responseBuffer) }}
	larges  = sync.Pool{New: func() any { return new([maxLarge]byte) }}
)

func newResponseBuffer() *responseBuffer {
	a := answers.Get().(*responseBuffer)
	a.out, a.n = a.small[:0], 0
	return a
}

// grow ensures space for n more bytes, up to maxLarge in total.
func (a *responseBuffer) grow(n int) {
	if len(a.out)+n > cap(a.out) && a.large == nil {
		a.large = larges.Get().(*[maxLarge]byte)
		a.out = append(a.large[:0], a.out...)
	}
}

// reset clears the sent output and releases the large buffer.
func (a *responseBuffer) reset() {
	if a.large != nil {
		larges.Put(a.large)
		a.large = nil
	}
	a.out = a.small[:0]
}

func (a *responseBuffer) free() {
	a.reset()
	answers.Put(a)
}

// exchange is one request and its response. It is the handler's ResponseWriter and, like
// every one, not for concurrent use.
type exchange struct {
	c    *conn
	req  *http.Request
	url  url.URL
	body body
	life reqctx.Context // the request's context

	wantsClose bool // the request asks to close the connection
	head       bool // HEAD: the response has no body

	header    http.Header     // the handler's
	a         *responseBuffer // nil before the head and after the end
	status    int             // 0 before the head
	length    int64           // of the body, as declared; -1 if not declared
	written   int64           // bytes of the body written by the handler
	info      headerInfo
	committed bool // the head is complete
	chunked   bool
	last      bool // the connection closes after this response
	slowly    bool // with bytes of the request in flight
	duplex    bool // the body is read while the response is sent
	done      bool // the handler has returned
	ended     bool // no more writes are allowed
	err       error
}

// errEnded is returned for writes after the handler has returned.
var errEnded = errors.New("http1: the answer is over")

// serve serves the request and reports whether the connection may serve another.
func (x *exchange) serve() bool {
	c := x.c
	c.current.Store(x)
	if x.body.left == 0 {
		c.enter(running)
	}
	defer x.life.End() // also when the handler ends its goroutine
	if !x.handle() {
		return false
	}
	x.life.End()
	x.finish()
	if x.duplex && x.body.x != nil && x.err == nil {
		_, x.slowly = x.body.settle()
	}
	left, early := x.body.end()
	c.state.Store(busy)
	c.current.Store(nil)
	x.ended = true
	x.recycleHeader()
	if x.a != nil {
		x.a.free()
		x.a = nil
	}
	if x.req.MultipartForm != nil {
		_ = x.req.MultipartForm.RemoveAll()
	}
	if x.err != nil || x.last || left || !x.head && x.bodyAllowed() && x.length >= 0 && x.length != x.written {
		if x.err == nil && (x.slowly || early) {
			c.closeSlowly()
		}
		return false
	}
	return !c.s.closing.Load()
}

// handle calls the handler. It returns false if the handler aborted: the connection must
// be cut, so that the client detects the truncated response.
func (x *exchange) handle() (ok bool) {
	defer func() {
		if ok {
			return
		}
		defer x.cut()
		p := recover() // nil if the handler ended its goroutine
		if p != nil && p != http.ErrAbortHandler && x.c.s.options.Panicked != nil {
			x.c.s.options.Panicked(p)
		}
	}()
	h := x.c.s.handler
	if x.c.spare && x.c.s.options.Overload != nil {
		h = x.c.s.options.Overload
	}
	h.ServeHTTP(x, x.req)
	return true
}

// cut sends pending bytes, if the response has begun, and closes the connection.
func (x *exchange) cut() {
	if x.a != nil && x.committed {
		_ = x.push()
	}
	x.ended = true
	_ = x.c.net.Close() // unblocks a concurrent read of the body
	x.body.mu.Lock()
	x.body.closed = true
	x.body.mu.Unlock()
}

// Header implements http.ResponseWriter. The handler owns the map until it returns.
func (x *exchange) Header() http.Header {
	if x.header == nil {
		if x.c.header == nil || x.ended {
			x.header = make(http.Header)
		} else {
			x.header, x.c.header = x.c.header, nil
		}
	}
	return x.header
}

// maxReusedFields limits the size of a header map that is reused for the next response.
const maxReusedFields = 32

// recycleHeader reuses the emptied header map for the next response: a map of more than
// eight fields grows while it is filled, which costs more than its content.
func (x *exchange) recycleHeader() {
	if h := x.header; h != nil && len(h) <= maxReusedFields {
		clear(h)
		x.c.header = h
	}
	x.header = nil
}

// WriteHeader implements http.ResponseWriter. A status below 200 is sent immediately and
// is not final; a second final one is ignored.
func (x *exchange) WriteHeader(status int) {
	if x.status != 0 || x.ended {
		return
	}
	if status < 100 || status > 999 {
		panic("http1: a status must have three digits")
	}
	if x.a == nil {
		x.a = newResponseBuffer()
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		x.inform(status)
		return
	}
	x.status = status
	x.a.out = appendStatus(x.a.out, status)
	x.a.out = x.info.appendHeader(x.a.out, x.header)
	if x.info.length != "" {
		if n, err := strconv.ParseInt(x.info.length, 10, 64); err == nil && n >= 0 {
			x.length = n
		}
	}
}

func (x *exchange) bodyAllowed() bool { return bodyAllowed(x.status) }

func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// Write implements http.ResponseWriter.
func (x *exchange) Write(p []byte) (int, error) {
	if x.ended {
		return 0, errEnded
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if !x.bodyAllowed() {
		return 0, http.ErrBodyNotAllowed
	}
	if x.written += int64(len(p)); x.length >= 0 && x.written > x.length {
		return 0, http.ErrContentLength
	}
	if x.err != nil {
		return 0, x.err
	}
	a := x.a
	room := len(a.pending) - a.n
	switch {
	case len(p) <= room:
		a.n += copy(a.pending[a.n:], p)
		return len(p), nil
	case a.n > 0 && !x.committed: // the content type is detected from the buffered bytes
		a.n += copy(a.pending[a.n:], p)
		return len(p), x.emit(p[room:])
	}
	return len(p), x.emit(p)
}

// WriteString implements io.StringWriter.
func (x *exchange) WriteString(s string) (int, error) { return x.Write([]byte(s)) }

// EnableFullDuplex is for http.ResponseController: the body stays readable after the
// response begins.
func (x *exchange) EnableFullDuplex() error {
	x.duplex = true
	return nil
}

// Flush implements http.Flusher.
func (x *exchange) Flush() { _ = x.FlushError() }

// FlushError is Flush for http.ResponseController.
func (x *exchange) FlushError() error {
	if x.ended {
		return errEnded
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if err := x.emit(nil); err != nil {
		return err
	}
	return x.push()
}

// finish ends the response of a handler that has returned.
func (x *exchange) finish() {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.done = true
	if x.emit(nil) != nil {
		return
	}
	if x.chunked {
		x.a.out = append(x.a.out, "0\r\n"...)
		x.a.out = x.info.appendTrailers(x.a.out, x.header)
		x.a.out = append(x.a.out, "\r\n"...)
	}
	_ = x.push()
}

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

package http1

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"gateway/shared/wire/reqctx"
)

// answer is the memory that an answer is put together in.
type answer struct {
	out     []byte           // what goes out next: a head, chunks; in small, in large, or larger than both
	n       int              // how much is pending
	pending [maxPending]byte // the body's bytes that are in no chunk yet
	small   [maxSmall]byte
	large   *[maxLarge]byte // nil until it is needed
}

const (
	// maxPending is how much of a body is held back until it is known whether there
	// is more, in bytes: an answer that is no larger gets its length. It is what
	// net/http holds back.
	maxPending = 2048
	// maxSmall has room for the head and the body of most answers, and for what a
	// stream sends at once.
	maxSmall = 4 << 10
	// maxLarge is how much is copied so that the end of a body in chunks goes out
	// with what comes before it.
	maxLarge = 32 << 10
)

var (
	answers = sync.Pool{New: func() any { return new(answer) }}
	larges  = sync.Pool{New: func() any { return new([maxLarge]byte) }}
)

func newAnswer() *answer {
	a := answers.Get().(*answer)
	a.out, a.n = a.small[:0], 0
	return a
}

// hold makes room for n more bytes, up to maxLarge in all.
func (a *answer) hold(n int) {
	if len(a.out)+n > cap(a.out) && a.large == nil {
		a.large = larges.Get().(*[maxLarge]byte)
		a.out = append(a.large[:0], a.out...)
	}
}

// sent empties what went out, and gives the large memory back.
func (a *answer) sent() {
	if a.large != nil {
		larges.Put(a.large)
		a.large = nil
	}
	a.out = a.small[:0]
}

func (a *answer) free() {
	a.sent()
	answers.Put(a)
}

// exchange is one request and its answer. It is the handler's ResponseWriter, and
// like every one not for two goroutines at once.
type exchange struct {
	c    *conn
	req  *http.Request
	url  url.URL
	body body
	life reqctx.Life // the request's context

	wantsClose bool // the request asks for the connection's end
	head       bool // HEAD: the answer has no body, whatever is written

	header    http.Header // the handler's
	a         *answer     // nil before the head and after the end
	status    int         // 0 before the head
	length    int64       // of the body as the head says; -1: not said
	written   int64       // of the body, by the handler
	said      said
	committed bool // the head is whole
	chunked   bool
	last      bool // the connection ends with this answer
	slowly    bool // with bytes of the request on their way
	duplex    bool // the body is read while the answer goes out
	done      bool // the handler has returned
	over      bool // nothing may be written any more
	err       error
}

// errOver is for who writes when the handler has returned.
var errOver = errors.New("http1: the answer is over")

// serve answers the request. It tells whether the connection may serve another.
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
	x.over = true
	x.keepHeader()
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

// handle calls the handler. It is false when the handler gave up: the connection
// is to be cut, so that the client sees that the answer is not whole.
func (x *exchange) handle() (ok bool) {
	defer func() {
		if ok {
			return
		}
		defer x.cut()
		p := recover() // nil: the handler ends its goroutine
		if p != nil && p != http.ErrAbortHandler && x.c.s.options.Panicked != nil {
			x.c.s.options.Panicked(p)
		}
	}()
	h := x.c.s.handler
	if x.c.spare && x.c.s.options.Crowded != nil {
		h = x.c.s.options.Crowded
	}
	h.ServeHTTP(x, x.req)
	return true
}

// cut sends what is pending, if the answer has begun, and closes the connection.
func (x *exchange) cut() {
	if x.a != nil && x.committed {
		_ = x.push()
	}
	x.over = true
	_ = x.c.net.Close() // ends a read of the body that goes on
	x.body.mu.Lock()
	x.body.closed = true
	x.body.mu.Unlock()
}

// Header implements http.ResponseWriter. The map is the handler's until it returns.
func (x *exchange) Header() http.Header {
	if x.header == nil {
		if x.c.header == nil || x.over {
			x.header = make(http.Header)
		} else {
			x.header, x.c.header = x.c.header, nil
		}
	}
	return x.header
}

// maxKeptFields bounds the header of an answer whose map the next one gets.
const maxKeptFields = 32

// keepHeader keeps the emptied map of an answer's header for the next one: one of more
// than eight fields grows while it is filled, which costs more than all that stands in it.
func (x *exchange) keepHeader() {
	if h := x.header; h != nil && len(h) <= maxKeptFields {
		clear(h)
		x.c.header = h
	}
	x.header = nil
}

// WriteHeader implements http.ResponseWriter. A status below 200 goes out at once
// and is not the last; a second final one is not heard.
func (x *exchange) WriteHeader(status int) {
	if x.status != 0 || x.over {
		return
	}
	if status < 100 || status > 999 {
		panic("http1: a status must have three digits")
	}
	if x.a == nil {
		x.a = newAnswer()
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		x.inform(status)
		return
	}
	x.status = status
	x.a.out = appendStatus(x.a.out, status)
	x.a.out = x.said.appendHeader(x.a.out, x.header)
	if x.said.length != "" {
		if n, err := strconv.ParseInt(x.said.length, 10, 64); err == nil && n >= 0 {
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
	if x.over {
		return 0, errOver
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
	case a.n > 0 && !x.committed: // what the body is, is told by as much as is held back
		a.n += copy(a.pending[a.n:], p)
		return len(p), x.emit(p[room:])
	}
	return len(p), x.emit(p)
}

// WriteString implements io.StringWriter.
func (x *exchange) WriteString(s string) (int, error) { return x.Write([]byte(s)) }

// EnableFullDuplex is for http.ResponseController: an answer that begins leaves the body
// to who reads it.
func (x *exchange) EnableFullDuplex() error {
	x.duplex = true
	return nil
}

// Flush implements http.Flusher.
func (x *exchange) Flush() { _ = x.FlushError() }

// FlushError is Flush for http.ResponseController.
func (x *exchange) FlushError() error {
	if x.over {
		return errOver
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if err := x.emit(nil); err != nil {
		return err
	}
	return x.push()
}

// finish ends the answer of a handler that has returned.
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
		x.a.out = x.said.appendTrailers(x.a.out, x.header)
		x.a.out = append(x.a.out, "\r\n"...)
	}
	_ = x.push()
}

package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// newStandard makes the net/http server of what is odd, or of everything.
func (s *Server) newStandard() *http.Server {
	o := &s.options
	return &http.Server{
		Handler: http.HandlerFunc(s.serveStandard), ReadHeaderTimeout: o.HeadTime, IdleTimeout: o.IdleTime, MaxHeaderBytes: o.MaxHead,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, begunKey{}, c) },
		ConnState: func(c net.Conn, state http.ConnState) {
			if b, ok := c.(*begun); ok && state == http.StateHijacked {
				b.taken.Store(true)
				_ = b.SetWriteDeadline(time.Time{})
			}
		},
	}
}

// begunKey finds a request's connection in its context.
type begunKey struct{}

// serveStandard gives the handler a request of net/http's, within the bounds that
// net/http has no options for.
func (s *Server) serveStandard(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(begunKey{}).(*begun)
	h := s.handler
	if c.ticket.spare && s.options.Crowded != nil {
		h = s.options.Crowded
	}
	if s.options.Panicked != nil {
		defer func() {
			if p := recover(); p != nil {
				if p != http.ErrAbortHandler {
					s.options.Panicked(p)
				}
				panic(http.ErrAbortHandler)
			}
		}()
	}
	// After a message whose end two servers might see at different places, nothing more is
	// accepted (RFC 9112, 6.1). net/http does not tell whether a Content-Length stood
	// beside a Transfer-Encoding, or a Transfer-Encoding under HTTP/1.0, so no connection
	// with one serves a second request.
	last := c.ticket.spare || len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
	absolute := r.URL.Host != "" && r.Method != http.MethodConnect
	if !last && !absolute && r.Body == http.NoBody {
		h.ServeHTTP(w, r)
		return
	}
	own := r.WithContext(r.Context()) // net/http looks at its own again
	if absolute {
		originForm(own)
	}
	a := &answering{ResponseWriter: w, last: last}
	if r.Body != http.NoBody {
		a.body = &timed{ReadCloser: r.Body, conn: c, most: s.options.BodyTime, length: r.ContentLength, waiting: r.Header.Get("Expect") != ""}
		own.Body = a.body
	}
	h.ServeHTTP(a, own)
	a.begin()
	if a.body == nil || a.body.ended() {
		return
	}
	// net/http reads on for a while before it closes.
	until := time.Now().Add(settleTime)
	if a.duplex && a.FlushError() == nil && !a.body.settle() {
		until = time.Unix(1, 0) // it must not come to the end of the body by itself now
	}
	_ = c.SetReadDeadline(until)
}

// originForm makes the target of a request that names the server as well one that
// does not (RFC 9112, 3.2.2). The path stays as it came.
func originForm(r *http.Request) {
	_, rest, _ := strings.Cut(r.RequestURI, "//")
	path := "/"
	if n := strings.IndexAny(rest, "/?"); n >= 0 {
		if path = rest[n:]; path[0] == '?' {
			path = "/" + path
		}
	}
	u := *r.URL
	u.Scheme, u.Host, u.User = "", "", nil
	if u.Path == "" {
		u.Path = "/"
	}
	r.URL, r.RequestURI = &u, path
}

// answering is the answer to a request that has a body, or is its connection's last.
type answering struct {
	http.ResponseWriter
	body  *timed // nil: there is none
	last  bool
	begun bool
	// duplex: who reads the body does so while the answer goes out.
	duplex bool
}

// EnableFullDuplex is for http.ResponseController.
func (a *answering) EnableFullDuplex() error {
	a.duplex = true
	return http.NewResponseController(a.ResponseWriter).EnableFullDuplex()
}

// begin deals with the body before the answer goes out; net/http would wait for it without
// bound.
func (a *answering) begin() {
	if a.begun {
		return
	}
	a.begun = true
	if a.body != nil && !a.last && !a.duplex && !a.body.settle() {
		a.last = true
	}
	if a.last {
		a.Header().Set("Connection", "close")
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *answering) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		a.begin()
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answering) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter.
func (a *answering) WriteString(s string) (int, error) {
	a.begin()
	return io.WriteString(a.ResponseWriter, s)
}

// Flush implements http.Flusher.
func (a *answering) Flush() { _ = a.FlushError() }

// FlushError is Flush for http.ResponseController.
func (a *answering) FlushError() error {
	a.begin()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// timed is a body that net/http reads, with bounds of time.
type timed struct {
	io.ReadCloser
	conn    *begun
	most    time.Duration // 0: no bound
	length  int64         // as the head says; -1: not said
	waiting bool          // the client sends nothing before it is asked to

	mu       sync.Mutex
	patience patience
	end      error // what ended it
}

// Read implements io.Reader.
func (b *timed) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = false
	if b.most <= 0 || len(p) == 0 {
		n, err = b.ReadCloser.Read(p)
		b.patience.came += int64(n)
	} else {
		began := time.Now()
		_ = b.conn.SetReadDeadline(began.Add(b.patience.left(b.most)))
		n, err = b.ReadCloser.Read(p)
		b.patience.came += int64(n)
		b.patience.waited += time.Since(began)
		if err != nil {
			_ = b.conn.SetReadDeadline(time.Time{}) // net/http reads on, to see the client go
		}
	}
	if err != nil {
		b.end = err
	}
	return n, err
}

// settle reads what is left, for a short time; false when that is too much or too
// slow, so that the connection is to be closed.
func (b *timed) settle() bool {
	if !b.mu.TryLock() { // somebody else reads, but not for long
		_ = b.conn.SetReadDeadline(time.Now().Add(settleTime))
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.end == nil && !b.waiting && b.length-b.patience.came < maxDiscard {
		b.soon(func() { _, b.end = io.CopyN(io.Discard, b.ReadCloser, maxDiscard) })
	}
	return b.end == io.EOF || errors.Is(b.end, http.ErrBodyReadAfterClose)
}

// Close implements io.Closer. net/http reads on to the end when that is near.
func (b *timed) Close() (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.soon(func() { err = b.ReadCloser.Close() })
	return err
}

// soon bounds the time of reads that nobody waits for.
func (b *timed) soon(read func()) {
	_ = b.conn.SetReadDeadline(time.Now().Add(settleTime))
	read()
	_ = b.conn.SetReadDeadline(time.Time{})
}

// ended tells whether nothing more is read.
func (b *timed) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.end == io.EOF
}

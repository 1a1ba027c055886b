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

// newStandard returns the net/http server for unsupported requests, or for everything.
func (s *Server) newStandard() *http.Server {
	o := &s.options
	return &http.Server{
		Handler: http.HandlerFunc(s.serveStandard), ReadHeaderTimeout: o.HeadTime, IdleTimeout: o.IdleTime, MaxHeaderBytes: o.MaxHead,
		Protocols: protocols(), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: silence},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(c net.Conn, state http.ConnState) {
			if b, ok := c.(*replayConn); ok && state == http.StateHijacked {
				b.taken.Store(true)
				_ = b.SetWriteDeadline(time.Time{})
			}
		},
	}
}

// connKey is the context key of a request's connection.
type connKey struct{}

// serveStandard passes the handler a net/http request, within limits that net/http has no
// options for.
func (s *Server) serveStandard(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*replayConn)
	h := s.handler
	if c.ticket.spare && s.options.Overload != nil {
		h = s.options.Overload
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
	if r.ProtoMajor == 2 {
		s.serveStream(w, r, h, c.ticket.spare)
		return
	}
	// After a message with an end that two servers might see at different positions,
	// nothing more is accepted (RFC 9112, 6.1). net/http does not report a Content-Length
	// beside a Transfer-Encoding, or a Transfer-Encoding under HTTP/1.0, so no connection
	// with one serves a second request.
	last := c.ticket.spare || len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1)
	absolute := r.URL.Host != "" && r.Method != http.MethodConnect
	if !last && !absolute && r.Body == http.NoBody {
		h.ServeHTTP(w, r)
		return
	}
	own := r.WithContext(r.Context()) // net/http uses its own request afterwards
	if absolute {
		originForm(own)
	}
	a := &standardWriter{ResponseWriter: w, last: last}
	if r.Body != http.NoBody {
		a.body = &timedBody{ReadCloser: r.Body, conn: c, most: s.options.BodyTime, length: r.ContentLength, waiting: r.Header.Get("Expect") != ""}
		own.Body = a.body
	}
	h.ServeHTTP(a, own)
	a.begin()
	if a.body == nil || a.body.ended() {
		return
	}
	// net/http reads for a while before it closes.
	until := time.Now().Add(settleTime)
	if a.duplex && a.FlushError() == nil && !a.body.settle() {
		until = time.Unix(1, 0) // it must not reach the end of the body now
	}
	_ = c.SetReadDeadline(until)
}

// originForm removes the server from a target in absolute form (RFC 9112, 3.2.2). The
// path is unchanged.
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

// standardWriter is the response to a request that has a body or is its connection's
// last.
type standardWriter struct {
	http.ResponseWriter
	body    *timedBody // nil if there is none
	last    bool
	started bool
	// duplex means that the body may be read while the response is sent.
	duplex bool
}

// EnableFullDuplex is for http.ResponseController.
func (a *standardWriter) EnableFullDuplex() error {
	a.duplex = true
	return http.NewResponseController(a.ResponseWriter).EnableFullDuplex()
}

// begin handles the body before the response is sent; net/http would wait for it without
// limit.
func (a *standardWriter) begin() {
	if a.started {
		return
	}
	a.started = true
	if a.body != nil && !a.last && !a.duplex && !a.body.settle() {
		a.last = true
	}
	if a.last {
		a.Header().Set("Connection", "close")
	}
}

// WriteHeader implements http.ResponseWriter.
func (a *standardWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		a.begin()
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *standardWriter) Write(p []byte) (int, error) {
	a.begin()
	return a.ResponseWriter.Write(p)
}

// WriteString implements io.StringWriter.
func (a *standardWriter) WriteString(s string) (int, error) {
	a.begin()
	return io.WriteString(a.ResponseWriter, s)
}

// Flush implements http.Flusher.
func (a *standardWriter) Flush() { _ = a.FlushError() }

// FlushError is Flush for http.ResponseController.
func (a *standardWriter) FlushError() error {
	a.begin()
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Unwrap is for http.ResponseController.
func (a *standardWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// timedBody is a body that net/http reads, with deadlines.
type timedBody struct {
	io.ReadCloser
	conn    *replayConn
	most    time.Duration // 0 means no limit
	length  int64         // as declared; -1 if not declared
	waiting bool          // the client waits for 100 Continue

	mu       sync.Mutex
	patience patience
	end      error // what ended it
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = false
	if b.most <= 0 || len(p) == 0 {
		n, err = b.ReadCloser.Read(p)
		b.patience.received += int64(n)
	} else {
		began := time.Now()
		_ = b.conn.SetReadDeadline(began.Add(b.patience.left(b.most)))
		n, err = b.ReadCloser.Read(p)
		b.patience.received += int64(n)
		b.patience.waited += time.Since(began)
		if err != nil {
			_ = b.conn.SetReadDeadline(time.Time{}) // net/http keeps reading to detect a disconnected client
		}
	}
	if err != nil {
		b.end = err
	}
	return n, err
}

// settle reads the rest for a short time; false if that is too much or too slow, so that
// the connection must be closed.
func (b *timedBody) settle() bool {
	if !b.mu.TryLock() { // another goroutine reads, but not for long
		_ = b.conn.SetReadDeadline(time.Now().Add(settleTime))
		b.mu.Lock()
	}
	defer b.mu.Unlock()
	if b.end == nil && !b.waiting && b.length-b.patience.received < maxDiscard {
		b.soon(func() { _, b.end = io.CopyN(io.Discard, b.ReadCloser, maxDiscard) })
	}
	return b.end == io.EOF || errors.Is(b.end, http.ErrBodyReadAfterClose)
}

// Close implements io.Closer. net/http reads to the end if that is near.
func (b *timedBody) Close() (err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.soon(func() { err = b.ReadCloser.Close() })
	return err
}

// soon limits the time of reads without a waiting caller.
func (b *timedBody) soon(read func()) {
	_ = b.conn.SetReadDeadline(time.Now().Add(settleTime))
	read()
	_ = b.conn.SetReadDeadline(time.Time{})
}

// ended reports whether no more is read.
func (b *timedBody) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.end == io.EOF
}

// Limits of a connection with HTTP/2.
const (
	// maxStreams is how many requests a connection has at a time.
	maxStreams = 100
	// silence is how long a client may send nothing before it is asked whether it is there.
	silence = 60 * time.Second
)

// protocols are those of the net/http server. Clients begin HTTP/2 without TLS with its
// preface, which is a request that this engine does not serve: net/http gets the connection
// like any other with an unsupported request, so that HTTP/1.1 costs nothing more.
func protocols() *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	return p
}

// serveStream serves a request of HTTP/2. The deadlines are those of its stream: other
// requests share the connection.
func (s *Server) serveStream(w http.ResponseWriter, r *http.Request, h http.Handler, spare bool) {
	control := http.NewResponseController(w)
	if spare {
		w.Header().Set("Connection", "close") // the connection ends after it
	}
	own := r.WithContext(r.Context()) // net/http uses its own request afterwards
	if r.URL.Host != "" && r.Method != http.MethodConnect {
		originForm(own) // a client may send it as :path
	}
	if r.Body != http.NoBody && s.options.BodyTime > 0 {
		own.Body = &streamBody{ReadCloser: r.Body, control: control, most: s.options.BodyTime}
	}
	if s.options.WriteTime > 0 {
		w = &streamWriter{ResponseWriter: w, control: control, most: s.options.WriteTime}
	}
	h.ServeHTTP(w, own)
}

// streamBody is the body of a stream, with deadlines as timedBody has them.
type streamBody struct {
	io.ReadCloser
	control  *http.ResponseController
	most     time.Duration
	patience patience
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (n int, err error) {
	began := time.Now()
	_ = b.control.SetReadDeadline(began.Add(b.patience.left(b.most)))
	n, err = b.ReadCloser.Read(p)
	b.patience.received += int64(n)
	b.patience.waited += time.Since(began)
	if err == nil {
		_ = b.control.SetReadDeadline(time.Time{}) // the handler may take its time
	}
	return n, err
}

// streamWriter is the response of a stream: the client must accept each write in time.
type streamWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	most    time.Duration
}

func (w *streamWriter) timed(write func() (int, error)) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(w.most))
	n, err := write()
	if err == nil {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
	return n, err
}

// Write implements http.ResponseWriter.
func (w *streamWriter) Write(p []byte) (int, error) {
	return w.timed(func() (int, error) { return w.ResponseWriter.Write(p) })
}

// WriteString implements io.StringWriter.
func (w *streamWriter) WriteString(s string) (int, error) {
	return w.timed(func() (int, error) { return io.WriteString(w.ResponseWriter, s) })
}

// Flush implements http.Flusher.
func (w *streamWriter) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *streamWriter) FlushError() error {
	_, err := w.timed(func() (int, error) { return 0, w.control.Flush() })
	return err
}

// Unwrap is for http.ResponseController.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

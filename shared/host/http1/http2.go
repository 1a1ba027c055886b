package http1

import (
	"io"
	"net/http"
	"time"
)

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
	b.patience.came += int64(n)
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

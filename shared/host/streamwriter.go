package host

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"gateway/shared/fault"
)

// streamWriter is the http.ResponseWriter over a pipe: each Write becomes one chunk of
// the Lambda response. The handler uses it from one goroutine, as net/http requires; the
// keep-alive timer is the only other one.
type streamWriter struct {
	header    http.Header
	pipe      *io.PipeWriter
	keepAlive time.Duration

	// committed is closed when status and sent are set; they do not change afterwards.
	committed chan struct{}
	status    int
	sent      http.Header

	mu    sync.Mutex // guards the following fields and writes to the pipe
	wrote bool       // the header is committed
	ended bool
	sse   bool
	end4  [4]byte // last bytes written: a comment may follow the end of an event
	last  time.Time
	timer *time.Timer
}

func newStreamWriter(pipe *io.PipeWriter, keepAlive time.Duration) *streamWriter {
	return &streamWriter{header: make(http.Header), pipe: pipe, keepAlive: keepAlive, committed: make(chan struct{})}
}

func (w *streamWriter) Header() http.Header { return w.header }

func (w *streamWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if status >= 200 { // the prelude cannot represent an informational response
		w.commit(status)
	}
}

// commit fixes status and header once.
func (w *streamWriter) commit(status int) {
	if w.wrote {
		return
	}
	w.wrote = true
	w.status, w.sent = status, w.header.Clone()
	w.sse = strings.HasPrefix(w.sent.Get("Content-Type"), "text/event-stream")
	if w.sse {
		copy(w.end4[:], "\n\n\n\n") // nothing is open at the start
		w.last = time.Now()
		w.timer = time.AfterFunc(w.keepAlive, w.sendKeepAlives)
	}
	close(w.committed)
}

func (w *streamWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(p)
}

func (w *streamWriter) write(p []byte) (int, error) {
	w.commit(http.StatusOK)
	if w.ended {
		return 0, io.ErrClosedPipe
	}
	if len(p) == 0 {
		return 0, nil
	}
	n, err := w.pipe.Write(p)
	if w.sse && n > 0 {
		w.last = time.Now()
		w.remember(p[:n])
	}
	return n, err
}

// remember stores the last four bytes of the stream.
func (w *streamWriter) remember(p []byte) {
	if n := len(p); n < len(w.end4) {
		copy(w.end4[:], w.end4[n:])
		copy(w.end4[len(w.end4)-n:], p)
		return
	}
	copy(w.end4[:], p[len(p)-len(w.end4):])
}

// Flush commits the header; every Write is a separate chunk already.
func (w *streamWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commit(http.StatusOK)
}

// EndBody ends the response; the handler may continue with accounting.
func (w *streamWriter) EndBody() { w.end(nil) }

// end closes the body; an error marks it as truncated for the platform.
func (w *streamWriter) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commit(http.StatusOK)
	if w.ended {
		return
	}
	w.ended = true
	if w.timer != nil {
		w.timer.Stop()
	}
	_ = w.pipe.CloseWithError(err) // never fails
}

// fail responds for a failed handler: with the fault if nothing was sent, with an error
// event in an event stream, otherwise by truncating the body.
func (w *streamWriter) fail(f *fault.Fault) {
	w.mu.Lock()
	switch {
	case w.ended:
	case !w.wrote:
		clear(w.header)
		w.header.Set("Content-Type", "application/json")
		w.commit(f.Status())
		_, _ = w.write(f.DataBody(false)) // the reader may be gone
	case w.sse:
		event := "data: " + string(f.DataBody(false)) + "\n\n"
		if !w.betweenEvents() {
			event = "\n\n" + event
		}
		_, _ = w.write([]byte(event))
	default:
		w.mu.Unlock()
		w.end(errBroken)
		return
	}
	w.mu.Unlock()
}

// sendKeepAlives writes a comment into a stream that was idle between two events, and waits for
// the next idle period.
func (w *streamWriter) sendKeepAlives() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	quiet := time.Since(w.last)
	if quiet < w.keepAlive { // a write occurred while this waited
		w.timer.Reset(w.keepAlive - quiet)
		return
	}
	if w.betweenEvents() {
		if _, err := io.WriteString(w.pipe, ": keep-alive\n\n"); err != nil {
			return // the reader is gone
		}
	}
	w.last = time.Now()
	w.timer.Reset(w.keepAlive)
}

// betweenEvents reports whether the last event was ended by an empty line.
func (w *streamWriter) betweenEvents() bool {
	return bytes.HasSuffix(w.end4[:], []byte("\n\n")) || bytes.HasSuffix(w.end4[:], []byte("\n\r\n")) ||
		bytes.HasSuffix(w.end4[:], []byte("\r\r"))
}

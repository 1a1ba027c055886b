package http1

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// saw is what a handler was given.
type saw struct {
	Method, URI, Host, Proto string
	URL                      url.URL
	Header, Trailer          http.Header
	Length                   int64
	Coding                   []string
	Close                    bool
	Body                     string
	BodyErr                  string
}

// recorder serves the handlers of the tests and records their requests.
type recorder struct {
	mu  sync.Mutex
	saw []saw
}

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := saw{
		Method: r.Method, URI: r.RequestURI, Host: r.Host, Proto: r.Proto, URL: *r.URL, Header: r.Header.Clone(),
		Length: r.ContentLength, Coding: r.TransferEncoding, Close: r.Close,
	}
	if !strings.HasPrefix(r.URL.Path, "/unread") {
		b, err := io.ReadAll(r.Body)
		s.Body, s.BodyErr = brief(string(b)), fmt.Sprint(err)
	}
	s.Trailer = r.Trailer.Clone()
	rec.mu.Lock()
	rec.saw = append(rec.saw, s)
	rec.mu.Unlock()
	if h, ok := handlers[r.URL.Path]; ok {
		h(w, r)
		return
	}
	fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
}

func (rec *recorder) all() []saw {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.saw
}

func repeat(w io.Writer, total, step int) {
	for total > 0 {
		n := min(total, step)
		_, _ = io.WriteString(w, strings.Repeat("x", n))
		total -= n
	}
}

// handlers response in every way there is. Their names are paths.
var handlers = map[string]http.HandlerFunc{
	"/nothing":    func(http.ResponseWriter, *http.Request) {},
	"/status":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) },
	"/odd-status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799) },
	"/204":        func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-A", "b"); w.WriteHeader(204) },
	"/204-body": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "a/b")
		w.Header().Set("Content-Length", "3")
		w.WriteHeader(204)
		if _, err := io.WriteString(w, "abc"); err != http.ErrBodyNotAllowed {
			panic(err)
		}
	},
	"/304": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "a/b")
		w.Header().Set("Content-Length", "3")
		w.Header().Set("Etag", "e")
		w.WriteHeader(304)
	},
	"/json": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	},
	"/html":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html><body>") },
	"/no-type": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Content-Type"] = nil; repeat(w, 5, 5) },
	"/encoded": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		repeat(w, 5, 5)
	},
	"/2048":       func(w http.ResponseWriter, _ *http.Request) { repeat(w, 2048, 1000) },
	"/2049":       func(w http.ResponseWriter, _ *http.Request) { repeat(w, 2049, 1000) },
	"/9000":       func(w http.ResponseWriter, _ *http.Request) { repeat(w, 9000, 9000) },
	"/9000-small": func(w http.ResponseWriter, _ *http.Request) { repeat(w, 9000, 7) },
	"/large":      func(w http.ResponseWriter, _ *http.Request) { repeat(w, 1<<20, 100_000) },
	"/large-length": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(1<<20))
		repeat(w, 1<<20, 100_000)
	},
	"/length": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "4"); repeat(w, 4, 2) },
	"/short":  func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "9"); repeat(w, 4, 2) },
	"/long": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		repeat(w, 2, 2)
		if _, err := io.WriteString(w, "xy"); err != http.ErrContentLength {
			panic(err)
		}
	},
	"/bad-length": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "x"); repeat(w, 4, 2) },
	"/flush": func(w http.ResponseWriter, _ *http.Request) {
		for range 3 {
			_, _ = io.WriteString(w, "data: x\n\n")
			w.(http.Flusher).Flush()
		}
	},
	"/flush-first": func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); repeat(w, 10, 3) },
	"/flush-only":  func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() },
	"/flush-error": func(w http.ResponseWriter, _ *http.Request) {
		repeat(w, 3, 3)
		_ = http.NewResponseController(w).Flush()
	},
	"/hint": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "<x>")
		w.Header().Set("Content-Length", "2")
		w.WriteHeader(103)
		w.WriteHeader(102)
		_, _ = io.WriteString(w, "ok")
	},
	"/close": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close"); repeat(w, 3, 3) },
	"/closing": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "x, Close")
		repeat(w, 3, 3)
	},
	"/keep": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "keep-alive")
		repeat(w, 3, 3)
	},
	"/date":    func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", "then") },
	"/no-date": func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil },
	"/identity": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Transfer-Encoding", "identity")
		repeat(w, 30, 3)
	},
	"/chunked": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Transfer-Encoding", "chunked")
		w.Header().Set("Content-Length", "30")
		repeat(w, 30, 3)
	},
	"/late": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-A", "1")
		w.WriteHeader(201)
		w.Header().Set("X-A", "2")
		w.Header().Set("X-B", "2")
		w.WriteHeader(500)
		repeat(w, 3, 3)
	},
	"/injected": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-A"] = []string{"a\r\nX-B: b", " c\n", "\td ", "ü", ""}
		w.Header()["x lower"] = []string{"never"}
		w.Header()["x-lower"] = []string{"as it is"}
		w.Header()["X:\r\n"] = []string{"never"}
	},
	"/trailer": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-End, Content-Length, x-other")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-End", "1")
		w.Header().Set("X-Other", "2")
		w.Header().Set("Content-Length", "2")
	},
	"/trailer-prefix": func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-End", "1")
	},
	"/trailer-early": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(http.TrailerPrefix+"X-End", "1")
		_, _ = io.WriteString(w, "body")
	},
	"/panic": func(http.ResponseWriter, *http.Request) { panic("as the test wants") },
	"/abort": func(w http.ResponseWriter, _ *http.Request) { repeat(w, 5, 5); panic(http.ErrAbortHandler) },
	"/abort-flushed": func(w http.ResponseWriter, _ *http.Request) {
		repeat(w, 5, 5)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	},
	"/bad-status":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(42) },
	"/closed-body":   func(w http.ResponseWriter, r *http.Request) { _ = r.Body.Close(); repeat(w, 3, 3) },
	"/unread-closed": func(w http.ResponseWriter, r *http.Request) { _ = r.Body.Close(); repeat(w, 3, 3) },
	"/unread-flush":  func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); repeat(w, 3, 3) },
	"/unread-close": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		repeat(w, 3, 3)
	},
	"/unread-part": func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 3))
		repeat(w, 3, 3)
	},
	"/unread-after": func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		b, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %v", len(b), err)
	},
	"/unread-small": func(w http.ResponseWriter, r *http.Request) {
		n := 0
		for one := make([]byte, 1); ; n++ {
			if _, err := r.Body.Read(one); err != nil {
				fmt.Fprintf(w, "%d %v", n, err == io.EOF)
				return
			}
		}
	},
}

var testOptions = Options{HeadTime: 10 * time.Second, IdleTime: 120 * time.Second, MaxHead: 64 << 10, BodyTime: time.Minute, WriteTime: time.Minute}

func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// ours starts a server of this package.
func ours(t testing.TB, h http.Handler, o Options) (addr string, s *Server) {
	t.Helper()
	ln := listen(t)
	s = New(h, o)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ln) }()
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-ended; err != http.ErrServerClosed {
			t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr().String(), s
}

// theirs starts the server that is net/http with this package's bounds.
func theirs(t testing.TB, h http.Handler) (addr string) {
	t.Helper()
	o := testOptions
	o.Standard, o.Panicked = true, func(any) {}
	addr, _ = ours(t, h, o)
	return addr
}

// bare starts net/http's server.
func bare(t testing.TB, h http.Handler) (addr string) {
	t.Helper()
	ln := listen(t)
	s := &http.Server{Handler: h, ReadHeaderTimeout: testOptions.HeadTime, IdleTimeout: testOptions.IdleTime, MaxHeaderBytes: testOptions.MaxHead, ErrorLog: quietLog}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close() })
	return ln.Addr().String()
}

func dial(t testing.TB, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	return c.(*net.TCPConn)
}

// talk sends bytes, one piece after the other, then ends its side, and gives all
// that comes back.
func talk(t testing.TB, addr string, pieces ...string) []byte {
	t.Helper()
	c := dial(t, addr)
	defer c.Close()
	var back bytes.Buffer
	read := make(chan struct{})
	go func() { // large responses and large requests pass each other
		defer close(read)
		_, _ = io.Copy(&back, c) // a reset is as good an end
	}()
	for i, p := range pieces {
		if i > 0 {
			time.Sleep(200 * time.Microsecond) // so that most pieces come alone; nothing depends on it
		}
		if _, err := io.WriteString(c, p); err != nil {
			break
		}
	}
	_ = c.CloseWrite()
	<-read
	return back.Bytes()
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

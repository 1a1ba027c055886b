package http1

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// variants runs a test on this server and on the one that is net/http alone.
func variants(t *testing.T, o Options, test func(t *testing.T, o Options)) {
	t.Parallel()
	for _, standard := range []bool{false, true} {
		t.Run(map[bool]string{false: "own", true: "standard"}[standard], func(t *testing.T) {
			t.Parallel()
			o := o
			o.Standard, o.Panicked = standard, func(any) {}
			test(t, o)
		})
	}
}

// heads are the ways to announce a body of some length, which do not send it.
func heads(length int) map[string]string {
	announced := fmt.Sprintf("Content-Length: %d\r\n", length)
	return map[string]string{
		"length":        "POST / HTTP/1.1\r\nHost: h\r\n" + announced + "\r\n",
		"closing":       "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + announced + "\r\n",
		"asking":        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n" + announced + "\r\n",
		"chunked":       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
		"half a chunk":  "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\nab", length),
		"asking, parts": "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n",
		"HTTP/1.0":      "POST / HTTP/1.0\r\n" + announced + "\r\n",
		"a part":        "POST / HTTP/1.1\r\nHost: h\r\n" + announced + "\r\nab",
		"PUT":           "PUT / HTTP/1.1\r\nHost: h\r\n" + announced + "\r\n",
		"GET":           "GET / HTTP/1.1\r\nHost: h\r\n" + announced + "\r\n",
	}
}

// TestAnswersDoNotWaitForBodies that are never read and never arrive: the client gets its
// response and the connection ends.
func TestAnswersDoNotWaitForBodies(t *testing.T) {
	variants(t, testOptions, func(t *testing.T, o Options) {
		addr, s := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.Header.Get("X-How") {
			case "closes":
				_ = r.Body.Close()
			case "flushes":
				w.WriteHeader(401)
				_ = http.NewResponseController(w).Flush()
			case "large":
				w.WriteHeader(401)
				repeat(w, 100_000, 100_000)
				return
			}
			w.WriteHeader(401)
			_, _ = io.WriteString(w, "no")
		}), o)
		var all sync.WaitGroup
		for _, how := range []string{"", "closes", "flushes", "large"} {
			for _, length := range []int{10, 100_000, 10_000_000} {
				for name, raw := range heads(length) {
					all.Go(func() {
						c := dial(t, addr)
						defer c.Close()
						_, _ = io.WriteString(c, strings.Replace(raw, "\r\n", "\r\nX-How: "+how+"\r\n", 1))
						got, err := io.ReadAll(c)
						if timeout(err) || !strings.HasPrefix(string(got), "HTTP/1.1 401 ") && !strings.HasPrefix(string(got), "HTTP/1.0 401 ") {
							t.Errorf("%s %d %s: %q, %v", how, length, name, brief(string(got)), err)
						}
					})
				}
			}
		}
		all.Wait()
		eventually(t, "all connections are forgotten", func() bool { return s.counted() == 0 })
	})
}

func timeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// counted is how many connections the gate counts.
func (s *Server) counted() int {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if len(s.gate.from) > s.gate.open {
		panic("an address without a connection")
	}
	return s.gate.open + len(s.gate.spare)
}

// TestBodiesMustGoOn: a handler that reads a stalled body gets an error, and may send it to the
// client.
func TestBodiesMustGoOn(t *testing.T) {
	o := testOptions
	o.BodyTime = 3 * tick
	variants(t, o, func(t *testing.T, o Options) {
		addr, s := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := io.Copy(io.Discard, r.Body)
			if r.Context().Err() != nil {
				err = errors.Join(err, errors.New("the client is taken for gone"))
			}
			if !timeout(err) {
				t.Errorf("%s: %v", r.RequestURI, err)
			}
			w.WriteHeader(408)
		}), o)
		var all sync.WaitGroup
		for _, trickle := range []bool{false, true} {
			for name, raw := range heads(100_000) {
				all.Go(func() {
					c := dial(t, addr)
					defer c.Close()
					_, _ = io.WriteString(c, raw)
					stop := make(chan struct{})
					defer close(stop)
					if trickle && !strings.Contains(raw, "chunked") {
						go drip(c, stop)
					}
					got, err := io.ReadAll(c)
					if timeout(err) || !strings.Contains(string(got), " 408 ") {
						t.Errorf("%s, in bytes: %v: %q, %v", name, trickle, got, err)
					}
				})
			}
		}
		all.Wait()
		eventually(t, "all connections are forgotten", func() bool { return s.counted() == 0 })
	})
}

// drip sends a byte now and then.
func drip(c net.Conn, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(50 * time.Millisecond):
		}
		if _, err := c.Write([]byte{'x'}); err != nil {
			return
		}
	}
}

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		p    patience
		want time.Duration
	}{
		{patience{}, 30 * time.Second},
		{patience{received: 1}, 30 * time.Second},
		{patience{waited: 10 * time.Second}, 20 * time.Second},
		{patience{waited: 40 * time.Second}, 0},
		{patience{received: 10 * slowest, waited: 10 * time.Second}, 30 * time.Second},
		{patience{received: 10 * slowest, waited: 25 * time.Second}, 15 * time.Second},
		{patience{received: 1 << 40, waited: time.Hour}, 30 * time.Second},
		{patience{received: 1 << 62, waited: 1 << 62}, 0},
	} {
		if got := c.p.left(30 * time.Second); got != c.want {
			t.Errorf("%+v: %v, want %v", c.p, got, c.want)
		}
	}
}

// TestReadersMustGoOn: the handler of a client that reads nothing gets an error.
func TestReadersMustGoOn(t *testing.T) {
	o := testOptions
	o.WriteTime = 3 * tick
	variants(t, o, func(t *testing.T, o Options) {
		aborted := make(chan error, 1)
		addr, s := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			some := make([]byte, 1<<20)
			for range 1000 {
				if _, err := w.Write(some); err != nil {
					<-r.Context().Done()
					aborted <- nil
					return
				}
				if r.Header.Get("X-Flush") != "" {
					_ = http.NewResponseController(w).Flush()
				}
			}
			aborted <- errors.New("all was sent to a client that reads nothing")
		}), o)
		for _, raw := range []string{
			get("/"), get("/", "X-Flush: 1"), post("/", "body"), "GET / HTTP/1.0\r\n\r\n",
			"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", post("/", "body", "Expect: 100-continue"),
		} {
			c := dial(t, addr)
			_, _ = io.WriteString(c, raw)
			select {
			case err := <-aborted:
				if err != nil {
					t.Errorf("%.60q: %v", raw, err)
				}
			case <-time.After(60 * time.Second):
				t.Fatalf("%.60q: the handler waits for ever", raw)
			}
			c.Close()
		}
		eventually(t, "all connections are forgotten", func() bool { return s.counted() == 0 })
	})
}

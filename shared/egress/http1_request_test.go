package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRequestsAreWrittenAsTheyAre(t *testing.T) {
	sizes := []int{0, 1, 5000, 17 << 10, 70 << 10, 5 << 20}
	bothClients(t, func(t *testing.T, c client) {
		got := make(chan *http.Request, 1)
		bodies := make(chan []byte, 1)
		s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, _ int) {
			for {
				req, body, ok := request(r)
				if !ok {
					return
				}
				io.WriteString(conn, answer)
				got <- req
				bodies <- body
			}
		})
		for _, size := range sizes {
			body := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
			if size == 0 {
				body = nil
			}
			req := newRequest("POST", s.url+"/v1/chat//x%2Fy?a=b&c", body)
			req.Header["X-One"], req.Header["Authorization"] = []string{"1", "2"}, []string{"Bearer k"}
			req.Header["User-Agent"] = []string{"gateway"}
			req.Header["Content-Length"] = []string{"77"} // not ours to say
			if _, out, err := call(c, req); err != nil || out != "ok" {
				t.Fatalf("%d bytes: %q, %v", size, out, err)
			}
			r := <-got
			if b := <-bodies; !bytes.Equal(b, body) {
				t.Errorf("%d bytes: the host got %d others", size, len(b))
			}
			if r.Method != "POST" || r.RequestURI != "/v1/chat//x%2Fy?a=b&c" || r.ContentLength != int64(size) || strings.Join(r.Header["X-One"], ",") != "1,2" ||
				r.Header.Get("Authorization") != "Bearer k" || r.Header.Get("User-Agent") != "gateway" || "http://"+r.Host != strings.Replace(s.url, "https", "http", 1) {
				t.Errorf("%d bytes: the host got %s %s %v %s", size, r.Method, r.RequestURI, r.Header, r.Host)
			}
		}
		if n := s.conns.Load(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
	})
}

func TestHeadersCannotBeInjected(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, _ int) {
			if _, _, ok := request(r); ok {
				io.WriteString(conn, answer)
			}
		})
		for _, bad := range []func(*http.Request){
			func(r *http.Request) { r.Header["X-A"] = []string{"a\r\nX-B: b"} },
			func(r *http.Request) { r.Header["X-A"] = []string{"a\nb"} },
			func(r *http.Request) { r.Header["X-A"] = []string{"a\x00b"} },
			func(r *http.Request) { r.Header["X-A: b\r\nX-C"] = []string{"a"} },
			func(r *http.Request) { r.Header[""] = []string{"a"} },
			func(r *http.Request) { r.Method = "POST /x" },
			func(r *http.Request) { r.URL.Opaque = "/a b" },
			func(r *http.Request) { r.URL.Opaque = "/a\r\nX-B: b" },
		} {
			req := newRequest("POST", s.url, []byte("body"))
			bad(req)
			if resp, _, err := call(c, req); err == nil {
				t.Errorf("%q %q %v: sent, %d", req.Method, req.URL, req.Header, resp.StatusCode)
			}
		}
	})
}

func TestGarbageBehindAnAnswerIsNoAnswer(t *testing.T) {
	const evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
	bothClients(t, func(t *testing.T, c client) {
		if !c.strict {
			t.Skip("net/http takes what its buffer holds")
		}
		for name, write := range map[string]func(net.Conn){
			"in one write": func(conn net.Conn) { io.WriteString(conn, answer+evil) },
			"in one segment": func(conn net.Conn) { // two records that are received at once
				secure, ok := conn.(*tls.Conn)
				if !ok {
					io.WriteString(conn, answer+evil)
					return
				}
				tcp := secure.NetConn().(*held)
				tcp.hold = true
				io.WriteString(conn, answer)
				io.WriteString(conn, evil)
				tcp.release()
			},
		} {
			s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
				for {
					if _, _, ok := request(r); !ok {
						return
					}
					write(conn)
				}
			})
			for range 30 {
				if _, body, err := call(c, newRequest("POST", s.url, []byte("x"))); err == nil && body != "ok" {
					t.Errorf("%s: %q", name, body)
				}
			}
		}
	})
}

// held is a connection that can buffer writes.
type held struct {
	net.Conn
	hold bool
	b    []byte
}

func (h *held) Write(p []byte) (int, error) {
	if !h.hold {
		return h.Conn.Write(p)
	}
	h.b = append(h.b, p...)
	return len(p), nil
}

func (h *held) release() {
	h.hold = false
	h.Conn.Write(h.b)
	h.b = nil
}

func TestAConnectionClosedWhileIdleIsNotUsed(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		var served atomic.Int64
		closed := make(chan struct{}, 10)
		s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
			if _, _, ok := request(r); ok {
				served.Add(1)
				io.WriteString(conn, answer)
			}
			conn.Close()
			closed <- struct{}{}
		})
		before := readers()
		for i := range 5 {
			if _, body, err := call(c, newRequest("POST", s.url, []byte("x"))); err != nil || body != "ok" {
				t.Fatalf("request %d: %q, %v", i, body, err)
			}
			<-closed
			if !c.strict {
				eventually(t, "net/http learns it, in a goroutine of its own", func() bool { return readers() <= before })
			}
		}
		if served.Load() != 5 {
			t.Errorf("%d requests were served, want 5", served.Load())
		}
	})
}

// readers is how many goroutines read for connections of net/http.
func readers() int {
	all := make([]byte, 16<<20)
	return bytes.Count(all[:runtime.Stack(all, true)], []byte("net/http.(*persistConn).readLoop("))
}

// TestWhatTheHostMayHaveReadIsRepeatedOnce: the host reads the second request of a connection
// and closes immediately without a response, like one that ends idle connections. net/http
// repeats only idempotent requests.
func TestWhatTheHostMayHaveReadIsRepeatedOnce(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		for _, x := range []struct {
			method string
			key    bool
			want   int64
		}{{"POST", false, 1}, {"PUT", false, 1}, {"POST", true, 2}, {"GET", false, 2}} {
			var seconds atomic.Int64
			s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
				for i := 0; ; i++ {
					req, _, ok := request(r)
					if !ok {
						return
					}
					if req.URL.Path == "/second" {
						seconds.Add(1)
						if i > 0 {
							return
						}
					}
					io.WriteString(conn, answer)
				}
			})
			body := []byte("x")
			if x.method == "GET" {
				body = nil
			}
			if _, _, err := call(c, newRequest(x.method, s.url+"/first", body)); err != nil {
				t.Fatal(err)
			}
			req := newRequest(x.method, s.url+"/second", body)
			if x.key {
				req.Header["Idempotency-Key"] = []string{"k"}
			}
			_, _, err := call(c, req)
			if c.strict {
				x.want = 2
			}
			if (err == nil) != (x.want == 2) || seconds.Load() != x.want {
				t.Errorf("%s with key %v: %v after %d tries, want %d", x.method, x.key, err, seconds.Load(), x.want)
			}
		}
	})
}

func TestAnEarlyResponseIsRead(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 20<<20)
	bothClients(t, func(t *testing.T, c client) {
		for _, closes := range []bool{false, true} {
			done := make(chan struct{})
			s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
				if !closes {
					<-done // neither reads nor closes
				} else if tcp, ok := conn.(*net.TCPConn); ok {
					tcp.CloseWrite()
					<-done
				}
			})
			req := newRequest("POST", s.url, large)
			sent := make(chan struct{})
			ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) }})
			resp, body, err := call(c, req.WithContext(ctx))
			if err != nil || resp.StatusCode != 413 || body != "no" {
				if !(closes && c.secure) { // a reset may overtake the response
					t.Errorf("closes %v: %v %q %v", closes, resp, body, err)
				}
			}
			select {
			case <-sent: // the bytes may be used again
			case <-time.After(time.Minute):
				t.Error("the transport never let go of the body")
			}
			close(done)
		}
	})
}

func TestCancelling(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 20<<20)
	bothClients(t, func(t *testing.T, c client) {
		for _, phase := range []string{"before", "head", "slow head", "body", "chunks", "sending"} {
			reached, ended := make(chan struct{}), make(chan struct{})
			s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
				if _, err := http.ReadRequest(r); err != nil {
					return
				}
				switch phase {
				case "slow head":
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-")
				case "body":
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
				case "chunks":
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
				}
				close(reached)
				if phase != "sending" {
					io.Copy(io.Discard, r) // until the client closes
					return
				}
				select {
				case <-ended: // a connection closed during a client's write is another error
				case <-time.After(time.Minute):
				}
			})
			ctx, cancel := context.WithCancel(context.Background())
			body := []byte("x")
			if phase == "sending" {
				body = large
			}
			if phase == "before" {
				cancel()
			} else {
				go func() { <-reached; cancel() }()
			}
			resp, err := c.tr.RoundTrip(newRequest("POST", s.url, body).WithContext(ctx))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want context.Canceled", phase, err)
			}
			close(ended)
			cancel()
		}
	})
}

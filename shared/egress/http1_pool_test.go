package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestGivingABodyUp(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
			for {
				if _, _, ok := request(r); !ok {
					return
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
				if n%2 == 0 {
					io.WriteString(conn, "0\r\n\r\n")
				}
			}
		})
		for range 6 {
			resp, err := c.tr.RoundTrip(newRequest("POST", s.url, []byte("x")))
			if err != nil {
				t.Fatal(err)
			}
			one := make([]byte, 1)
			io.ReadFull(resp.Body, one)
			resp.Body.Close()
			resp.Body.Close()
			if n, err := resp.Body.Read(one); n != 0 || err == nil {
				t.Errorf("read %d, %v from a closed body", n, err)
			}
		}
		// Close from another goroutine ends a read.
		resp, err := c.tr.RoundTrip(newRequest("POST", s.url, []byte("x")))
		if err != nil {
			t.Fatal(err)
		}
		go func() { time.Sleep(5 * time.Millisecond); resp.Body.Close() }()
		if _, err := io.ReadAll(resp.Body); err == nil && s.conns.Load()%2 == 1 {
			t.Error("a read went on after Close")
		}
	})
}

func TestManyConcurrentRequestsGetTheirResponsesAndLeaveNothing(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
			for i := 0; ; i++ {
				_, body, ok := request(r)
				if !ok {
					return
				}
				if i%2 == 0 {
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
				} else {
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
				}
			}
		})
		before := runtime.NumGoroutine()
		var wg sync.WaitGroup
		for g := range 24 {
			wg.Go(func() {
				for i := range 12 {
					body := bytes.Repeat(fmt.Appendf(nil, "%d-%d ", g, i), 1+(g*i*37)%3000)
					_, out, err := call(c, newRequest("POST", s.url, body))
					if err != nil || out != string(body) {
						t.Errorf("%d %d: %d bytes of %d, %v", g, i, len(out), len(body), err)
					}
				}
			})
		}
		wg.Wait()
		c.tr.CloseIdleConnections()
		// Of the server one goroutine a connection ends with the client's close.
		eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	})
}

func TestNoFileIsLeftOpen(t *testing.T) {
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("files in use can be counted on Linux only")
		}
		return len(list)
	}
	tr := NewHTTP1(mustAllow(t, "127.0.0.0/8"))
	s := script(t, false, func(conn net.Conn, r *bufio.Reader, n int) {
		if _, _, ok := request(r); ok && n%3 != 0 {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhalf"[:39+n%3])
		}
	})
	before := count()
	for range 60 {
		_, _, _ = call(client{tr: tr}, newRequest("POST", s.url, []byte("x")))
	}
	tr.CloseIdleConnections()
	eventually(t, "files are closed", func() bool { return count() <= before })
}

func TestIdleConnectionsAreBoundedAndGrowOld(t *testing.T) {
	tr := NewHTTP1(mustAllow(t, "127.0.0.0/8"))
	tr.idle.idleTimeout = 20 * time.Millisecond
	s := script(t, false, func(conn net.Conn, r *bufio.Reader, n int) {
		for {
			if _, _, ok := request(r); !ok {
				return
			}
			io.WriteString(conn, answer)
		}
	})
	if _, _, err := call(client{tr: tr}, newRequest("POST", s.url, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the idle connection is closed", func() bool {
		tr.idle.mu.Lock()
		defer tr.idle.mu.Unlock()
		return tr.idle.all.n == 0 && len(tr.idle.hosts) == 0 && tr.idle.sweep == nil
	})
	var p idlePool
	p.idleTimeout = time.Hour
	for i := range maxIdlePerHost + 10 {
		p.put(&conn{pool: &p, key: hostKey{host: "a"}, net: &piecewise{}})
		if want := min(i+1, maxIdlePerHost); p.all.n != want {
			t.Fatalf("%d connections idle after %d, want %d", p.all.n, i+1, want)
		}
	}
	p.closeAll()
	if p.all.n != 0 || p.get(hostKey{host: "a"}) != nil {
		t.Error("connections are left")
	}
}

func TestAHostThatTakesHTTP2OnlyIsReached(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", r.Proto, b)
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP2(true)
	s.EnableHTTP2, s.Config.ErrorLog = true, discardLog
	var silent atomic.Bool // a host that does not say why it closes
	s.TLS = &tls.Config{NextProtos: []string{"h2"}, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c := &tls.Config{Certificates: s.TLS.Certificates, NextProtos: []string{"h2"}}
		if !slices.Contains(hello.SupportedProtos, "h2") && !silent.Load() {
			c.NextProtos = []string{"spdy"}
		}
		return c, nil
	}}
	s.StartTLS()
	t.Cleanup(s.Close)
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = x509.NewCertPool()
	p.RootCAs.AddCert(s.Certificate())
	tr := NewHTTP1(p)
	defer tr.CloseIdleConnections()
	for range 2 {
		_, body, err := call(client{tr: tr}, newRequest("POST", s.URL, []byte("x")))
		if err != nil || body != "HTTP/2.0 x" {
			t.Errorf("%q, %v", body, err)
		}
	}
	silent.Store(true)
	tr = NewHTTP1(p)
	defer tr.CloseIdleConnections()
	for range 3 { // the first learns that there is HTTP/2, the second that there is nothing else
		if _, body, err := call(client{tr: tr}, newRequest("POST", s.URL, []byte("x"))); err != nil || body != "HTTP/2.0 x" {
			t.Errorf("a host that says nothing: %q, %v", body, err)
		}
	}
	if what := tr.offers.of(strings.TrimPrefix(s.URL, "https://")); what != onlyHTTP2 {
		t.Errorf("the host is known for %d", what)
	}
}

func TestOtherRequestsGoToNetHTTP(t *testing.T) {
	s, n := counted(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%d %s", r.ContentLength, b)
	})
	tr := NewHTTP1(mustAllow(t, "127.0.0.0/8"))
	defer tr.CloseIdleConnections()
	req := newRequest("POST", s.URL, nil)
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader("streamed")), -1
	if _, body, err := call(client{tr: tr}, req); err != nil || body != "-1 streamed" {
		t.Errorf("%q, %v", body, err)
	}
	if tr.idle.all.n != 0 || n.Load() != 1 {
		t.Error("a streamed body was not left to net/http")
	}
	if tr.standard == nil {
		t.Error("no standard transport")
	}
}

func TestThePolicyHoldsForHTTP1(t *testing.T) {
	s, n := counted(t, func(http.ResponseWriter, *http.Request) {})
	tr := NewHTTP1(Policy{})
	for _, url := range []string{s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), strings.Replace(s.URL, "http:", "https:", 1), "http://169.254.169.254/", "http://[::1]:1/"} {
		if _, _, err := call(client{tr: tr}, newRequest("POST", url, []byte("x"))); !IsBlocked(err) {
			t.Errorf("%s: %v, want refused", url, err)
		}
	}
	if n.Load() != 0 {
		t.Errorf("%d connections were made", n.Load())
	}
	port := s.URL[strings.LastIndexByte(s.URL, ':'):]
	rebound := newHTTP1(mustAllow(t, "127.0.0.1"), dnsAnswering(t, "127.0.0.1", "127.0.0.2"))
	if _, _, err := call(client{tr: rebound}, newRequest("POST", "http://rebind.example"+port, []byte("x"))); err != nil {
		t.Fatalf("first look-up: %v", err)
	}
	rebound.CloseIdleConnections()
	if _, _, err := call(client{tr: rebound}, newRequest("POST", "http://rebind.example"+port, []byte("x"))); !IsBlocked(err) {
		t.Errorf("second look-up: %v, want refused", err)
	}
}

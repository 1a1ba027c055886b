package upstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/egress"
)

func TestTransportTellsWhenItIsDoneWithABody(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) }))
	defer srv.Close()
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	own := egress.NewHTTP1(policy)
	defer own.CloseIdleConnections()
	for _, c := range []struct {
		transport http.RoundTripper
		closes    bool // requests a new connection, which HTTP1 leaves to net/http
	}{{http.DefaultTransport, false}, {own, false}, {own, true}} {
		o := NewBody(c.transport)
		if o.Busy() || (*Body)(nil).Busy() {
			t.Error("busy with nothing")
		}
		req, err := http.NewRequestWithContext(o.Watch(t.Context()), "POST", srv.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Close = c.closes
		o.Attach(req, []byte("the body"))
		if !o.Busy() {
			t.Error("not busy with a body that was not sent")
		}
		resp, err := c.transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || string(got) != "the body" {
			t.Errorf("%q %v", got, err)
		}
		for o.Busy() { // the test's own time limit ends this
			time.Sleep(time.Millisecond)
		}
	}
}

type closable struct {
	io.Reader
	closed bool
}

var errClosed = errors.New("read after close")

func (c *closable) Read(p []byte) (int, error) {
	if c.closed {
		return 0, errClosed
	}
	return c.Reader.Read(p)
}

func (c *closable) Close() error { c.closed = true; return nil }

func TestStreamedBodyEndsWhereItsLengthSays(t *testing.T) {
	src := &closable{Reader: strings.NewReader("abcdef")}
	body := WithLength(src, 4)
	if _, err := io.ReadFull(body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	src.closed = true // as the server does when the response has started
	if n, err := body.Read(make([]byte, 4)); n != 0 || err != io.EOF {
		t.Errorf("past the end: %d bytes, %v", n, err)
	}
	if open := WithLength(src, -1); open != io.ReadCloser(src) {
		t.Error("a body of unknown length was wrapped")
	}
}

func TestWhetherARequestWentOutWhole(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { _, _ = io.Copy(w, req.Body) }))
	defer srv.Close()
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	if (*Body)(nil).Sent() {
		t.Error("of nothing")
	}
	own, standard := egress.NewHTTP1(policy), egress.NewStandard(policy)
	defer own.CloseIdleConnections()
	defer standard.CloseIdleConnections()
	ask := func(tr http.RoundTripper, o *Body, url string, set func(*http.Request)) {
		t.Helper()
		req, err := http.NewRequestWithContext(o.Watch(t.Context()), "POST", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		set(req)
		if resp, err := tr.RoundTrip(req); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	for _, tr := range []http.RoundTripper{http.DefaultTransport, own, standard} {
		o := NewBody(tr)
		bytes := func(req *http.Request) { o.Attach(req, []byte("the body")) }
		if ask(tr, o, srv.URL, bytes); !o.Sent() {
			t.Errorf("%T: it was answered", tr)
		}
		if ask(tr, o, "http://127.0.0.1:1/", bytes); o.Sent() {
			t.Errorf("%T: nobody listens there", tr)
		}
		for _, n := range []int64{4, -1, 9} { // 9: more than there is
			var s *Body
			stream := io.NopCloser(strings.NewReader("abcd"))
			req, err := http.NewRequestWithContext(t.Context(), "POST", srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			s = s.Stream(req, WithLength(stream, n), n)
			if s.Sent() || s.Busy() {
				t.Errorf("%T: nothing was sent", tr)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				continue
			}
			if _, err = io.Copy(io.Discard, resp.Body); err == nil && !s.Sent() {
				t.Errorf("%T: a stream of %d was answered", tr, n)
			}
			_ = resp.Body.Close()
		}
	}
}

// A transport may retry a request automatically; its last attempt counts.
func TestARequestThatWasRepeatedWentOutWhole(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// A connection serves one request, and is closed when the next one arrives.
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for n := range 2 {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if n == 0 {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					}
				}
			}()
		}
	}()
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	own, standard := egress.NewHTTP1(policy), egress.NewStandard(policy)
	defer own.CloseIdleConnections()
	defer standard.CloseIdleConnections()
	for _, tr := range []http.RoundTripper{own, standard} {
		o := NewBody(tr)
		for n := range 3 {
			req, err := http.NewRequestWithContext(o.Watch(t.Context()), "POST", "http://"+l.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Idempotency-Key", "one")
			o.Attach(req, []byte("the body"))
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatalf("%T: request %d: %v", tr, n, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if !o.Sent() {
				t.Errorf("%T: request %d was answered", tr, n)
			}
		}
	}
}

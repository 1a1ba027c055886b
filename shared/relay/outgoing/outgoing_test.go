package outgoing

import (
	"errors"
	"io"
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
		closes    bool // asks for a new connection, which HTTP1 leaves to net/http
	}{{http.DefaultTransport, false}, {own, false}, {own, true}} {
		o := New(c.transport)
		if o.Busy() || (*Bytes)(nil).Busy() {
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
	body := Exactly(src, 4)
	if _, err := io.ReadFull(body, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	src.closed = true // as the server does when the answer has begun
	if n, err := body.Read(make([]byte, 4)); n != 0 || err != io.EOF {
		t.Errorf("past the end: %d bytes, %v", n, err)
	}
	if open := Exactly(src, -1); open != io.ReadCloser(src) {
		t.Error("a body of unknown length was wrapped")
	}
}

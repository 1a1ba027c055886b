package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// scripted is a server that speaks bytes. serve gets each connection with its
// number, from 1.
type scripted struct {
	url   string
	conns atomic.Int64
}

func script(t testing.TB, secure bool, serve func(c net.Conn, r *bufio.Reader, n int)) *scripted {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scripted{url: "http://" + l.Addr().String()}
	if secure {
		s.url = "https://" + l.Addr().String()
	}
	var open sync.Map
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n := int(s.conns.Add(1))
			open.Store(c, nil)
			wg.Go(func() {
				defer c.Close()
				raw := c
				if secure {
					c = tls.Server(&held{Conn: c}, &tls.Config{Certificates: []tls.Certificate{certificate()}, NextProtos: []string{"http/1.1"}})
				}
				serve(c, bufio.NewReader(c), n)
				if secure {
					c.Close()
				}
				open.Delete(raw)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		open.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		wg.Wait()
	})
	return s
}

// request reads one request with its body; false at the end of the connection.
func request(r *bufio.Reader) (*http.Request, []byte, bool) {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, nil, false
	}
	body, err := io.ReadAll(req.Body)
	return req, body, err == nil
}

// client is one of the transports under test.
type client struct {
	name   string
	secure bool
	strict bool // HTTP1
	tr     interface {
		http.RoundTripper
		CloseIdleConnections()
	}
}

// bothClients runs a test with net/http's transport and with HTTP1, plain and
// over TLS: the contract is the same.
func bothClients(t *testing.T, test func(t *testing.T, c client)) {
	for _, secure := range []bool{false, true} {
		p := mustAllow(t, "127.0.0.0/8")
		p.RootCAs = authority()
		one := newTransport(p, nil)
		one.ForceAttemptHTTP2 = false
		one.TLSClientConfig.NextProtos = []string{"http/1.1"}
		for _, c := range []client{{"net/http", secure, false, one}, {"HTTP1", secure, true, NewHTTP1(p)}} {
			name := c.name
			if secure {
				name += " over TLS"
			}
			t.Run(name, func(t *testing.T) {
				defer c.tr.CloseIdleConnections()
				test(t, c)
			})
		}
	}
}

func newRequest(method, url string, body []byte) *http.Request {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		panic(err)
	}
	if body != nil {
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return NewBody(body), nil }
		req.Body = NewBody(body)
	}
	return req
}

// call sends a request and reads the complete response.
func call(c client, req *http.Request) (*http.Response, string, error) {
	resp, err := c.tr.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp, string(b), err
}

// eventually waits for something that another goroutine does.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

var answers = []struct {
	name, method, raw string
	status            int
	body              string
	broken            bool // the body breaks off
	refused           bool // there is no response
	reuse             bool // the connection serves the next request
}{
	{name: "length", raw: answer, status: 200, body: "ok", reuse: true},
	{name: "length 0", raw: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200, reuse: true},
	{name: "no reason", raw: "HTTP/1.1 429\r\ncontent-length: 1\r\n\r\nx", status: 429, body: "x", reuse: true},
	{name: "chunks", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", status: 200, body: "abcde", reuse: true},
	{name: "chunks with extensions and trailers", raw: "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\nA;x=\"1\"\r\n0123456789\r\n000;y\r\nX-T: 1\r\nX-U: 2\r\n\r\n", status: 200, body: "0123456789", reuse: true},
	{name: "no chunks", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", status: 200, reuse: true},
	{name: "until close", raw: "HTTP/1.1 200 OK\r\n\r\nall of it", status: 200, body: "all of it"},
	{name: "HTTP/1.0", raw: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok"},
	{name: "HTTP/1.0 kept", raw: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", reuse: true},
	{name: "connection: close", raw: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok"},
	{name: "204", raw: "HTTP/1.1 204 No Content\r\n\r\n", status: 204, reuse: true},
	{name: "304", raw: "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n", status: 304, reuse: true},
	{name: "HEAD", method: "HEAD", raw: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", status: 200, reuse: true},
	{name: "100 Continue", raw: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + answer, status: 200, body: "ok", reuse: true},
	{name: "bare line feeds", raw: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", status: 200, body: "ok", reuse: true},
	{name: "large head", raw: "HTTP/1.1 200 OK\r\nX-Large: " + strings.Repeat("x", 40<<10) + "\r\nContent-Length: 2\r\n\r\nok", status: 200, body: "ok", reuse: true},
	{name: "large body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("body", 75000), status: 200, body: strings.Repeat("body", 75000), reuse: true},
	{name: "large chunk", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n493e0\r\n" + strings.Repeat("body", 75000) + "\r\n1\r\nx\r\n0\r\n\r\n", status: 200, body: strings.Repeat("body", 75000) + "x", reuse: true},
	{name: "cut body", raw: "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", status: 200, body: "half", broken: true},
	{name: "cut chunk", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\nhalf", status: 200, body: "half", broken: true},
	{name: "cut chunks", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", status: 200, body: "ab", broken: true},
	{name: "cut trailers", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-T: 1\r\n", status: 200, body: "ab", broken: true},
	{name: "chunk without its end", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabXX0\r\n\r\n", status: 200, body: "ab", broken: true},
	{name: "chunk size that is none", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\nab\r\n", status: 200, body: "ab", broken: true},
	{name: "negative chunk size", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n-1\r\nab\r\n", status: 200, body: "ab", broken: true},
	{name: "chunk size beyond all bounds", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nffffffffffffffffff\r\nab\r\n", status: 200, body: "ab", broken: true},
	{name: "chunk head without end", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;" + strings.Repeat("x", 20000), status: 200, body: "ab", broken: true},
	{name: "nothing", raw: "", refused: true},
	{name: "cut head", raw: "HTTP/1.1 200 OK\r\nContent-Le", refused: true},
	{name: "other protocol", raw: "SSH-2.0-OpenSSH_9.6\r\n\r\n", refused: true},
	{name: "endless head", raw: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 400<<10) + "\r\n\r\n", refused: true},
	{name: "two lengths", raw: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!", refused: true},
	{name: "length that is no number", raw: "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok", refused: true},
	{name: "other coding", raw: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok", refused: true},
	{name: "header without colon", raw: "HTTP/1.1 200 OK\r\nContent-Length\r\n\r\nok", refused: true},
	{name: "status that is no number", raw: "HTTP/1.1 2x0 OK\r\nContent-Length: 2\r\n\r\nok", refused: true},
}

func TestAnswers(t *testing.T) {
	for _, split := range []bool{false, true} {
		bothClients(t, func(t *testing.T, c client) {
			for _, a := range answers {
				if split && len(a.raw) > 1<<10 {
					continue
				}
				s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
					for {
						if _, _, ok := request(r); !ok {
							return
						}
						raw := a.raw
						if n > 1 {
							raw = answer
						}
						if !split {
							io.WriteString(conn, raw)
						} else {
							for i := range len(raw) {
								conn.Write([]byte{raw[i]})
							}
						}
						if n == 1 && !a.reuse {
							return
						}
					}
				})
				method := a.method
				if method == "" {
					method = "POST"
				}
				resp, body, err := call(c, newRequest(method, s.url+"/v1?x=1", nil))
				switch {
				case a.refused:
					if err == nil || resp != nil {
						t.Errorf("%s: answered %v %q, want an error", a.name, resp.Status, body)
					}
				case resp == nil:
					t.Errorf("%s: %v", a.name, err)
				case resp.StatusCode != a.status || body != a.body || (err != nil) != a.broken:
					t.Errorf("%s: %d %.50q %v", a.name, resp.StatusCode, body, err)
				}
				if resp, _, err := call(c, newRequest(method, s.url, nil)); err != nil && !a.reuse {
					t.Errorf("%s: the next request: %v, %v", a.name, resp, err)
				}
				want := int64(2)
				if a.reuse {
					want = 1
				}
				if n := s.conns.Load(); n != want {
					t.Errorf("%s: %d connections, want %d", a.name, n, want)
				}
			}
		})
	}
}

// TestStrictness holds responses that net/http takes and HTTP1 does not, or takes
// without trusting the connection.
func TestStrictness(t *testing.T) {
	for name, raw := range map[string]string{
		"folded header":        "HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok",
		"space before colon":   "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok",
		"same length twice":    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
		"coding in HTTP/1.0":   "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"carriage return":      "HTTP/1.1 200 OK\r\nX-A: a\rb\r\nContent-Length: 2\r\n\r\nok",
		"zero byte":            "HTTP/1.1 200 OK\r\nX-A: a\x00b\r\nContent-Length: 2\r\n\r\nok",
		"upgrade":              "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
		"two codings":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"leading empty line":   "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/2":               "HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"endless informations": strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n", 4000) + answer,
	} {
		if h, err := parseWhole(raw); err == nil {
			t.Errorf("%s: taken: %+v", name, h)
		}
	}
	h, err := parseWhole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n")
	if err != nil || !h.chunked || h.length != -1 || h.persistent || h.header["Content-Length"] != nil {
		t.Errorf("length and coding: %+v, %v; want chunks on a connection that is not used again", h, err)
	}
}

// parseWhole reads the head of a response that comes at once.
func parseWhole(raw string) (responseHead, error) {
	x := &exchange{c: &conn{net: &piecewise{data: []byte(raw), step: 1 << 20}}, ctx: context.Background(), f: new(frame)}
	return x.head()
}

// piecewise is a connection that brings data in steps.
type piecewise struct {
	net.Conn
	data []byte
	step int
}

func (p *piecewise) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.data[:min(len(p.data), p.step)])
	p.data = p.data[n:]
	return n, nil
}

func (p *piecewise) Close() error { return nil }

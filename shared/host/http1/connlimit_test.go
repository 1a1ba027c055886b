package http1

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// health serves the health check, like a host's crowded handler.
func health(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/healthz" {
		w.WriteHeader(503)
	}
	_, _ = io.WriteString(w, "seen")
}

// TestBeyondTheBounds: connections beyond a limit get an error, the server still reports its
// health, and there is capacity again after others have closed.
func TestBeyondTheBounds(t *testing.T) {
	for name, o := range map[string]Options{"all": {MaxConns: 3}, "each": {MaxPerAddress: 3}, "both": {MaxConns: 3, MaxPerAddress: 3}} {
		t.Run(name, func(t *testing.T) {
			o.HeadTime, o.IdleTime, o.MaxHead, o.Overload = testOptions.HeadTime, testOptions.IdleTime, testOptions.MaxHead, http.HandlerFunc(health)
			variants(t, o, func(t *testing.T, o Options) {
				addr, s := ours(t, new(recorder), o)
				var held []*net.TCPConn
				for range o.MaxConns + o.MaxPerAddress*btoi(o.MaxConns == 0) {
					held = append(held, dial(t, addr))
				}
				eventually(t, "all are counted", func() bool { return s.counted() == 3 })
				// Those that stay silent do not keep out who speaks.
				for range 5 * defaultReserve {
					c := dial(t, addr)
					defer c.Close()
				}
				for _, raw := range []string{get("/healthz"), "GET /healthz HTTP/1.0\r\n\r\n", get("/healthz", "Connection: close"), get("/healthz") + get("/healthz")} {
					got := string(talk(t, addr, raw))
					if !strings.Contains(got, " 200 OK\r\n") || !strings.HasSuffix(got, "\r\n\r\nseen") || strings.Count(got, "seen") != 1 {
						t.Errorf("%q: %q", raw, got)
					}
				}
				for _, raw := range []string{get("/"), post("/", "body"), "GET / HTTP/1.0\r\n\r\n", heads(10)["chunked"], heads(10)["length"]} {
					if got := string(talk(t, addr, raw)); !strings.Contains(got, " 503 ") || strings.Contains(got, "GET") {
						t.Errorf("%q: %q", raw, got)
					}
				}
				// Those within the bounds are served, the last of them, too.
				for _, c := range held {
					_, _ = io.WriteString(c, get("/"))
					if got := answered(t, bufio.NewReader(c)); got != "GET /" {
						t.Errorf("within the bounds: %q", got)
					}
				}
				held[0].Close()
				eventually(t, "there is room again", func() bool { return strings.Contains(string(talk(t, addr, get("/"))), "GET /") })
				for _, c := range held[1:] {
					c.Close()
				}
			})
		})
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestEveryEndIsCounted: no way to end a connection leaves it counted.
func TestEveryEndIsCounted(t *testing.T) {
	variants(t, testOptions, func(t *testing.T, o Options) {
		rec := new(recorder)
		addr, s := ours(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if h, ok := w.(http.Hijacker); ok && r.URL.Path == "/hijack" {
				c, _, err := h.Hijack()
				if err == nil {
					_ = c.Close()
					return
				}
			}
			rec.ServeHTTP(w, r)
		}), o)
		raws := append([]string{get("/panic"), get("/abort"), get("/hijack", "Connection: Upgrade", "Upgrade: x"), get("/close"), post("/", "x")[:20]}, requests...)
		for _, raw := range raws {
			_ = talk(t, addr, raw)
			c := dial(t, addr)
			_, _ = io.WriteString(c, raw)
			_ = c.SetLinger(0) // a reset
			c.Close()
		}
		eventually(t, "all connections are forgotten", func() bool { return s.counted() == 0 })
	})
}

func TestConnectionsAreCountedByOrigin(t *testing.T) {
	tcp := func(s string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(s), Port: 1} }
	for _, c := range []struct {
		a, b net.Addr
		same bool
	}{
		{tcp("192.0.2.1"), tcp("192.0.2.1"), true},
		{tcp("192.0.2.1"), tcp("192.0.2.2"), false},
		{tcp("192.0.2.1"), tcp("::ffff:192.0.2.1"), true},
		{tcp("2001:db8::1"), tcp("2001:db8::2"), true},
		{tcp("2001:db8::1"), tcp("2001:db8:0:0:ffff:ffff:ffff:ffff"), true},
		{tcp("2001:db8::1"), tcp("2001:db8:0:1::1"), false},
		{tcp("fe80::1"), &net.TCPAddr{IP: net.ParseIP("fe80::1"), Zone: "eth0"}, true},
		{&net.UnixAddr{Name: "a"}, &net.UnixAddr{Name: "b"}, true},
		{&net.TCPAddr{}, &net.UnixAddr{Name: "b"}, true},
	} {
		g := newConnLimit(&Options{MaxPerAddress: 1})
		first, second := g.enter(c.a, io.NopCloser(nil)), g.enter(c.b, io.NopCloser(nil))
		if first.spare || second.spare != c.same {
			t.Errorf("%v, %v: beyond the bound: %v, %v", c.a, c.b, first.spare, second.spare)
		}
		for range 2 {
			first.leave()
			second.leave()
		}
		if g.open != 0 || len(g.from) != 0 || len(g.spare) != 0 {
			t.Errorf("%v, %v: left behind: %+v", c.a, c.b, g)
		}
	}
}

// TestNothingFollowsAMessageWithAnUncertainEnd: its connection ends with its response.
func TestNothingFollowsAMessageWithAnUncertainEnd(t *testing.T) {
	const chunks = "3\r\nabc\r\n0\r\n\r\n"
	variants(t, testOptions, func(t *testing.T, o Options) {
		rec := new(recorder)
		addr, _ := ours(t, rec, o)
		for _, coding := range []string{"Transfer-Encoding: chunked", "transfer-encoding: Chunked", "Transfer-Encoding:\tchunked", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding:"} {
			for _, version := range []string{"1.0", "1.1"} {
				for _, more := range []string{"", "Content-Length: 3\r\n", "Content-Length: 13\r\n", "Content-Length: 0\r\n", "Connection: keep-alive\r\n", "Connection: keep-alive\r\nContent-Length: 3\r\n"} {
					for _, order := range []string{coding + "\r\n" + more, more + coding + "\r\n"} {
						for _, before := range []string{"", get("/before")} {
							rec.saw = nil
							raw := fmt.Sprintf("%sPOST /first HTTP/%s\r\nHost: h\r\n%s\r\n%s", before, version, order, chunks)
							_ = talk(t, addr, raw+get("/second"))
							for _, saw := range rec.all() {
								if saw.URI == "/second" || saw.Proto == "" {
									t.Errorf("%q: served what follows", raw)
								}
							}
						}
					}
				}
			}
		}
	})
}

// TestTargetsThatNameTheServer: the path comes as it was sent, and the authority is
// the host.
func TestTargetsThatNameTheServer(t *testing.T) {
	variants(t, testOptions, func(t *testing.T, o Options) {
		rec := new(recorder)
		addr, _ := ours(t, rec, o)
		for target, want := range map[string]string{
			"http://other/a": "/a", "http://other": "/", "http://other/": "/", "http://other?q=1": "/?q=1", "http://other//a/%2Fb;c/../d?x=%zz": "//a/%2Fb;c/../d?x=%zz",
			"HTTP://other:81/a": "/a", "https://other/a?http://b/c": "/a?http://b/c",
		} {
			for _, raw := range []string{get(target), post(target, "body"), get("/before") + get(target), "GET " + target + " HTTP/1.0\r\n\r\n"} {
				rec.saw = nil
				_ = talk(t, addr, raw)
				all := rec.all()
				if len(all) == 0 {
					t.Errorf("%q: not served", raw)
					continue
				}
				path, query, _ := strings.Cut(want, "?")
				if got := all[len(all)-1]; got.URI != want || got.URL.Scheme != "" || got.URL.Host != "" || got.URL.EscapedPath() != path || got.URL.RawQuery != query || !strings.HasPrefix(got.Host, "other") {
					t.Errorf("%q: %+v", raw, got)
				}
			}
		}
	})
}

// TestLineEndsBeforeARequestAreDropped: a few of them, after any request and before the first.
func TestLineEndsBeforeARequestAreDropped(t *testing.T) {
	t.Parallel()
	addr, _ := ours(t, new(recorder), testOptions)
	for _, ends := range []string{"\r\n", "\n", "\r\n\r\n", "\n\n", "\r"} {
		for name, before := range map[string]string{"first": "", "GET": get("/a"), "POST": post("/a", "body"), "DELETE": "DELETE /a HTTP/1.1\r\nHost: h\r\n\r\n"} {
			for _, pieces := range [][]string{{before + ends + get("/b")}, {before + ends, get("/b")}, {before, ends + get("/b")}, {before, ends, get("/b")}} {
				got := string(talk(t, addr, pieces...))
				want := 2
				if before == "" {
					want = 1
				}
				if !strings.HasSuffix(got, "GET /b") || strings.Count(got, "HTTP/1.1 200 OK") != want {
					t.Errorf("%s, %q in %d pieces: %q", name, ends, len(pieces), got)
				}
			}
			// They are no request.
			got := string(talk(t, addr, before+ends))
			if strings.Count(got, "HTTP/1.1") != btoi(before != "") {
				t.Errorf("%s, %q alone: %q", name, ends, got)
			}
		}
	}
	if got := string(talk(t, addr, get("/a")+strings.Repeat("\r\n", 20)+get("/b"))); strings.Count(got, " 200 OK") != 1 || !strings.Contains(got, " 400 ") {
		t.Errorf("without an end: %q", got)
	}
}

package http1

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// serveHTTP2 runs a server for clients that begin HTTP/2 with its preface.
func serveHTTP2(t *testing.T, h http.Handler, o Options) (base string, client *http.Client) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(h, o)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	client = &http.Client{Transport: &http.Transport{Protocols: p}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		_ = s.Close()
		<-done
	})
	return "http://" + ln.Addr().String(), client
}

func TestHTTP2WithPriorKnowledgeIsServed(t *testing.T) {
	t.Parallel()
	for _, standard := range []bool{false, true} {
		left := make(chan error, 1)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/echo":
				raw, err := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %s %d %v", r.Proto, r.Header.Get("X-Sent"), len(raw), err)
			case "/stream":
				for i := range 3 {
					fmt.Fprintf(w, "%d\n", i)
					_ = http.NewResponseController(w).Flush()
				}
				<-r.Context().Done()
				left <- r.Context().Err()
			}
		})
		base, client := serveHTTP2(t, h, Options{Standard: standard, MaxHead: 64 << 10, HeadTime: 5 * time.Second, IdleTime: time.Minute, BodyTime: 5 * time.Second, WriteTime: 5 * time.Second})
		post := func(header string, body string) (*http.Response, string, error) {
			req, err := http.NewRequest("POST", base+"/echo", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("X-Sent", header)
			resp, err := client.Do(req)
			if err != nil {
				return nil, "", err
			}
			defer resp.Body.Close()
			raw, err := io.ReadAll(resp.Body)
			return resp, string(raw), err
		}
		for range 3 { // on one connection
			if resp, got, err := post("h", strings.Repeat("b", 3<<20)); err != nil || resp.ProtoMajor != 2 || got != fmt.Sprintf("HTTP/2.0 h %d <nil>", 3<<20) {
				t.Errorf("standard %t: %q %v", standard, got, err)
			}
		}
		if resp, _, err := post(strings.Repeat("h", 128<<10), ""); err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("standard %t: a head of 128 KB: %d", standard, resp.StatusCode)
		}
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "GET", base+"/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for i := range 3 {
			if !lines.Scan() || lines.Text() != fmt.Sprint(i) {
				t.Fatalf("standard %t: line %d: %q %v", standard, i, lines.Text(), lines.Err())
			}
		}
		cancel()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("standard %t: the handler ended with %v", standard, err)
		}
		_ = resp.Body.Close()
		plain, err := http.Post(base+"/echo", "text/plain", strings.NewReader("abc"))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(plain.Body)
		_ = plain.Body.Close()
		if plain.ProtoMajor != 1 || string(raw) != "HTTP/1.1  3 <nil>" {
			t.Errorf("standard %t: HTTP/1.1: %q", standard, raw)
		}
	}
}

// A body that stops coming ends its own request, and no other of the connection.
func TestABodyThatStopsEndsItsStreamAlone(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	})
	base, client := serveHTTP2(t, h, Options{MaxHead: 64 << 10, HeadTime: 5 * time.Second, IdleTime: time.Minute, BodyTime: 300 * time.Millisecond, WriteTime: 5 * time.Second})
	body, hold := io.Pipe()
	defer hold.Close()
	go func() { _, _ = hold.Write([]byte("begun")) }()
	req, err := http.NewRequest("POST", base+"/", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("%d", resp.StatusCode)
	}
	again, err := client.Post(base+"/", "text/plain", strings.NewReader("whole"))
	if err != nil || again.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", again, err)
	}
	_ = again.Body.Close()
}

// TestHandlersSeeOneTarget: a target in absolute form is that in origin form, in every protocol,
// so that nothing is decided by one and done by the other.
func TestHandlersSeeOneTarget(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen <- fmt.Sprint(r.RequestURI, " ", r.URL.EscapedPath(), " ", r.URL.RawQuery, " ", r.URL.Host, r.URL.Scheme)
	})
	for target, want := range map[string]string{
		"/a%2Fb/../c?d=e":                  "/a%2Fb/../c?d=e /a%2Fb/../c d=e ",
		"http://other.example/a%2Fb?d=e":   "/a%2Fb?d=e /a%2Fb d=e ",
		"https://u:p@other.example//a/./b": "//a/./b //a/./b  ",
		"http://other.example":             "/ /  ",
		"http://other.example?d=e":         "/?d=e / d=e ",
	} {
		for _, standard := range []bool{false, true} {
			base, _ := serveHTTP2(t, h, Options{Standard: standard})
			address := strings.TrimPrefix(base, "http://")
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: gateway.example\r\nConnection: close\r\n\r\n", target)
			if got := <-seen; got != want {
				t.Errorf("HTTP/1.1, standard %t: %s: %q, want %q", standard, target, got, want)
			}
			_ = conn.Close()
			sendTarget(t, address, target)
			if got := <-seen; got != want {
				t.Errorf("HTTP/2, standard %t: %s: %q, want %q", standard, target, got, want)
			}
		}
	}
}

// sendTarget sends a request of HTTP/2 with any target.
func sendTarget(t *testing.T, address, target string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var block strings.Builder
	enc := hpack.NewEncoder(&block)
	for _, field := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "gateway.example"}, {":path", target}} {
		_ = enc.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	_, err = io.WriteString(conn, http2.ClientPreface)
	f := http2.NewFramer(conn, conn)
	err = errors.Join(err, f.WriteSettings(), f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndStream: true, EndHeaders: true}))
	if err != nil {
		t.Fatal(err)
	}
}

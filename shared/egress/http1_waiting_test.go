package egress

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestWaitingForTheHostIsReported: the callback is called before each wait for the host, and only
// then; the next request on the connection does not call it.
func TestWaitingForTheHostIsReported(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("secure ", secure), func(t *testing.T) {
			goOn := make(chan struct{}, 1)
			next := func() bool {
				select {
				case <-goOn:
					return true
				case <-time.After(time.Minute):
					return false // no notification: the reader waits forever
				}
			}
			s := script(t, secure, func(c net.Conn, r *bufio.Reader, _ int) {
				for {
					if _, _, ok := request(r); !ok {
						return
					}
					_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
					for _, part := range []string{"1\r\nb\r\n1\r\nc\r\n", "1\r\nd\r\n0\r\n\r\n"} {
						if !next() {
							return
						}
						_, _ = io.WriteString(c, part)
					}
				}
			})
			p := mustAllow(t, "127.0.0.0/8")
			p.RootCAs = authority()
			tr := NewHTTP1(p)
			defer tr.CloseIdleConnections()

			var read, seen []string
			waiting := func() {
				seen = append(seen, fmt.Sprint(read))
				goOn <- struct{}{}
			}
			resp := answered(t, tr, s.url)
			if !BeforeWaiting(resp.Body, waiting) {
				t.Skip("sockets cannot be looked at here")
			}
			b := make([]byte, 1)
			for {
				n, err := resp.Body.Read(b)
				read = append(read, string(b[:n]))
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			resp.Body.Close()
			if want := []string{"[a]", "[a b c]"}; !slices.Equal(seen, want) {
				t.Errorf("told after %v, want %v", seen, want)
			}

			again := answered(t, tr, s.url)
			goOn <- struct{}{}
			go func() { goOn <- struct{}{} }()
			if body, err := io.ReadAll(again.Body); err != nil || string(body) != "abcd" {
				t.Errorf("%q, %v", body, err)
			}
			if n := s.conns.Load(); n != 1 || len(seen) != 2 {
				t.Errorf("%d connections; told %v", n, seen)
			}
		})
	}
}

func answered(t *testing.T, tr http.RoundTripper, url string) *http.Response {
	t.Helper()
	resp, err := tr.RoundTrip(newRequest(http.MethodGet, url, nil))
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

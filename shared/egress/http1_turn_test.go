package egress

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAHostThatRespondsFirstIsRead: a host that is too busy answers and closes its side
// before it gets a request; after the request nothing more comes.
func TestAHostThatRespondsFirstIsRead(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		if !c.strict {
			return // net/http may take it for garbage
		}
		done := make(chan struct{})
		defer close(done)
		s := script(t, c.secure, func(conn net.Conn, _ *bufio.Reader, _ int) {
			io.WriteString(conn, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy")
			if tcp, ok := conn.(*net.TCPConn); ok {
				tcp.CloseWrite()
			}
			<-done
		})
		for range 20 {
			resp, body, err := call(c, newRequest("POST", s.url, []byte("x")))
			if err != nil || resp.StatusCode != 503 || body != "busy" {
				t.Fatalf("%v %q %v", resp, body, err)
			}
		}
	})
}

// TestAllStaleConnectionsArePassedOver: connections that were closed, and connections that
// sent something while idle, in any number; a request that must not be repeated is sent
// once.
func TestAllStaleConnectionsArePassedOver(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		if !c.strict {
			return // net/http learns it in a separate goroutine, too late now and then
		}
		const idle = 8
		var all, spoil sync.WaitGroup
		all.Add(idle)
		spoil.Add(idle)
		spoilt := make(chan struct{})
		s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
			if _, _, ok := request(r); !ok {
				return
			}
			if n > idle {
				for ok := true; ok; _, _, ok = request(r) {
					io.WriteString(conn, answer)
				}
				return
			}
			all.Done()
			all.Wait() // so that each request has a separate connection
			io.WriteString(conn, answer)
			<-spoilt
			if n%2 == 0 {
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfalse")
			} else {
				conn.Close()
			}
			spoil.Done()
			if _, _, ok := request(r); ok {
				t.Error("a stale connection was used")
			}
		})
		var requested sync.WaitGroup
		for range idle {
			requested.Go(func() {
				if _, body, err := call(c, newRequest("POST", s.url, []byte("x"))); err != nil || body != "ok" {
					t.Errorf("%q, %v", body, err)
				}
			})
		}
		requested.Wait()
		close(spoilt)
		spoil.Wait()
		for range 3 {
			if _, body, err := call(c, newRequest("POST", s.url, []byte("x"))); err != nil || body != "ok" {
				t.Errorf("%q, %v", body, err)
			}
		}
		if n := s.conns.Load(); n != idle+1 {
			t.Errorf("%d connections, want %d", n, idle+1)
		}
	})
}

// TestAnAnswerInPieces: a response arrives completely, however often a read returns little, on
// a connection that is reused repeatedly.
func TestAnAnswerInPieces(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, _ int) {
			for {
				_, body, ok := request(r)
				if !ok {
					return
				}
				raw := "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: " + string(body) + "\r\n\r\n" + strings.Repeat("y", len(body)+6)
				for i := range len(raw) {
					if i%9 == 0 {
						time.Sleep(100 * time.Microsecond) // so that most pieces come alone; nothing depends on it
					}
					io.WriteString(conn, raw[i:i+1])
				}
			}
		})
		for range 5 {
			resp, body, err := call(c, newRequest("POST", s.url, []byte("7")))
			if err != nil || resp.StatusCode != http.StatusOK || body != "yyyyyyy" {
				t.Fatalf("%v %q %v", resp, body, err)
			}
		}
		if n := s.conns.Load(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

package egress

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// TestAStaleConnectionIsNotNoticedByCallers: a host ends a connection after a complete
// response, by a FIN or a reset, immediately or while it is idle.
func TestAStaleConnectionIsNotNoticedByCallers(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		if !c.strict {
			t.Skip("net/http does not repeat a POST")
		}
		for _, reset := range []bool{false, true} {
			for _, used := range []int{1, 3} {
				body := bytes.Repeat([]byte("x"), 1+(used-1)*100_000)
				for _, idle := range []bool{false, true} {
					s := script(t, c.secure, func(conn net.Conn, r *bufio.Reader, n int) {
						for range used {
							if _, _, ok := request(r); !ok {
								return
							}
							_, _ = io.WriteString(conn, answer)
						}
						if tcp, ok := conn.(*net.TCPConn); ok && reset {
							_ = tcp.SetLinger(0)
						}
						if idle {
							time.Sleep(5 * time.Millisecond)
						}
					})
					for i := range 6 {
						if idle {
							time.Sleep(10 * time.Millisecond)
						}
						if _, _, err := call(c, newRequest("POST", s.url, body)); err != nil {
							t.Errorf("reset %v, used %d, idle %v: request %d: %v", reset, used, idle, i, err)
						}
					}
				}
			}
		}
	})
}

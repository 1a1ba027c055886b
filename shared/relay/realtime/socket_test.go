package realtime

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/relay/session"
)

// still is a desk that allows everything.
type still struct{}

func (still) Reserve(*session.ResponseLimits) (session.Reservation, error) { return nil, nil }
func (still) ChargeLate(*realtime.Done, []byte)                            {}
func (still) ChargeTranscript(*realtime.Transcript, string, []byte)        {}
func (still) Names([]byte) error                                           { return nil }
func (still) RecordHandle(string) error                                    { return nil }
func (still) Allows(string) error                                          { return nil }
func (still) Check() error                                                 { return nil }
func (still) Fail(string, error)                                           {}

// echoing is a provider that echoes its input.
func echoing(tb testing.TB) *httptest.Server {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ws, err := (&websocket.Upgrader{}).Upgrade(w, req, nil)
		if err != nil {
			return
		}
		defer ws.Close()
		for {
			kind, p, err := ws.ReadMessage()
			if err != nil || ws.WriteMessage(kind, p) != nil {
				return
			}
		}
	}))
	tb.Cleanup(s.Close)
	return s
}

// between is a gateway that holds sessions with a provider.
func between(tb testing.TB, provider string) *httptest.Server {
	tb.Helper()
	u, err := url.Parse(provider)
	if err != nil {
		tb.Fatal(err)
	}
	out := egress.NewDialer(egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	var open sync.WaitGroup
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		open.Add(1)
		defer open.Done()
		far, _, err := SocketMaker{}.Dial(req.Context(), &session.Address{URL: u, Header: http.Header{}, Dialer: out})
		if err != nil || far == nil {
			tb.Errorf("%v", err)
			return
		}
		near, err := SocketMaker{}.Accept(w, req, "", http.Header{})
		if err != nil {
			tb.Error(err)
			return
		}
		(&session.Session{Client: near, Provider: far, Controller: still{}, Times: session.DefaultTimes, Memory: egress.NewMemory(0)}).Run(context.WithoutCancel(req.Context()))
	}))
	tb.Cleanup(func() { s.Close(); open.Wait() })
	return s
}

func dial(tb testing.TB, address string) *websocket.Conn {
	tb.Helper()
	ws, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(address, "http"), nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = ws.Close() })
	return ws
}

// event is one of so many bytes.
func event(n int) []byte {
	return fmt.Appendf(nil, `{"type":"input_audio_buffer.append","audio":"%s"}`, strings.Repeat("A", n-48))
}

func roundTrip(tb testing.TB, ws *websocket.Conn, p []byte) {
	if err := ws.WriteMessage(websocket.TextMessage, p); err != nil {
		tb.Fatal(err)
	}
	if _, got, err := ws.ReadMessage(); err != nil || len(got) != len(p) {
		tb.Fatalf("%d bytes of %d: %v", len(got), len(p), err)
	}
}

// Messages of every size up to the limit are returned unchanged.
func TestMessagesOfEverySize(t *testing.T) {
	t.Parallel()
	ws := dial(t, between(t, echoing(t).URL).URL)
	for _, n := range []int{64, 125 + 48, 1 << 10, 4 << 10, 64<<10 - 1, 64 << 10, 300 << 10, 15 << 20} {
		roundTrip(t, ws, event(n))
	}
}

// sending is a provider that sends bytes after the handshake, together with it or a byte at a
// time, and reports the code with which it was closed.
func sending(tb testing.TB, sent string, together bool, code chan<- int) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		conn, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			tb.Error(err)
			return
		}
		defer conn.Close()
		sum := sha1.Sum([]byte(req.Header.Get("Sec-Websocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		head := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
		if together {
			_, _ = conn.Write([]byte(head + sent)) // the reader sees an error as well
		} else {
			for _, c := range []byte(head + sent) {
				_, _ = conn.Write([]byte{c})
			}
		}
		got, told := make([]byte, 8), 0
		if _, err := io.ReadFull(b, got); err == nil && got[0] == 0x88 {
			told = int(got[6]^got[2])<<8 | int(got[7]^got[3])
		}
		code <- told
	}))
	tb.Cleanup(s.Close)
	return s
}

// A provider that violates the WebSocket protocol gets the reason; its client gets one that
// blames the provider.
func TestFramesOfProvidersThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bytes string
		code  int
	}{
		"a mask":                       {"\x81\x82\x00\x00\x00\x00{}", 1002},
		"a reserved bit":               {"\xc1\x02{}", 1002},
		"a ping in pieces":             {"\x09\x00", 1002},
		"a long ping":                  {"\x89\x7e\x00\x7e" + strings.Repeat("x", 126), 1002},
		"a continuation of none":       {"\x80\x00", 1002},
		"a length beyond all":          {"\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 1002},
		"a long length":                {"\x81\x7e\x00\x02{}", 1002},
		"a longer one":                 {"\x81\x02{}\x81\x7f\x00\x00\x00\x00\x00\x00\x01\x00", 1002},
		"a close of one byte":          {"\x88\x01x", 1002},
		"a close with a bad code":      {"\x88\x02\x03\xed", 1002},
		"a close that is not a string": {"\x88\x04\x03\xe8\xff\xff", 1007},
	} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, at once %v", name, together), func(t *testing.T) {
				t.Parallel()
				code := make(chan int, 1)
				ws := dial(t, between(t, sending(t, c.bytes, together, code).URL).URL)
				var err error
				for err == nil {
					_, _, err = ws.ReadMessage()
				}
				if !websocket.IsCloseError(err, session.ServerError) {
					t.Errorf("the client: %v", err)
				}
				if got := <-code; got != c.code {
					t.Errorf("the provider was told %d, not %d", got, c.code)
				}
			})
		}
	}
}

// pour writes until the peer stops reading for a while, and returns the number of bytes written.
func pour(ws *websocket.Conn) (n int) {
	p := event(64 << 10)
	for n < 1<<30 {
		_ = ws.SetWriteDeadline(time.Now().Add(time.Second))
		if ws.WriteMessage(websocket.TextMessage, p) != nil {
			break
		}
		n += len(p)
	}
	return n
}

// drain reads to the end of a connection, and returns the number of bytes.
func drain(ws *websocket.Conn) (n int) {
	for {
		_, p, err := ws.ReadMessage()
		if err != nil {
			return n
		}
		n += len(p)
	}
}

// A side that reads nothing blocks the other one; once it reads, it gets all messages
// completely.
func TestASlowSideHoldsTheOtherBack(t *testing.T) {
	t.Parallel()
	const mostHeld = 64 << 20 // of which the system's own buffers are the most
	for name, down := range map[string]bool{"the client reads nothing": true, "the provider reads nothing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			poured, drained := make(chan int, 1), make(chan int, 1)
			provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				ws, err := (&websocket.Upgrader{}).Upgrade(w, req, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer ws.Close()
				if down {
					poured <- pour(ws)
				} else {
					n := <-poured
					drained <- drain(ws)
					poured <- n
				}
			}))
			t.Cleanup(provider.Close)
			ws := dial(t, between(t, provider.URL).URL)
			if down {
				n := <-poured
				if got := drain(ws); got < n || n >= mostHeld {
					t.Errorf("%d bytes were taken, and %d came", n, got)
				}
				return
			}
			n := pour(ws)
			_ = ws.Close()
			poured <- n
			if got := <-drained; got < n || n >= mostHeld {
				t.Errorf("%d bytes were taken, and %d came", n, got)
			}
		})
	}
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails for oneself
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEvent measures the cost of a kilobyte in both directions: through a session, and
// directly, which is the part of client and provider. Half of the difference is one direction.
func BenchmarkEvent(b *testing.B) {
	provider := echoing(b)
	for name, address := range map[string]string{"direct": provider.URL, "session": between(b, provider.URL).URL} {
		b.Run(name, func(b *testing.B) {
			ws, p := dial(b, address), event(1<<10)
			roundTrip(b, ws, p)
			began := cpu()
			for b.Loop() {
				roundTrip(b, ws, p)
			}
			b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(b.N)/1000, "cpu-us/op")
		})
	}
}

// BenchmarkIdle is the memory of sessions that say nothing, together with their clients and
// provider; and, for comparison, of clients and provider alone.
func BenchmarkIdle(b *testing.B) {
	const n = 1000
	for name, through := range map[string]bool{"direct": false, "session": true} {
		b.Run(name, func(b *testing.B) {
			provider := echoing(b)
			address := provider.URL
			if through {
				address = between(b, address).URL
			}
			held := func() float64 {
				runtime.GC()
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				return float64(m.HeapInuse+m.StackInuse) / (1 << 20)
			}
			before := held()
			for range n {
				roundTrip(b, dial(b, address), event(1<<10))
			}
			b.ReportMetric(held()-before, "MiB/1000")
		})
	}
}

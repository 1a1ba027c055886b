package socket

import (
	"context"
	"fmt"
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

// still is a desk that lets everything pass.
type still struct{}

func (still) Begin(*session.Wanted) (session.Turn, error) { return nil, nil }
func (still) Late(*realtime.Done, []byte)                 {}
func (still) Heard(*realtime.Transcript, string, []byte)  {}
func (still) Allows(string) error                         { return nil }
func (still) Check() error                                { return nil }
func (still) Fail(string, error)                          {}

// echoing is a provider that says again what it is told.
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
		far, _, err := Maker{}.Dial(req.Context(), &session.Address{URL: u, Header: http.Header{}, Dialer: out})
		if err != nil || far == nil {
			tb.Errorf("%v", err)
			return
		}
		near, err := Maker{}.Accept(w, req, "", http.Header{})
		if err != nil {
			tb.Error(err)
			return
		}
		(&session.Session{Near: near, Far: far, Desk: still{}, Times: session.Standard, Memory: egress.NewMemory(0)}).Run(context.WithoutCancel(req.Context()))
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

// Messages of every size come back as they went, up to the bound.
func TestMessagesOfEverySize(t *testing.T) {
	t.Parallel()
	ws := dial(t, between(t, echoing(t).URL).URL)
	for _, n := range []int{64, 125 + 48, 1 << 10, 4 << 10, 64<<10 - 1, 64 << 10, 300 << 10, 15 << 20} {
		roundTrip(t, ws, event(n))
	}
}

// pour writes until nothing more is taken for a while, and tells how much was.
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

// drain reads to the end of a connection, and tells how much came.
func drain(ws *websocket.Conn) (n int) {
	for {
		_, p, err := ws.ReadMessage()
		if err != nil {
			return n
		}
		n += len(p)
	}
}

// A side that reads nothing holds the other one back; what it had taken comes whole, once
// it reads.
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

// BenchmarkEvent is what a kilobyte costs to and fro: by way of a session and, as what
// client and provider themselves take, directly. Half of the difference is one way.
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

// BenchmarkIdle is the memory of sessions that say nothing, with those of their clients
// and of the provider, and, for comparison, of those alone.
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

package egress

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// How a request may end that meets an attack.
const (
	endsWell  = "answered" // as if nothing had been
	failed    = "failed"
	eitherWay = "either way"
)

// attacks are responses of a hostile host over HTTP/2. None may use much memory, prevent the
// request from ending, or leak anything. If the protocol has only one correct outcome, the test
// requires it.
var attacks = []struct {
	name, ends string
	do         func(c *hostileConn, id uint32)
}{
	{"resets of the stream", eitherWay, func(c *hostileConn, id uint32) {
		flood(20_000, func(int) error { return c.WriteRSTStream(id, http2.ErrCodeRefusedStream) })
	}},
	{"a reset behind the head", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		flood(1000, func(int) error { return c.WriteRSTStream(id, http2.ErrCodeInternal) })
	}},
	{"resets of streams that never were", eitherWay, func(c *hostileConn, id uint32) {
		flood(20_000, func(i int) error { return c.WriteRSTStream(id+2+2*uint32(i), http2.ErrCodeCancel) })
		c.answer(id, "fine")
	}},
	{"going away in the middle, gently", endsWell, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		_ = c.WriteData(id, false, []byte("fi"))
		_ = c.WriteGoAway(id, http2.ErrCodeNo, nil)
		_ = c.WriteData(id, true, []byte("ne"))
	}},
	{"going away in the middle, with an error", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		_ = c.WriteData(id, false, []byte("fi"))
		_ = c.WriteGoAway(0, http2.ErrCodeInternal, []byte("secret"))
		_ = c.Conn.Close()
	}},
	{"going away before the head", eitherWay, func(c *hostileConn, id uint32) { // the request may be repeated elsewhere
		_ = c.WriteGoAway(0, http2.ErrCodeNo, nil)
	}},
	{"going away for ever", eitherWay, func(c *hostileConn, id uint32) {
		flood(2000, func(int) error { return c.WriteGoAway(id, http2.ErrCodeNo, make([]byte, 16<<10)) })
		c.answer(id, "fine")
	}},
	{"a window of 0 in flight", endsWell, func(c *hostileConn, id uint32) {
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		_ = c.WriteWindowUpdate(0, 1<<20)
		c.answer(id, "fine")
	}},
	{"a window out of range", failed, func(c *hostileConn, id uint32) {
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 31})
	}},
	{"a huge table of headers", endsWell, func(c *hostileConn, id uint32) {
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 1<<32 - 1})
		c.answer(id, "fine")
	}},
	{"a table of headers beyond what was agreed", failed, func(c *hostileConn, id uint32) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: []byte{0x3f, 0xff, 0xff, 0xff, 0x7f, 0x88}, EndHeaders: true})
	}},
	{"frames as large as a frame can be", endsWell, func(c *hostileConn, id uint32) {
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1<<24 - 1})
		c.answer(id, "fine")
	}},
	{"a frame larger than was agreed", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		_ = c.WriteData(id, true, make([]byte, 4<<20))
	}},
	{"continuations", failed, func(c *hostileConn, id uint32) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields(":status", "200")})
		line := bytes.Repeat(literal("x", strings.Repeat("v", 1000)), 15)
		flood(10_000, func(int) error { return c.WriteContinuation(id, false, line) })
	}},
	{"empty continuations", failed, func(c *hostileConn, id uint32) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields(":status", "200")})
		flood(100_000, func(int) error { return c.WriteContinuation(id, false, nil) })
		_ = c.Conn.Close()
	}},
	{"another frame within a head", failed, func(c *hostileConn, id uint32) {
		_ = c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields(":status", "200")})
		_ = c.WriteData(id, true, []byte("fine"))
	}},
	{"a head of many fields", failed, func(c *hostileConn, id uint32) {
		block := c.fields(":status", "200")
		for range 200_000 {
			block = append(block, literal("x", "y")...)
		}
		c.blocks(id, block)
	}},
	{"a bomb of indexed fields", failed, func(c *hostileConn, id uint32) {
		block := append(c.fields(":status", "200"), 0x40, 1, 'x')
		block = append(append(block, length(3000)...), strings.Repeat("v", 3000)...)
		block = append(block, bytes.Repeat([]byte{0xbe}, 1<<20)...) // each a field of 3,000 bytes
		c.blocks(id, block)
	}},
	{"a string of Huffman's code for ever", failed, func(c *hostileConn, id uint32) {
		block := append(c.fields(":status", "200"), 0, 1, 'x', 0xff)
		block = append(block, 0x80, 0x80, 0x80, 0x40) // a length of 128 MiB
		c.blocks(id, append(block, bytes.Repeat([]byte{0x18}, 1<<20)...))
		_ = c.Conn.Close()
	}},
	{"no fields that can be read", failed, func(c *hostileConn, id uint32) { c.blocks(id, bytes.Repeat([]byte{0xff}, 20)) }},
	{"padding", endsWell, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		pad := make([]byte, 255)
		flood(20_000, func(int) error { return c.WriteDataPadded(id, false, nil, pad) })
		_ = c.WriteData(id, true, []byte("fine"))
	}},
	{"empty data", endsWell, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		flood(20_000, func(int) error { return c.WriteData(id, false, nil) })
		_ = c.WriteData(id, true, []byte("fine"))
	}},
	{"pings", endsWell, func(c *hostileConn, id uint32) {
		flood(20_000, func(i int) error { return c.WritePing(false, [8]byte{byte(i)}) })
		c.answer(id, "fine")
	}},
	{"answers to pings that nobody sent", endsWell, func(c *hostileConn, id uint32) {
		flood(20_000, func(i int) error { return c.WritePing(true, [8]byte{byte(i)}) })
		c.answer(id, "fine")
	}},
	{"settings", endsWell, func(c *hostileConn, id uint32) {
		flood(10_000, func(i int) error {
			return c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16<<10 + uint32(i%2)})
		})
		c.answer(id, "fine")
	}},
	{"settings that nobody knows", endsWell, func(c *hostileConn, id uint32) {
		flood(1000, func(i int) error { return c.WriteSettings(http2.Setting{ID: http2.SettingID(100 + i), Val: 1}) })
		c.answer(id, "fine")
	}},
	{"windows", endsWell, func(c *hostileConn, id uint32) {
		flood(20_000, func(int) error { return c.WriteWindowUpdate(0, 1) })
		c.answer(id, "fine")
	}},
	{"a window that runs over", failed, func(c *hostileConn, id uint32) {
		flood(3, func(int) error { return c.WriteWindowUpdate(0, 1<<31-1) })
	}},
	{"priorities and frames that nobody knows", endsWell, func(c *hostileConn, id uint32) {
		flood(10_000, func(int) error { return c.WritePriority(id, http2.PriorityParam{StreamDep: id + 2, Weight: 1}) })
		flood(10_000, func(int) error { return c.WriteRawFrame(0xee, 0, id, []byte("secret")) })
		c.answer(id, "fine")
	}},
	{"data behind the end", eitherWay, func(c *hostileConn, id uint32) {
		c.answer(id, "fine")
		flood(1000, func(int) error { return c.WriteData(id, false, make([]byte, 10_000)) })
	}},
	{"data of a stream that never was", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		flood(10, func(int) error { return c.WriteData(id+100, false, []byte("secret")) })
	}},
	{"data before the head", failed, func(c *hostileConn, id uint32) { _ = c.WriteData(id, true, []byte("fine")) }},
	{"more data than there are windows", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		piece := make([]byte, 16<<10)
		flood(64<<10, func(int) error { return c.WriteData(id, false, piece) })
		_ = c.Conn.Close()
	}},
	{"a length that is too long", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200", "content-length", "100")
		_ = c.WriteData(id, true, []byte("fine"))
	}},
	{"a length that is too short", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200", "content-length", "2")
		_ = c.WriteData(id, true, []byte("fine"))
	}},
	{"a length of a head alone", failed, func(c *hostileConn, id uint32) { _ = c.head(id, true, ":status", "200", "content-length", "2") }},
	{"trailers", endsWell, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200", "trailer", "x-end")
		_ = c.WriteData(id, false, []byte("fine"))
		_ = c.head(id, true, "x-end", "1")
	}},
	{"trailers without an end", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		_ = c.head(id, false, "x-end", "1")
	}},
	{"a second status behind the data", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		_ = c.WriteData(id, false, []byte("fine"))
		_ = c.head(id, true, ":status", "200")
	}},
	{"a bomb of trailers", failed, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "200")
		_ = c.WriteData(id, false, []byte("fine"))
		block := append([]byte{0x40, 1, 'x'}, length(3000)...)
		c.blocks(id, append(append(block, strings.Repeat("v", 3000)...), bytes.Repeat([]byte{0xbe}, 1<<20)...))
	}},
	{"heads that are none yet", failed, func(c *hostileConn, id uint32) {
		flood(20_000, func(int) error { return c.head(id, false, ":status", "103", "link", "</x>") })
	}},
	{"switching protocols", eitherWay, func(c *hostileConn, id uint32) {
		_ = c.head(id, false, ":status", "101")
		c.answer(id, "fine")
	}},
	{"no status", failed, func(c *hostileConn, id uint32) { _ = c.head(id, true, "x", "y") }},
	{"a status that is none", failed, func(c *hostileConn, id uint32) { _ = c.head(id, true, ":status", "twelve") }},
	{"a request's fields", failed, func(c *hostileConn, id uint32) { _ = c.head(id, true, ":status", "200", ":path", "/") }},
	{"a push", failed, func(c *hostileConn, id uint32) {
		_ = c.WritePushPromise(http2.PushPromiseParam{StreamID: id, PromiseID: 2, EndHeaders: true,
			BlockFragment: c.fields(":method", "GET", ":path", "/", ":scheme", "https", ":authority", "x")})
	}},
	{"pushes are allowed by the host", failed, func(c *hostileConn, id uint32) {
		_ = c.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 1})
		_ = c.Conn.Close()
	}},
	{"settings of the wrong length", failed, func(c *hostileConn, id uint32) { _ = c.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5)) }},
	{"a head of no stream", failed, func(c *hostileConn, id uint32) {
		_ = c.WriteRawFrame(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, c.fields(":status", "200"))
	}},
	{"no protocol at all", failed, func(c *hostileConn, id uint32) {
		_, _ = c.Conn.Write(bytes.Repeat([]byte("HTTP/1.1 200 OK\r\n\r\n"), 100))
		_ = c.Conn.Close()
	}},
	{"silence", failed, func(*hostileConn, uint32) {}},
	{"silence behind the head", failed, func(c *hostileConn, id uint32) { _ = c.head(id, false, ":status", "200") }},
	{"pings for ever and no answer", failed, func(c *hostileConn, id uint32) {
		flood(50_000, func(i int) error { return c.WritePing(false, [8]byte{byte(i)}) })
	}},
}

// blocks writes a head in as many frames as it takes.
func (c *hostileConn) blocks(id uint32, block []byte) {
	n := min(len(block), 16<<10)
	err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block[:n], EndHeaders: n == len(block), EndStream: true})
	for block = block[n:]; err == nil && len(block) > 0; block = block[n:] {
		n = min(len(block), 16<<10)
		err = c.WriteContinuation(id, n == len(block), block[:n])
	}
}

// mostOfAnAttack bounds what an attack may add to the heap, in bytes, the host's own
// side with it.
const mostOfAnAttack = 64 << 20

// In a row: it counts this process's memory and goroutines.
func TestHostileAnswersOverHTTP2(t *testing.T) {
	log.SetOutput(io.Discard) // of what the engine says of frames
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	h := newHostileHost(t)
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = h.roots
	before := runtime.NumGoroutine()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			tr := NewHTTP1(p)
			tr.offers.set(h.addr, onlyHTTP2)
			h.attack.Store(&a.do)
			// Silence ends with the patience of the request, like everything else.
			patience := 3 * time.Minute
			if strings.HasPrefix(a.name, "silence") || strings.HasSuffix(a.name, "no answer") {
				patience = 500 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			peak := watchHeap()
			resp, body, err := call(client{tr: tr}, newRequest("POST", "https://"+h.addr, make([]byte, 100<<10)).WithContext(ctx))
			grown := peak()
			waited := ctx.Err() != nil
			cancel()
			switch {
			case err == nil && (body != "fine" || resp.StatusCode != http.StatusOK):
				t.Errorf("answered %q", body)
			case err == nil && a.ends == failed, err != nil && a.ends == endsWell:
				t.Errorf("%q, %v; want it %s", body, err, a.ends)
			case waited && patience > time.Minute:
				t.Errorf("it ended with the patience of the request only: %v", err)
			case err != nil && strings.Contains(err.Error(), "secret"):
				t.Errorf("the error quotes the host: %v", err)
			}
			if grown > mostOfAnAttack {
				t.Errorf("%d MiB of memory", grown>>20)
			}
			h.attack.Store(nil)
			// The next requests are served, on that connection or another one.
			for range 3 {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				if _, body, err := call(client{tr: tr}, newRequest("POST", "https://"+h.addr, []byte("x")).WithContext(ctx)); err != nil || body != "fine" {
					t.Errorf("afterwards: %q, %v", body, err)
				}
				cancel()
			}
			tr.CloseIdleConnections()
			eventually(t, "no connection is left", func() bool { tr.CloseIdleConnections(); return h.conns.Load() == 0 })
			tr.streams.mu.Lock()
			hosts := len(tr.streams.hosts)
			tr.streams.mu.Unlock()
			if hosts > 0 {
				t.Errorf("%d hosts are kept", hosts)
			}
		})
	}
	eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// A host that takes no stream, or one at a time, from the start or later.
func TestHostsThatTakeFewStreams(t *testing.T) {
	h := newHostileHost(t)
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = h.roots
	for _, streams := range []uint32{0, 1} {
		tr := NewHTTP1(p)
		tr.offers.set(h.addr, onlyHTTP2)
		h.settings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: streams})
		h.most.Store(0)
		for range 5 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			_, body, err := call(client{tr: tr}, newRequest("POST", "https://"+h.addr, []byte("x")).WithContext(ctx))
			if ctx.Err() != nil || streams == 0 && err == nil || streams == 1 && (err != nil || body != "fine") {
				t.Errorf("%d streams: %q, %v", streams, body, err)
			}
			cancel()
		}
		if n := h.most.Load(); n > 5 {
			t.Errorf("%d connections to a host that takes %d streams", n, streams)
		}
		tr.CloseIdleConnections()
		eventually(t, "no connection is left", func() bool { tr.CloseIdleConnections(); return h.conns.Load() == 0 })
	}
}

// watchHeap returns by how much the heap has grown at most.
func watchHeap() (peak func() int64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	base, most, stop, done := m.HeapAlloc, uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-done
		return int64(most) - int64(base)
	}
}

// What a host says it has not processed is sent again. This finds errors of net/http that
// have no names, by their texts.
func TestUnprocessedStreamsAreSentAgain(t *testing.T) {
	h := newHostileHost(t)
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = h.roots
	for name, refuse := range map[string]func(c *hostileConn, id uint32){
		"refused":        func(c *hostileConn, id uint32) { _ = c.WriteRSTStream(id, http2.ErrCodeRefusedStream) },
		"the host left":  func(c *hostileConn, id uint32) { _ = c.WriteGoAway(0, http2.ErrCodeNo, nil) },
		"refused, twice": func(c *hostileConn, id uint32) { _ = c.WriteRSTStream(id, http2.ErrCodeRefusedStream) },
	} {
		for _, body := range [][]byte{nil, []byte("x"), make([]byte, 100<<10)} {
			tr := NewHTTP1(p)
			tr.offers.set(h.addr, onlyHTTP2)
			most := int64(1 + strings.Count(name, "twice"))
			var refused atomic.Int64
			var do func(c *hostileConn, id uint32)
			do = func(c *hostileConn, id uint32) { // one request of each attack meets it
				if refused.Add(1) < most {
					h.attack.Store(&do)
				}
				refuse(c, id)
			}
			h.attack.Store(&do)
			if _, got, err := call(client{tr: tr}, newRequest("POST", "https://"+h.addr, body)); err != nil || got != "fine" || refused.Load() != most {
				t.Errorf("%s, %d bytes: %q, %v after %d refusals", name, len(body), got, err, refused.Load())
			}
			tr.CloseIdleConnections()
		}
	}
}

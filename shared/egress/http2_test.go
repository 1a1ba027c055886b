package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// manyStreams is a host that offers both protocols and counts its connections. A
// request with Hold waits until it is let go.
func manyStreams(t testing.TB, streams int) (url string, roots *x509.CertPool, conns *atomic.Int64, held *atomic.Int64, release func()) {
	t.Helper()
	conns, held = new(atomic.Int64), new(atomic.Int64)
	gate := make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("Hold") != "" {
			held.Add(1)
			select {
			case <-gate:
			case <-r.Context().Done():
			}
		}
		_, _ = fmt.Fprintf(w, "%d %s", r.ProtoMajor, b)
	}))
	s.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	s.EnableHTTP2, s.Config.ErrorLog = true, discardLog
	s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			conns.Add(1)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	release = sync.OnceFunc(func() { close(gate) })
	t.Cleanup(release)
	return s.URL, roots, conns, held, release
}

func TestManyRequestsAtOnceShareConnections(t *testing.T) {
	t.Parallel()
	const burst, streams = 200, 50
	url, roots, conns, held, release := manyStreams(t, streams)
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = roots
	tr := NewHTTP1(p)
	defer tr.CloseIdleConnections()
	var wg sync.WaitGroup
	var protocols [3]atomic.Int64
	for i := range burst {
		wg.Go(func() {
			want := fmt.Sprint("body ", i)
			req := newRequest("POST", url, []byte(want))
			req.Header["Hold"] = []string{"1"}
			resp, body, err := call(client{tr: tr}, req)
			if err != nil || body != fmt.Sprintf("%d %s", resp.ProtoMajor, want) {
				t.Errorf("request %d: %q, %v", i, body, err)
				return
			}
			protocols[resp.ProtoMajor].Add(1)
		})
	}
	eventually(t, "all are under way", func() bool { return held.Load() == burst })
	release()
	wg.Wait()
	if n := conns.Load(); n > fewConns+2*burst/streams {
		t.Errorf("%d connections for %d requests", n, burst)
	}
	if protocols[2].Load() < burst-fewConns {
		t.Errorf("%d by HTTP/1.1, %d by HTTP/2", protocols[1].Load(), protocols[2].Load())
	}
	// One after the other they go by HTTP/1.1, which costs less.
	before := protocols[1].Load()
	for range 3 {
		resp, _, err := call(client{tr: tr}, newRequest("POST", url, []byte("x")))
		if err != nil {
			t.Fatal(err)
		}
		protocols[resp.ProtoMajor].Add(1)
	}
	if protocols[1].Load() != before+3 {
		t.Errorf("requests one after the other did not go by HTTP/1.1: %d, the host offers %d", protocols[1].Load()-before, tr.offers.of(strings.TrimPrefix(url, "https://")))
	}
	tr.CloseIdleConnections()
	eventually(t, "nothing is kept of idle hosts", func() bool {
		tr.streams.mu.Lock()
		defer tr.streams.mu.Unlock()
		return len(tr.streams.hosts) == 0
	})
}

func TestStreamsAreNotSharedBetweenTenants(t *testing.T) {
	t.Parallel()
	url, roots, conns, _, _ := manyStreams(t, 100)
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = roots
	tr := NewHTTP1(p)
	defer tr.CloseIdleConnections()
	tr.offers.set(strings.TrimPrefix(url, "https://"), onlyHTTP2)
	all := laned(t, url)
	for range 2 {
		for _, req := range all {
			req = req.Clone(req.Context())
			req.Body = NewBody([]byte("x"))
			if resp, body, err := call(client{tr: tr}, req); err != nil || body != "2 x" || resp.ProtoMajor != 2 {
				t.Fatalf("%q, %v", body, err)
			}
		}
	}
	if want := int64(len(all) - 1); conns.Load() != want {
		t.Errorf("%d connections for %d lanes", conns.Load(), want)
	}
}

func TestFailuresOfStreams(t *testing.T) {
	t.Parallel()
	mode := new(atomic.Pointer[string])
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch *mode.Load() {
		case "cut":
			_, _ = w.Write(bytes.Repeat([]byte("a"), 100))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "reset":
			panic(http.ErrAbortHandler)
		case "large head":
			w.Header().Set("X", strings.Repeat("secret", 64<<10))
		case "silent":
			<-r.Context().Done()
		case "short":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("secret"))
		}
	}))
	s.EnableHTTP2, s.Config.ErrorLog = true, discardLog
	s.StartTLS()
	t.Cleanup(s.Close)
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = x509.NewCertPool()
	p.RootCAs.AddCert(s.Certificate())
	own := NewHTTP1(p)
	own.offers.set(strings.TrimPrefix(s.URL, "https://"), onlyHTTP2)
	for name, tr := range map[string]Transport{"own": own, "net/http": New(p, Options{Standard: true})} {
		defer tr.CloseIdleConnections()
		for _, m := range []string{"cut", "reset", "large head", "silent", "short"} {
			mode.Store(&m)
			ctx, cancel := context.WithCancel(t.Context())
			if m == "silent" {
				cancel()
			}
			_, _, err := call(client{tr: tr}, newRequest("POST", s.URL, []byte("x")).WithContext(ctx))
			cancel()
			if err == nil || strings.Contains(err.Error(), "secret") || m == "silent" && !errors.Is(err, context.Canceled) {
				t.Errorf("%s, %s: %v", name, m, err)
			}
		}
		fine := "fine"
		mode.Store(&fine)
		if resp, _, err := call(client{tr: tr}, newRequest("POST", s.URL, []byte("x"))); err != nil || resp.ProtoMajor != 2 {
			t.Errorf("%s does not work any more: %v", name, err)
		}
	}
	s.Close()
	if _, _, err := call(client{tr: NewHTTP1(p)}, newRequest("POST", s.URL, []byte("x"))); err == nil {
		t.Error("a host that is gone answers")
	}
}

// BenchmarkColdBurst sends 400 requests concurrently over TLS on a transport that has no
// connection yet, by this package's transport and by net/http's.
func BenchmarkColdBurst(b *testing.B) {
	url, roots, _, _, _ := manyStreams(b, 250)
	p, err := ParseAllow("127.0.0.0/8")
	if err != nil {
		b.Fatal(err)
	}
	p.RootCAs = roots
	for name, make := range map[string]func() Transport{"own": func() Transport { return NewHTTP1(p) }, "net-http": func() Transport { return NewTransport(p) }} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				tr := make()
				var wg sync.WaitGroup
				for range 400 {
					wg.Go(func() {
						if _, _, err := call(client{tr: tr}, newRequest("POST", url, []byte("x"))); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
				tr.CloseIdleConnections()
			}
		})
	}
}

// No stream begins before the host has announced its limit.
func TestStreamsWaitForWhatTheHostTakes(t *testing.T) {
	t.Parallel()
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	announced := make(chan struct{}) // the host has announced it
	early := make(chan bool, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(c, c)
		streams := false
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if w, ok := frame.(*http2.WindowUpdateFrame); ok && w.StreamID == 0 { // the last of the client's own beginning
				select {
				case <-announced:
				default:
					// Whoever does not wait has sent by now, or does so soon.
					time.Sleep(20 * time.Millisecond)
					close(announced)
					_ = f.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1})
				}
			}
			if _, ok := frame.(*http2.HeadersFrame); ok {
				streams = true
			}
			if s, ok := frame.(*http2.SettingsFrame); ok && s.IsAck() {
				early <- streams
				return
			}
		}
	}()
	p := mustAllow(t, "127.0.0.0/8")
	p.RootCAs = x509.NewCertPool()
	p.RootCAs.AddCert(certificate.Certificate())
	tr := NewHTTP1(p)
	defer tr.CloseIdleConnections()
	tr.offers.set(ln.Addr().String(), onlyHTTP2)
	for range 5 {
		go func() { _, _, _ = call(client{tr: tr}, newRequest("POST", "https://"+ln.Addr().String(), []byte("x"))) }()
	}
	if <-early {
		t.Error("a stream began before the host had said what it takes")
	}
}

package egress

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// hostileHost speaks HTTP/2 frame by frame. It answers the first request of each attack
// badly, every other request correctly.
type hostileHost struct {
	addr   string
	roots  *x509.CertPool
	attack atomic.Pointer[func(*hostileConn, uint32)]
	conns  atomic.Int64 // open ones
	most   atomic.Int64 // connections since the attack began
	first  []http2.Setting
	mu     sync.Mutex
}

// hostileConn is one connection of it, for the goroutine that answers.
type hostileConn struct {
	*http2.Framer
	net.Conn
	block bytes.Buffer
	enc   *hpack.Encoder
}

func newHostileHost(t *testing.T) *hostileHost {
	t.Helper()
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	defer certificate.Close()
	ln, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certificate.TLS.Certificates, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	h := &hostileHost{addr: ln.Addr().String(), roots: x509.NewCertPool()}
	h.roots.AddCert(certificate.Certificate())
	var served sync.WaitGroup
	served.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			h.conns.Add(1)
			h.most.Add(1)
			served.Go(func() {
				defer h.conns.Add(-1)
				defer c.Close()
				h.serve(c)
			})
		}
	})
	t.Cleanup(func() { _ = ln.Close(); served.Wait() })
	return h
}

// settings are what connections begin with.
func (h *hostileHost) settings(s ...http2.Setting) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.first = s
}

func (h *hostileHost) serve(c net.Conn) {
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	out := &hostileConn{Framer: http2.NewFramer(c, nil), Conn: c}
	out.AllowIllegalWrites = true
	out.enc = hpack.NewEncoder(&out.block)
	h.mu.Lock()
	first := h.first
	h.mu.Unlock()
	if out.WriteSettings(first...) != nil {
		return
	}
	// What comes is read whatever is being written, or both sides would wait.
	requested := make(chan uint32, 256)
	go func() {
		defer close(requested)
		in := http2.NewFramer(c, c)
		for {
			f, err := in.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.HeadersFrame:
				requested <- f.StreamID
			case *http2.PingFrame:
				if !f.IsAck() {
					_ = in.WritePing(true, f.Data) // which a client waits for after a reset
				}
			}
		}
	}()
	for id := range requested {
		if attack := h.attack.Swap(nil); attack != nil {
			(*attack)(out, id)
		} else {
			out.answer(id, "fine")
		}
	}
}

func (c *hostileConn) fields(pairs ...string) []byte {
	c.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = c.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return bytes.Clone(c.block.Bytes())
}

func (c *hostileConn) head(id uint32, end bool, pairs ...string) error {
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields(pairs...), EndHeaders: true, EndStream: end})
}

func (c *hostileConn) answer(id uint32, body string) {
	_ = c.head(id, false, ":status", "200")
	_ = c.WriteData(id, true, []byte(body))
}

// flood writes n times, or until the other side has had enough.
func flood(n int, write func(i int) error) {
	for i := range n {
		if write(i) != nil {
			return
		}
	}
}

// literal is a header field that is not indexed, in HPACK's plain form.
func literal(name, value string) []byte {
	b := append([]byte{0}, length(len(name))...)
	b = append(append(b, name...), length(len(value))...)
	return append(b, value...)
}

// length is an integer of a 7 bit prefix.
func length(n int) []byte {
	if n < 127 {
		return []byte{byte(n)}
	}
	return binary.AppendUvarint([]byte{127}, uint64(n-127))
}

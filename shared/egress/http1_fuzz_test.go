package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"
)

// certificate is one for 127.0.0.1, self-signed.
var certificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

func authority() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(certificate().Leaf)
	return pool
}

// FuzzAnswerHead: an accepted head is the one that net/http reads from the same bytes, and does
// not depend on how they arrive.
func FuzzAnswerHead(f *testing.F) {
	for _, a := range answers {
		if len(a.raw) < 1<<10 {
			f.Add([]byte(a.raw), 3)
		}
	}
	f.Add([]byte("HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok"), 1)
	f.Add([]byte("HTTP/1.0 200 OK\r\nConnection: a, Keep-Alive\r\nTransfer-Encoding: chunked\r\n\r\n"), 5)
	f.Fuzz(func(t *testing.T, raw []byte, step int) {
		step = 1 + max(step, -step)&0xff
		x := &exchange{c: &conn{net: &piecewise{data: bytes.Clone(raw), step: step}}, ctx: context.Background(), f: new(frame)}
		h, err := x.head()
		whole, wholeErr := parseWhole(string(raw))
		if (err == nil) != (wholeErr == nil) || h.status != whole.status || len(h.header) != len(whole.header) {
			t.Fatalf("in steps of %d: %+v, %v; at once: %+v, %v", step, h, err, whole, wholeErr)
		}
		if err != nil {
			return
		}
		r := bufio.NewReader(bytes.NewReader(raw))
		resp, err := http.ReadResponse(r, nil)
		for err == nil && resp.StatusCode < 200 && resp.StatusCode != 101 {
			resp, err = http.ReadResponse(r, nil)
		}
		if err != nil {
			t.Fatalf("taken as %+v, but net/http says %v", h, err)
		}
		if resp.StatusCode != h.status {
			t.Fatalf("status %d, net/http says %d", h.status, resp.StatusCode)
		}
		bodyless := h.status == 204 || h.status == 304
		if chunks := len(resp.TransferEncoding) > 0; !bodyless && (chunks != h.chunked || !chunks && resp.ContentLength != h.length) {
			t.Fatalf("chunks %v, length %d; net/http says %v, %d", h.chunked, h.length, chunks, resp.ContentLength)
		}
		if h.persistent && resp.Close && h.length >= 0 {
			t.Fatal("kept, but net/http closes")
		}
		for name, values := range resp.Header {
			if name != "Content-Length" && strings.Join(values, "|") != strings.Join(h.header[name], "|") {
				t.Fatalf("%s: %q, net/http says %q", name, h.header[name], values)
			}
		}
	})
}

// FuzzChunks: a body that is read completely is the one that net/http reads.
func FuzzChunks(f *testing.F) {
	for _, a := range answers {
		if _, body, ok := strings.Cut(a.raw, "\r\n\r\n"); ok && strings.Contains(a.raw, "hunked") && len(body) < 1<<10 {
			f.Add([]byte(body), 4, 7)
		}
	}
	f.Add([]byte("5;a\r\nhello\r\n0\r\n\r\nHTTP/1.1"), 1, 1)
	f.Fuzz(func(t *testing.T, raw []byte, step, size int) {
		step, size = 1+max(step, -step)&0xfff, 1+max(size, -size)&0xfff
		p := &idlePool{idleTimeout: time.Hour}
		c := &conn{pool: p, net: &piecewise{data: bytes.Clone(raw), step: step}}
		x := &exchange{c: c, ctx: context.Background(), f: new(frame), framing: byChunks, persistent: true}
		x.watch.Begin(x.ctx, func() {})
		var got []byte
		var err error
		for b := make([]byte, size); err == nil; {
			var n int
			n, err = x.Read(b)
			got = append(got, b[:n]...)
		}
		if err != io.EOF {
			if p.all.n != 0 {
				t.Fatal("a connection with a broken answer was kept")
			}
			return
		}
		want, werr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(raw)))
		if werr != nil || !bytes.Equal(got, want) {
			t.Fatalf("%q, net/http reads %q, %v", got, want, werr)
		}
		p.closeAll()
	})
}

package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Files that -secure writes: the certificate of an authority that this process makes, and
// the addresses of the listeners with a certificate of that authority.
const (
	caFile    = "ca.pem"
	http1File = "http1.addr"
	http2File = "http2.addr"
)

// secured are the connections over TLS, which GET /__ctl?drop=1 closes. Session tickets are
// off, so every handshake is a full one.
type secured struct {
	mu   sync.Mutex
	open map[net.Conn]struct{}
}

// listen offers one protocol on a free port of loopback.
func (s *secured) listen(cert tls.Certificate, protocol string) (net.Listener, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return tls.NewListener(&noting{ln, s}, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{protocol}, SessionTicketsDisabled: true}), nil
}

func (s *secured) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// noting remembers the connections that it accepts.
type noting struct {
	net.Listener
	of *secured
}

func (n *noting) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	n.of.mu.Lock()
	defer n.of.mu.Unlock()
	n.of.open[c] = struct{}{}
	return &noted{Conn: c, of: n.of}, nil
}

type noted struct {
	net.Conn
	of *secured
}

func (c *noted) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c.Conn)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// serveSecure answers over TLS, by HTTP/1.1 and by HTTP/2, each on its own port. It writes
// the addresses and the authority's certificate into dir.
func (u *upstream) serveSecure(dir string) error {
	cert, ca, err := certify()
	if err != nil {
		return err
	}
	one, err := u.secure.listen(cert, "http/1.1")
	if err != nil {
		return err
	}
	two, err := u.secure.listen(cert, "h2")
	if err != nil {
		return err
	}
	go func() { log.Fatal(u.serve(one)) }()
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	server := &http.Server{Handler: http.HandlerFunc(u.streamed), Protocols: protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: 250}, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { log.Fatal(server.Serve(two)) }()
	for name, content := range map[string]string{caFile: string(ca), http1File: one.Addr().String(), http2File: two.Addr().String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// streamed answers an HTTP/2 request with what the others get, without the framing of
// HTTP/1.1.
func (u *upstream) streamed(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	k := u.ready.Load()
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	u.hits[kindChat].Add(1)
	if !wantsStream(body) {
		_, text, _ := bytes.Cut(k.chat, []byte("\r\n\r\n"))
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(text)
		return
	}
	w.Header()["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	flush := http.NewResponseController(w)
	for _, event := range k.chatEvents {
		if _, err := io.WriteString(w, event); err != nil || flush.Flush() != nil {
			return
		}
	}
}

// certify makes an authority and a certificate for loopback.
func certify() (cert tls.Certificate, ca []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return cert, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "benchmark"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return cert, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// request is one request; its slices are valid until the next one.
type request struct {
	post      bool
	path      string
	length    int
	chunked   bool
	shut      bool // Connection: close
	anthropic bool
	expect    bool
	head      []byte
	body      []byte
}

// converse answers the requests on a connection until it ends.
func (u *upstream) converse(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 64<<10)
	q := &request{body: make([]byte, 0, 4096)}
	for q.readHead(r) {
		if q.expect {
			if _, err := c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
				return
			}
		}
		if q.readBody(r) != nil || !u.answer(c, q) || q.shut {
			return
		}
	}
}

// readHead reads the request line and the headers; it reports whether there was a request.
func (q *request) readHead(r *bufio.Reader) bool {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return false
	}
	q.head = append(q.head[:0], line...)
	f := bytes.Fields(q.head)
	if len(f) < 3 {
		return false
	}
	q.post, q.path = string(f[0]) == "POST", string(f[1])
	q.length, q.chunked, q.shut, q.anthropic, q.expect = 0, false, false, false, false
	for {
		line, err = r.ReadSlice('\n')
		if err != nil {
			return false
		}
		q.head = append(q.head, line...)
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return true
		}
		name, val, ok := bytes.Cut(line, []byte(":"))
		if !ok || !q.header(name, bytes.TrimSpace(val)) {
			return false
		}
	}
}

func (q *request) header(name, val []byte) bool {
	switch {
	case equal(name, "content-length"):
		n, err := strconv.Atoi(string(val))
		q.length = n
		return err == nil && n >= 0
	case equal(name, "transfer-encoding"):
		q.chunked = bytes.Contains(bytes.ToLower(val), []byte("chunked"))
	case equal(name, "connection"):
		q.shut = equal(val, "close")
	case equal(name, "anthropic-version"):
		q.anthropic = true
	case equal(name, "expect"):
		q.expect = true
	}
	return true
}

func (q *request) readBody(r *bufio.Reader) error {
	q.body = q.body[:0]
	if q.chunked {
		return q.readChunks(r)
	}
	if cap(q.body) < q.length {
		q.body = make([]byte, 0, q.length)
	}
	q.body = q.body[:q.length]
	_, err := io.ReadFull(r, q.body)
	return err
}

func (q *request) readChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return err
		}
		at := len(q.body)
		q.body = append(q.body, make([]byte, n)...)
		if _, err := io.ReadFull(r, q.body[at:]); err != nil {
			return err
		}
		if _, err := r.ReadSlice('\n'); err != nil || n == 0 {
			return err
		}
	}
}

// equal compares without regard to the case of ASCII letters.
func equal(a []byte, lower string) bool {
	if len(a) != len(lower) {
		return false
	}
	for i, c := range a {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

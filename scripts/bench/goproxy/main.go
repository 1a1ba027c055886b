// Command goproxy is httputil.ReverseProxy with a well-configured transport and nothing
// else. It shows what a plain Go proxy on net/http costs. It prints "listening on ADDR".
//
// The request body is read completely before it is sent on. If it were passed through as it
// arrives, a fast upstream could answer before the transport has seen the end of the body.
// By then the server has closed that body; the transport takes this for a failed write and
// closes the upstream connection in the middle of the response.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"
)

// buffers are used to copy answers.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte  { return *b.pool.Get().(*[]byte) }
func (b *buffers) Put(v []byte) { b.pool.Put(&v) }

func main() {
	addr := flag.String("addr", "127.0.0.1:9102", "listen address")
	to := flag.String("upstream", "http://127.0.0.1:9100", "where everything goes")
	ca := flag.String("ca", "", "file of the certificate that an HTTPS upstream is verified by")
	flag.Parse()
	u, err := url.Parse(*to)
	if err != nil {
		log.Fatal(err)
	}
	ln, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on %s\n", ln.Addr())
	log.Fatal(http.Serve(ln, handler(u, roots(*ca))))
}

// roots reads the certificate that a file holds.
func roots(file string) *tls.Config {
	if file == "" {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: pool}
}

// handler forwards to u, over HTTP/2 if u offers it.
func handler(u *url.URL, secure *tls.Config) http.Handler {
	p := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport: &http.Transport{
			MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
			TLSClientConfig: secure, ForceAttemptHTTP2: secure != nil,
		},
		BufferPool: &buffers{sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, max(0, r.ContentLength))
		if _, err := io.ReadFull(r.Body, b); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(b))
		p.ServeHTTP(w, r)
	})
}

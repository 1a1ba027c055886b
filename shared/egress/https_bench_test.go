package egress

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// discard is a response writer without a reader.
type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}
func (d discard) Flush()                      {}

// BenchmarkHTTPS sends requests through one httputil.ReverseProxy to an HTTPS host, by HTTP/1.1
// and HTTP/2: with net/http's transport unchanged, with net/http and the guard, and with this
// package's. Only the transport differs. All of them include the host's time.
func BenchmarkHTTPS(b *testing.B) {
	for _, two := range []bool{false, true} {
		host := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := strconv.Atoi(r.Header.Get("Answer"))
			_, _ = io.Copy(io.Discard, r.Body)
			if r.Header.Get("Stream") != "" {
				for range 100 {
					_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"word \"}}]}\n\n")
					w.(http.Flusher).Flush()
				}
				return
			}
			_, _ = io.WriteString(w, strings.Repeat("x", n))
		}))
		host.EnableHTTP2 = two
		host.StartTLS()
		roots := host.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		p, err := ParseAllow("127.0.0.0/8")
		if err != nil {
			b.Fatal(err)
		}
		p.RootCAs = roots
		to, _ := url.Parse(host.URL)
		bare := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: two, MaxIdleConnsPerHost: 100, DisableCompression: true}
		for _, c := range []struct {
			name string
			size int
		}{{"1 KB", 1 << 10}, {"100 KB", 100 << 10}, {"stream of 100", 0}} {
			for _, way := range []struct {
				name string
				tr   http.RoundTripper
			}{{"bare", bare}, {"guarded net-http", New(p, Options{Standard: true})}, {"own", New(p, Options{})}} {
				proxy := &httputil.ReverseProxy{Transport: way.tr, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
				body := bytes.Repeat([]byte("x"), max(c.size, 1<<10))
				b.Run("HTTP/"+map[bool]string{false: "1.1", true: "2"}[two]+"/"+c.name+"/"+way.name, func(b *testing.B) {
					b.ReportAllocs()
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							req := httptest.NewRequest("POST", "http://gateway/v1/chat/completions", bytes.NewReader(body))
							req.Header.Set("Answer", strconv.Itoa(c.size))
							if c.size == 0 {
								req.Header.Set("Stream", "1")
							}
							proxy.ServeHTTP(discard{http.Header{}}, req)
						}
					})
				})
			}
		}
		host.Close()
	}
}

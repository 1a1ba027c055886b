package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Both protocols answer over TLS with what plain HTTP gets, and continue when their
// connections were closed.
func TestAnswersOverTLS(t *testing.T) {
	t.Parallel()
	dir, u := t.TempDir(), newUpstream(0, 0, 7)
	if err := u.serveSecure(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, caFile))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	for file, protocol := range map[string]int{http1File: 1, http2File: 2} {
		addr, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, stream := range []bool{false, true} {
			body := `{"model":"gpt-4o-mini","messages":[]}`
			if stream {
				body = `{"stream":true,"model":"gpt-4o-mini","messages":[]}`
			}
			resp, err := client.Post("https://"+string(addr)+"/v1/chat/completions", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if err != nil || resp.ProtoMajor != protocol || !strings.Contains(string(got), marker) || strings.HasSuffix(string(got), "data: [DONE]\n\n") != stream {
				t.Errorf("HTTP/%d, stream %t: %v, HTTP/%d %.200s", protocol, stream, err, resp.ProtoMajor, got)
			}
			u.secure.drop()
			client.CloseIdleConnections()
		}
	}
}

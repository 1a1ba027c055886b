package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/app"
)

// inBothVariants runs a test on a gateway of this project's engines and on one of
// net/http.
func inBothVariants(t *testing.T, test func(t *testing.T, r *running)) {
	for name, value := range map[string]string{"own": "", "standard": "standard"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(app.EnvHTTP, value)
			r := start(t)
			if r.g.options.serve.Standard != (value != "") || r.g.core.StandardHTTP != (value != "") {
				t.Fatal("the variable is not heard")
			}
			test(t, r)
		})
	}
}

// Callers whose key is missing or wrong are told so before their body arrives, even if it
// never does. In a row: it sets the environment.
//
//lane:standard
func TestRefusalsDoNotWaitForBodies(t *testing.T) {
	inBothVariants(t, func(t *testing.T, r *running) {
		addr := r.g.server.Addr().String()
		var all sync.WaitGroup
		for _, route := range []string{
			"POST /v1/chat/completions", "POST /v1/messages", "POST /v1/responses", "POST /v1/embeddings", "POST /v1/files", "POST /v1/audio/transcriptions", "POST /v1/images/edits",
			"POST /v1/batches", "POST /v1/some/other", "PUT /v1/some/other", "DELETE /v1/files/file-1", "GET /v1/models", "POST /v1/proxy/v1/chat/completions",
			"POST /v1/configs", "PUT /v1/configs/pc-a", "POST /v1/virtual-keys", "PUT /v1/admin/organisation/settings", "POST /v1/configs/dry-run",
		} {
			for _, key := range []string{"", "x-gateway-api-key: wrong\r\n", "authorization: Bearer wrong\r\n"} {
				for name, more := range map[string]string{
					"length": "content-length: 20\r\n\r\n", "part": "content-length: 20\r\n\r\n{", "large": "content-length: 19000000\r\n\r\n", "asking": "content-length: 20\r\nexpect: 100-continue\r\n\r\n",
					"chunked": "transfer-encoding: chunked\r\n\r\n", "asking, chunked": "transfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n",
				} {
					all.Go(func() {
						c, err := net.Dial("tcp", addr)
						if err != nil {
							t.Error(err)
							return
						}
						defer c.Close()
						_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
						_, _ = io.WriteString(c, route+" HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\nx-gateway-provider: @mock\r\n"+key+more)
						got, err := io.ReadAll(c) // until the gateway ends it
						if (err != nil && len(got) == 0) || !strings.HasPrefix(string(got), "HTTP/1.1 401 ") {
							t.Errorf("%s, %q, %s: %.100q, %v", route, key, name, got, err)
						}
					})
				}
			}
		}
		all.Wait()
	})
}

// A request line that names the server means the plain path, also if the path is passed on
// as it came. In a row: it sets the environment.
//
//lane:standard
func TestTargetsThatNameTheServerAreServed(t *testing.T) {
	inBothVariants(t, func(t *testing.T, r *running) {
		body := chatBody("gpt-4o-mini", "hello", "")
		for _, path := range []string{"/v1/chat/completions", "/v1/proxy/v1/chat/completions", "/v1/proxy/chat/completions"} {
			var answers []string
			for _, target := range []string{path, "http://gateway.example.com" + path, "HTTP://gateway.example.com:80" + path} {
				c, err := net.Dial("tcp", r.g.server.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: application/json\r\nx-gateway-provider: @mock\r\nx-gateway-api-key: %s\r\ncontent-length: %d\r\n\r\n%s", target, workspaceKey, len(body), body)
				got, err := io.ReadAll(c)
				c.Close()
				if err != nil {
					t.Error(err)
				}
				line, _, _ := strings.Cut(string(got), "\r\n")
				answers = append(answers, line)
			}
			if answers[0] != answers[1] || answers[0] != answers[2] || path == "/v1/chat/completions" && answers[0] != "HTTP/1.1 200 OK" {
				t.Errorf("%s: %q", path, answers)
			}
		}
	})
}

// Nothing inflates what a caller sends: a compressed body is rejected, or passed on as
// it is.
func TestCompressedBodiesAreNotInflated(t *testing.T) {
	t.Parallel()
	r := start(t)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(chatBody("gpt-4o-mini", strings.Repeat("a", 1<<20), "")))
	_ = z.Close()
	for _, c := range []struct{ path, key string }{
		{"/chat/completions", workspaceKey}, {"/messages", workspaceKey}, {"/responses", workspaceKey}, {"/embeddings", workspaceKey}, {"/batches", workspaceKey},
		{"/configs/dry-run", workspaceKey}, {"/configs", adminKey}, {"/virtual-keys", adminKey},
	} {
		got := r.call("POST", c.path, packed.String(), "Content-Encoding", "gzip", "X-Gateway-Provider", "@mock", "X-Gateway-Api-Key", c.key)
		if got.status < 400 || got.status >= 500 {
			t.Errorf("%s: %d %.200s", c.path, got.status, got.body)
		}
	}
}

// Who has the document is told so in a few bytes, and who has not gets it small.
//
//lane:exhaustive
func TestTheDocumentIsCachedByItsReaders(t *testing.T) {
	t.Parallel()
	r := start(t)
	first := r.call("GET", "/openapi.json", "", "X-Gateway-Api-Key", "", "Accept-Encoding", "gzip")
	if first.status != http.StatusOK || first.header.Get("Content-Encoding") != "gzip" || len(first.body) > 150_000 || first.header.Get("Etag") == "" || !strings.HasPrefix(first.header.Get("Cache-Control"), "public") {
		t.Fatalf("%d, %d bytes, %v", first.status, len(first.body), first.header)
	}
	again := r.call("GET", "/openapi.json", "", "X-Gateway-Api-Key", "", "If-None-Match", first.header.Get("Etag"))
	if again.status != http.StatusNotModified || again.body != "" {
		t.Errorf("%d, %d bytes", again.status, len(again.body))
	}
}

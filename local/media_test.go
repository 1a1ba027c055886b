package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// picture is an image that the mock providers take for one.
var picture = append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 64)...)

// web serves a picture, a document and what is neither, and counts.
func web(t *testing.T) (base string, hits *atomic.Int64) {
	t.Helper()
	hits = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		for _, secret := range []string{"Authorization", "X-Gateway-Api-Key", "Cookie", "X-Goog-Api-Key", "X-Amz-Date"} {
			if r.Header.Get(secret) != "" {
				t.Errorf("%s was sent to a host of the web", secret)
			}
		}
		switch r.URL.Path {
		case "/cat.png", "/other.png":
			_, _ = w.Write(picture)
		case "/paper":
			_, _ = w.Write([]byte("%PDF-1.7\nHello"))
		case "/page.png":
			_, _ = w.Write([]byte("<html><body>Sign in</body></html>"))
		case "/inside.png":
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, hits
}

// withImages is a chat request with a text and images by their addresses.
func withImages(model, text string, addresses ...string) string {
	var parts strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&parts, `,{"type":"image_url","image_url":{"url":%q}}`, a)
	}
	return fmt.Sprintf(`{"model":%q,"max_tokens":50,"messages":[{"role":"user","content":[{"type":"text","text":%q}%s]}]}`, model, text, parts.String())
}

package body

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/egress"
)

var (
	pngBytes  = append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 40)...)
	gifBytes  = append([]byte("GIF89a"), make([]byte, 40)...)
	pdfBytes  = []byte("%PDF-1.7\n1 0 obj\n")
	zipBytes  = append([]byte("PK\x03\x04"), make([]byte, 40)...)
	htmlBytes = []byte("<!DOCTYPE html><html><body>Sign in</body></html>")
)

func TestMediaTypesAreReadFromBytes(t *testing.T) {
	for _, c := range []struct {
		name, content, declared, path, mime, why string
	}{
		{"png", string(pngBytes), "image/jpeg", "/a.gif", "image/png", ""},
		{"gif without a type", string(gifBytes), "", "/a", "image/gif", ""},
		{"jpeg as bytes", "\xff\xd8\xff\xe0abcdefgh", "application/octet-stream", "", "image/jpeg", ""},
		{"webp", "RIFF\x00\x00\x00\x00WEBPVP8 ", "", "", "image/webp", ""},
		{"pdf", string(pdfBytes), "text/html", "", "application/pdf", ""},
		{"wav", "RIFF\x00\x00\x00\x00WAVEfmt ", "", "", "audio/wav", ""},
		{"mp3 without a header", "\xff\xfb\x90\x00abcdefgh", "audio/mpeg", "", "audio/mpeg", ""},
		{"heic", "\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "image/heic", "", "image/heic", ""},
		{"docx by its type", string(zipBytes), officeTypes["docx"], "/x", officeTypes["docx"], ""},
		{"xlsx by its name", string(zipBytes), "application/octet-stream", "/x.XLSX", officeTypes["xlsx"], ""},
		{"any zip", string(zipBytes), "application/zip", "/x.zip", "", "not of a type"},
		{"csv", "a,b\n1,2\n", "text/csv; charset=utf-8", "", "text/csv", ""},
		{"markdown by its name", "# Title\n", "text/plain", "/read.md", "text/markdown", ""},
		{"text", "hello", "", "", "text/plain", ""},
		{"latin-1", "caf\xe9 au lait", "text/plain", "", "", "not UTF-8"},
		{"a page", string(htmlBytes), "image/png", "/a.png", "", "web page"},
		{"a page that says so", "just text", "text/html", "", "", "web page"},
		{"svg", `<svg xmlns="http://www.w3.org/2000/svg"/>`, "image/svg+xml", "", "", "SVG"},
		{"program", "\x7fELF\x02\x01\x01\x00\x00\x00", "image/png", "", "", "not of a type"},
		{"nothing", "", "image/png", "", "", "empty"},
	} {
		mime, why := typeOf([]byte(c.content), c.declared, c.path)
		if mime != c.mime || !strings.Contains(why, c.why) || (why == "") != (c.why == "") {
			t.Errorf("%s: %q %q", c.name, mime, why)
		}
	}
}

func FuzzMediaType(f *testing.F) {
	for _, b := range [][]byte{pngBytes, pdfBytes, zipBytes, htmlBytes, nil} {
		f.Add(b, "image/png", "/a.png")
	}
	f.Fuzz(func(t *testing.T, content []byte, declared, name string) {
		mime, why := typeOf(content, declared, name)
		if (mime == "") == (why == "") || strings.Contains(mime, "html") || strings.Contains(mime, "svg") {
			t.Fatalf("%q %q", mime, why)
		}
	})
}

// fetcher reaches loopback and counts nothing before.
func fetcher(t *testing.T, allow string) *MediaFetcher {
	t.Helper()
	p, err := egress.ParseAllow(allow)
	if err != nil {
		t.Fatal(err)
	}
	transport := egress.NewHTTP1(p)
	t.Cleanup(transport.CloseIdleConnections)
	return NewMediaFetcher(transport, p, new(egress.Lease))
}

func fetched(f *MediaFetcher, ctx context.Context, address string) *medium {
	m := f.fetch(ctx, address)
	return &m
}

func TestMediaOfHostileHosts(t *testing.T) {
	release := make(chan struct{})
	var host string
	mux := http.NewServeMux()
	to := func(path, location string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", location)
			w.WriteHeader(http.StatusFound)
		})
	}
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		for name := range r.Header {
			if name != "Accept" && name != "Accept-Encoding" && name != "User-Agent" {
				t.Errorf("the header %s was sent", name)
			}
		}
		if r.Method != http.MethodGet || r.ContentLength > 0 {
			t.Errorf("%s with %d bytes", r.Method, r.ContentLength)
		}
		_, _ = w.Write(pngBytes)
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/announced", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "20971521")
		_, _ = w.Write(pngBytes)
	})
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "5000")
		_, _ = w.Write(pngBytes)
	})
	mux.HandleFunc("/silent", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/stuck", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(pngBytes)
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/zipped", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write([]byte("\x1f\x8b"))
	})
	mux.HandleFunc("/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(htmlBytes) })
	mux.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	mux.HandleFunc("/part", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusPartialContent) })
	mux.HandleFunc("/nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) })
	to("/metadata", "http://169.254.169.254/latest/meta-data/")
	to("/private", "http://10.0.0.1/a.png")
	to("/file", "file:///etc/passwd")
	to("/user", "http://user:secret@127.0.0.1/a.png")
	to("/round", "/round")
	to("/3", "/2")
	to("/2", "/1")
	to("/1", "/ok")
	to("/4", "/3")
	s := httptest.NewServer(mux)
	t.Cleanup(func() { close(release); s.Close() })
	host = s.URL

	for _, c := range []struct {
		path, why string
		blocked   bool
	}{
		{"/ok", "", false}, {"/ok?X-Signature=a@b#part", "", false}, {"/1", "", false}, {"/3", "", false},
		{"/4", "redirects more than 3 times", false}, {"/round", "redirects more than 3 times", false},
		{"/endless", "larger than 20 MB", false}, {"/announced", "larger than 20 MB", false}, {"/short", "truncated the response", false},
		{"/zipped", "compresses", false}, {"/page", "web page", false}, {"/gone", "status 410", false}, {"/part", "status 206", false},
		{"/nowhere", "redirects to an invalid address", false}, {"/metadata", "must not be reached", true}, {"/private", "must not be reached", true},
		{"/file", "malformed", false}, {"/user", "malformed", false},
	} {
		m := fetched(fetcher(t, "127.0.0.0/8"), context.Background(), host+c.path)
		if !strings.Contains(m.why, c.why) || (m.why == "") != (c.why == "") || m.blocked != c.blocked || strings.Contains(m.why, "127.0.0.1") {
			t.Errorf("%s: %+v", c.path, m)
		}
		if c.why == "" && (m.mime != "image/png" || m.size != int64(len(pngBytes))) {
			t.Errorf("%s: %+v", c.path, m)
		}
	}
	for _, path := range []string{"/silent", "/stuck"} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if m := fetched(fetcher(t, "127.0.0.0/8"), ctx, host+path); !strings.Contains(m.why, "did not arrive within 30s") {
			t.Errorf("%s: %+v", path, m)
		}
		cancel()
	}
	full := fetcher(t, "127.0.0.0/8")
	full.total.Store(maxTotal - 1)
	if m := fetched(full, context.Background(), host+"/ok"); !strings.Contains(m.why, "50 MB together") {
		t.Errorf("%+v", m)
	}
	closed := fetcher(t, "")
	for _, address := range []string{host + "/ok", "http://127.0.0.1:1/", "https://localhost/a.png", "https://[::1]/a.png", "https://metadata.google.internal/x", "http://169.254.169.254/", "https://0x7f.1/a", "https://example.com:22/a"} {
		if m := fetched(closed, context.Background(), address); m.why == "" {
			t.Errorf("%s was fetched", address)
		}
	}
	if m := fetched(closed, context.Background(), "https://example.com/"+strings.Repeat("a", maxURL)); !strings.Contains(m.why, "longer than") {
		t.Errorf("%+v", m)
	}
}

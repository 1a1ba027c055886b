package relay

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
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
		mime, why := mediaType([]byte(c.content), c.declared, c.path)
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
		mime, why := mediaType(content, declared, name)
		if (mime == "") == (why == "") || strings.Contains(mime, "html") || strings.Contains(mime, "svg") {
			t.Fatalf("%q %q", mime, why)
		}
	})
}

// fetcher reaches loopback and counts nothing before.
func fetcher(t *testing.T, allow string) *mediaFetcher {
	t.Helper()
	p, err := egress.ParseAllow(allow)
	if err != nil {
		t.Fatal(err)
	}
	transport := egress.NewHTTP1(p)
	t.Cleanup(transport.CloseIdleConnections)
	return newMediaFetcher(transport, p, new(egress.Lease))
}

func fetched(f *mediaFetcher, ctx context.Context, address string) *medium {
	m := new(medium)
	f.fetch(ctx, address, m)
	return m
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
		{"/endless", "larger than 20 MB", false}, {"/announced", "larger than 20 MB", false}, {"/short", "broke off", false},
		{"/zipped", "compresses", false}, {"/page", "web page", false}, {"/gone", "status 410", false}, {"/part", "status 206", false},
		{"/nowhere", "no address", false}, {"/metadata", "must not be reached", true}, {"/private", "must not be reached", true},
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
	full.total.Store(maxMedia - 1)
	if m := fetched(full, context.Background(), host+"/ok"); !strings.Contains(m.why, "50 MB together") {
		t.Errorf("%+v", m)
	}
	closed := fetcher(t, "")
	for _, address := range []string{host + "/ok", "http://127.0.0.1:1/", "https://localhost/a.png", "https://[::1]/a.png", "https://metadata.google.internal/x", "http://169.254.169.254/", "https://0x7f.1/a", "https://example.com:22/a"} {
		if m := fetched(closed, context.Background(), address); m.why == "" {
			t.Errorf("%s was fetched", address)
		}
	}
	if m := fetched(closed, context.Background(), "https://example.com/"+strings.Repeat("a", maxMediaURL)); !strings.Contains(m.why, "longer than") {
		t.Errorf("%+v", m)
	}
}

// failing is a transport that gives no answer, and counts.
type failing struct{ n atomic.Int64 }

func (f *failing) RoundTrip(*http.Request) (*http.Response, error) {
	f.n.Add(1)
	return nil, context.DeadlineExceeded
}

func TestMediaOfARequest(t *testing.T) {
	var hits atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		switch r.URL.Path {
		case "/a.png":
			_, _ = w.Write(pngBytes)
		case "/b.pdf":
			_, _ = w.Write(pdfBytes)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	p, _ := egress.ParseAllow("127.0.0.0/8")
	transport := egress.NewHTTP1(p)
	t.Cleanup(transport.CloseIdleConnections)
	newCall := func(rt http.RoundTripper) *call {
		c := newCall()
		c.Relay, c.rt = &Relay{Options: Options{Transport: rt, Egress: p, Now: time.Now}}, &Route{}
		c.lease = new(egress.Lease)
		c.req = httptest.NewRequest("POST", "/", nil)
		c.to.traits.NeedsMediaBytes, c.to.traits.MediaHosts = true, []string{"files.example"}
		return c
	}
	image := func(address string, at int) chat.Part {
		return chat.Part{Kind: chat.Image, At: at, Media: &chat.Media{URL: address, Detail: "low"}}
	}
	conversation := func(parts ...chat.Part) *chat.Request {
		return &chat.Request{Messages: []chat.Message{{Role: chat.User, At: 0, Plain: true, Parts: []chat.Part{{Kind: chat.Text, Text: "x"}}}, {Role: chat.User, At: 1, Parts: parts}}}
	}

	c := newCall(transport)
	inResult := chat.Part{Kind: chat.Result, At: 3, Result: &chat.ToolResult{CallID: "c", Parts: []chat.Part{image(s.URL+"/a.png", 0)}}}
	r := conversation(image(s.URL+"/a.png", 0), image(s.URL+"/b.pdf", 1), image("https://a.files.example/x", 2), inResult, image("gs://b/c", 4))
	for range 2 { // of two targets
		err := c.withMediaBytes(r, func() error {
			got := r.Messages[1].Parts
			if got[0].Media.MIME != "image/png" || got[0].Media.URL != "" || got[0].Media.Detail != "low" || got[1].Kind != chat.Document || got[2].Media.URL == "" || got[4].Media.URL == "" {
				t.Errorf("%+v", got)
			}
			if m := got[3].Result.Parts[0].Media; m.Data != got[0].Media.Data {
				t.Errorf("%+v", m)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Messages[1].Parts[0].Media.URL == "" || r.Messages[1].Parts[3].Result.Parts[0].Media.URL == "" {
			t.Error("the addresses were lost for targets that read them")
		}
	}
	if hits.Load() != 2 || c.media.documents != int64(len(pdfBytes)) {
		t.Errorf("%d requests, %d bytes of documents", hits.Load(), c.media.documents)
	}

	bad := conversation(image(s.URL+"/a.png", 0), chat.Part{Kind: chat.Text, Text: "x", At: 1}, image(s.URL+"/none", 2))
	for range 2 {
		err := newCall(transport).withMediaBytes(bad, func() error { t.Error("encoded"); return nil })
		if f := fault.From(err); f.Status() != 400 || f.Field != "messages[1].content[2]" || !strings.Contains(f.Message, "404") {
			t.Errorf("%v", err)
		}
	}
	var many []chat.Part
	for i := range mostMedia + 1 {
		many = append(many, image(s.URL+"/a.png?"+strings.Repeat("i", i), i))
	}
	down := new(failing)
	if f := fault.From(newCall(down).withMediaBytes(conversation(many...), nil)); f.Field != "messages[1].content[100]" || down.n.Load() != 0 {
		t.Errorf("%v after %d requests", f, down.n.Load())
	}
	imagined := newCall(down)
	imagined.rehearsing = true
	if err := imagined.withMediaBytes(conversation(image("https://x.example/a.png", 0)), func() error { return nil }); err != nil || down.n.Load() != 0 {
		t.Errorf("%v after %d requests", err, down.n.Load())
	}
	gone := newCall(transport)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	gone.req = gone.req.WithContext(ctx)
	if f := fault.From(gone.withMediaBytes(conversation(image(s.URL+"/a.png", 0)), nil)); f.Code != fault.RequestTimeout {
		t.Errorf("%v", f)
	}
}

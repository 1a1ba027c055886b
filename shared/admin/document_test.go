package admin

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDocumentsAreSentOnceAndSmall(t *testing.T) {
	t.Parallel()
	const text = `{"a":"` + "many words, many words, many words, many words, many words, many words, many words" + `"}`
	d, err := NewDocument(json.RawMessage(" " + strings.Replace(text, ":", " : ", 1) + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewDocument(json.RawMessage(`{}`))
	if err != nil || other.tag == d.tag || string(d.JSON()) != text {
		t.Fatalf("%v, %s and %s, %s", err, d.tag, other.tag, d.JSON())
	}
	strong := strings.TrimPrefix(d.tag, "W/")
	for _, c := range []struct {
		name, value string
		status      int
		packed      bool
	}{
		{"", "", 200, false},
		{"If-None-Match", d.tag, 304, false},
		{"If-None-Match", strong, 304, false},
		{"If-None-Match", "*", 304, false},
		{"If-None-Match", `"x", ` + d.tag, 304, false},
		{"If-None-Match", other.tag, 200, false},
		{"If-None-Match", strings.Trim(strong, `"`), 200, false},
		{"Accept-Encoding", "gzip", 200, true},
		{"Accept-Encoding", "br, GZIP;q=0.5", 200, true},
		{"Accept-Encoding", "gzip; q=0", 200, false},
		{"Accept-Encoding", "gzip;q=0.000", 200, false},
		{"Accept-Encoding", "gzip;q=nonsense", 200, false},
		{"Accept-Encoding", "identity", 200, false},
		{"Accept-Encoding", "gzippo", 200, false},
	} {
		req := httptest.NewRequest("GET", "/", nil)
		if c.name != "" {
			req.Header.Set(c.name, c.value)
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, req)
		h := w.Header()
		if w.Code != c.status || h.Get("Etag") != d.tag || h.Get("Cache-Control") != "public, max-age=300" || h.Get("Vary") != "Accept-Encoding" || (h.Get("Content-Encoding") == "gzip") != c.packed {
			t.Errorf("%s %q: %d %v", c.name, c.value, w.Code, h)
		}
		if c.status == http.StatusNotModified {
			if w.Body.Len() != 0 {
				t.Errorf("%s %q: a body", c.name, c.value)
			}
			continue
		}
		body := w.Body.Bytes()
		if c.packed {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if string(body) != text {
			t.Errorf("%s %q: %s", c.name, c.value, body)
		}
	}
	if _, err := NewDocument(json.RawMessage(`{`)); err == nil {
		t.Error("half a document is taken")
	}
}

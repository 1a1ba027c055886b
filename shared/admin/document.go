package admin

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Document is a response that is the same for everybody and may be large. It is made ready
// once, so that most requests cost little more than a look at a header.
type Document struct {
	plain, packed []byte // the text, and the same by gzip
	tag           string
	media         string
	policy        string
}

// pagePolicy is the Content-Security-Policy of a document. A page contains its style and
// loads nothing.
const pagePolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// scriptPolicy returns the policy of a page with one inline script, which is allowed by its
// hash, may read from the gateway and must not write markup.
func scriptPolicy(script string) string {
	sum := sha256.Sum256([]byte(script))
	return pagePolicy + "; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"
}

// documentAge is how long others may keep a document without asking, in seconds.
const documentAge = 300

// NewDocument makes a document of JSON.
func NewDocument(text json.RawMessage) (*Document, error) {
	var plain bytes.Buffer
	if err := json.Compact(&plain, text); err != nil {
		return nil, err
	}
	return NewPage(jsonType, plain.Bytes(), "")
}

// NewPage returns a document of another media type. script is the text of the only script
// that the page runs, or empty.
func NewPage(media string, text []byte, script string) (*Document, error) {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(text)
	if err == nil {
		err = z.Close()
	}
	policy := pagePolicy
	if script != "" {
		policy = scriptPolicy(script)
	}
	sum := sha256.Sum256(text)
	// Weak: both forms are the same document.
	return &Document{plain: text, packed: packed.Bytes(), media: media, policy: policy, tag: `W/"` + hex.EncodeToString(sum[:12]) + `"`}, err
}

// JSON is the text of a document of JSON.
func (d *Document) JSON() json.RawMessage { return d.plain }

// ServeHTTP responds with the document, or with its tag for who has it.
func (d *Document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", d.media)
	h.Set("Content-Security-Policy", d.policy)
	h.Set("Cache-Control", "public, max-age="+strconv.Itoa(documentAge))
	h.Set("Etag", d.tag)
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Content-Type-Options", "nosniff")
	if d.known(r.Header) {
		h.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := d.plain
	if AcceptsGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
		body = d.packed
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // a caller who went away needs no response
}

// known reports whether the caller's cached document is current (RFC 9110, 13.1.2).
func (d *Document) known(h http.Header) bool {
	for _, v := range h.Values("If-None-Match") {
		for tag := range strings.SplitSeq(v, ",") {
			tag = strings.TrimSpace(tag)
			if tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(d.tag, "W/") {
				return true
			}
		}
	}
	return false
}

// AcceptsGzip reports whether the Accept-Encoding of a request allows gzip (RFC 9110, 12.5.3).
func AcceptsGzip(h http.Header) bool {
	for _, v := range h.Values("Accept-Encoding") {
		for coding := range strings.SplitSeq(v, ",") {
			name, weight, _ := strings.Cut(coding, ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			q, has := strings.CutPrefix(strings.ToLower(strings.TrimSpace(weight)), "q=")
			n, err := strconv.ParseFloat(q, 64)
			return !has || err == nil && n > 0
		}
	}
	return false
}

package mockprovider

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"sync"
	"unicode/utf8"
)

// Received is a request as it arrived. Path and Query are exactly what the request line
// had, neither cleaned nor decoded.
type Received struct {
	Seq     int64
	Method  string
	Path    string
	Query   string
	Host    string
	Headers http.Header
	Body    []byte
	Length  int64 // Content-Length; -1 if there was none
}

// MarshalJSON writes the body as text, or as base64 if it is not UTF-8.
func (r Received) MarshalJSON() ([]byte, error) {
	out := struct {
		Seq     int64       `json:"seq"`
		Method  string      `json:"method"`
		Path    string      `json:"raw_path"`
		Query   string      `json:"raw_query"`
		Host    string      `json:"host"`
		Headers http.Header `json:"headers"`
		Length  int64       `json:"content_length"`
		Body    *string     `json:"body,omitempty"`
		Base64  string      `json:"body_base64,omitempty"`
	}{r.Seq, r.Method, r.Path, r.Query, r.Host, r.Headers, r.Length, nil, ""}
	if utf8.Valid(r.Body) {
		s := string(r.Body)
		out.Body = &s
	} else {
		out.Base64 = base64.StdEncoding.EncodeToString(r.Body)
	}
	return json.Marshal(out)
}

// history stores the last requests, up to a number and a total of bytes.
type history struct {
	mu       sync.Mutex
	keep     int
	maxBytes int
	seq      int64
	bytes    int
	all      []Received
}

func (h *history) add(r Received) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seq++
	r.Seq = h.seq
	h.all = append(h.all, r)
	h.bytes += len(r.Body)
	drop := 0
	for len(h.all)-drop > 1 && (len(h.all)-drop > h.keep || h.bytes > h.maxBytes) {
		h.bytes -= len(h.all[drop].Body)
		h.all[drop] = Received{}
		drop++
	}
	h.all = h.all[drop:]
}

// last returns at most n requests, oldest first.
func (h *history) last(n int) []Received {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Received{}, h.all[max(0, len(h.all)-n):]...)
}

func (h *history) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all, h.bytes = nil, 0
}

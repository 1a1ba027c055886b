package batchrun

import (
	"bytes"
	"net/http"
)

// recorder is a ResponseWriter that keeps an answer of at most Max bytes.
type recorder struct {
	Max    int
	Status int
	Over   bool // the answer was longer
	header http.Header
	Body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.Status == 0 {
		r.Status = status
	}
}

// Write implements io.Writer.
func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.Over || r.Body.Len()+len(p) > r.Max {
		r.Over = true
		return len(p), nil // what comes is read on, so that it is booked
	}
	return r.Body.Write(p)
}

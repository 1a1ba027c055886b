package response

import (
	"bytes"
	"net/http"
)

// Recorder is a ResponseWriter that buffers a response of at most Max bytes.
type Recorder struct {
	Max    int
	Status int
	Over   bool // the response was longer
	header http.Header
	Body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *Recorder) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(status int) {
	if r.Status == 0 {
		r.Status = status
	}
}

// Write implements io.Writer.
func (r *Recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.Over || r.Body.Len()+len(p) > r.Max {
		r.Over = true
		return len(p), nil // the rest is still read, so that it is charged
	}
	return r.Body.Write(p)
}

package relay

import (
	"compress/gzip"
	"io"
	"net/http"
)

// unzip lets a stream that came compressed, though nobody asked for it, be read as
// what it says. The head of the compression is read with the first bytes, so that
// this does not wait.
func unzip(resp *http.Response) {
	if resp.Header.Get("Content-Encoding") != "gzip" {
		return
	}
	resp.Body = &zipped{ReadCloser: resp.Body}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
}

// zipped is a body that is decompressed as it is read.
type zipped struct {
	io.ReadCloser
	z *gzip.Reader
}

func (b *zipped) Read(p []byte) (int, error) {
	if b.z == nil {
		z, err := gzip.NewReader(b.ReadCloser)
		if err != nil {
			return 0, err
		}
		b.z = z
	}
	return b.z.Read(p)
}

package egress

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"

	"gateway/shared/fault"
)

// Limits of compressed bodies. JSON and events shrink to a tenth, rarely to a fiftieth; a
// higher ratio indicates an attack.
const (
	freeInflation = 4 << 20 // bytes that anything may grow to
	maxInflation  = 100     // bytes per received byte, beyond that
)

// Inflate decompresses a body that was compressed with gzip or deflate although that was
// not requested. It decompresses while the body is read. The body may have most bytes (0
// means no limit), and must not grow out of proportion: Reads that exceed a limit fail
// with a 502 fault, invalid_provider_response. For any other coding Inflate closes the
// body and fails in the same way.
func Inflate(resp *http.Response, most int64) error {
	coding := codings(resp.Header["Content-Encoding"])
	if coding == "" {
		return nil
	}
	b := &inflated{body: resp.Body, most: most}
	switch coding {
	case "gzip", "x-gzip":
		b.open = func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }
	case "deflate":
		b.open = openDeflate
	default:
		_ = resp.Body.Close()
		return fault.New(fault.InvalidProviderResponse, "", "The host's response has a compression that was not requested")
	}
	b.src.r = resp.Body
	resp.Body = b
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = -1
	return nil
}

// codings returns the codings of a body, in lower case, without those that have no
// effect. Two or more result in a list, which is never accepted: double compression grows
// twice as fast.
func codings(values []string) string {
	if len(values) == 0 {
		return ""
	}
	var names []string
	for _, c := range strings.Split(strings.ToLower(strings.Join(values, ",")), ",") {
		if c = strings.TrimSpace(c); c != "" && c != "identity" {
			names = append(names, c)
		}
	}
	return strings.Join(names, ",")
}

// openDeflate opens a body that is called deflate: zlib's format, or the bare deflate that
// some hosts send under this name.
func openDeflate(r io.Reader) (io.Reader, error) {
	b := bufio.NewReader(r)
	head, err := b.Peek(2)
	if err != nil {
		return nil, err
	}
	if head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// inflated is a body that is inflated while it is read.
type inflated struct {
	body io.ReadCloser
	src  countingReader
	open func(io.Reader) (io.Reader, error)
	z    io.Reader // nil until the first Read
	n    int64     // bytes given
	most int64
	err  error // the first error, which stays
}

func (b *inflated) Read(p []byte) (n int, err error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.z == nil {
		if b.z, b.err = b.open(&b.src); b.err != nil {
			if b.err == io.EOF {
				b.err = io.ErrUnexpectedEOF // an empty body is an error, because every coding has a head
			}
			return 0, b.err
		}
	}
	n, b.err = b.z.Read(p)
	b.n += int64(n)
	if b.most > 0 && b.n > b.most {
		b.err = tooLarge(b.most)
	} else if ExceedsRatio(b.src.n, b.n) {
		b.err = errOutgrown()
	}
	return n, b.err
}

func (b *inflated) Close() error {
	if b.err == nil {
		b.err = http.ErrBodyReadAfterClose
	}
	return b.body.Close()
}

// ExceedsRatio reports whether made bytes are more than in bytes ever grow to in good faith.
func ExceedsRatio(in, out int64) bool { return out > freeInflation && out/maxInflation > in }

func errOutgrown() error {
	return fault.New(fault.InvalidProviderResponse, "", "The host's answer is compressed out of all proportion")
}

// countingReader counts the bytes read.
type countingReader struct {
	r io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// InflateRaw decompresses a bare deflate stream, within the limits of Inflate.
func InflateRaw(packed []byte, most int64) ([]byte, error) {
	z := flate.NewReader(bytes.NewReader(packed))
	out := make([]byte, 0, min(int64(len(packed))*4+512, most))
	for {
		if len(out) == cap(out) {
			out = append(out, 0)[:len(out)]
		}
		n, err := z.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		switch {
		case int64(len(out)) > most, ExceedsRatio(int64(len(packed)), int64(len(out))):
			return nil, errOutgrown()
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, err
		}
	}
}

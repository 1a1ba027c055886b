package egress

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

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
	return fault.New(fault.InvalidProviderResponse, "", "The host's response has an excessive compression ratio")
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

// Cap bounds a response's body to p.MaxResponse bytes. A body that announces more is
// closed and rejected at once. If a body turns out longer, the read that passes the bound
// fails. Both errors are a 502 fault, invalid_provider_response. Cap does nothing when
// MaxResponse is 0.
func (p *Policy) Cap(resp *http.Response) error {
	if p.MaxResponse <= 0 {
		return nil
	}
	if resp.ContentLength > p.MaxResponse {
		resp.Body.Close()
		return tooLarge(p.MaxResponse)
	}
	resp.Body = CapBody(resp.Body, p.MaxResponse)
	return nil
}

// CapBody passes up to max bytes of body, then fails with the fault of Cap.
func CapBody(body io.ReadCloser, max int64) io.ReadCloser {
	return &capped{body: body, left: max, max: max}
}

func tooLarge(max int64) error {
	return fault.Newf(fault.InvalidProviderResponse, "", "The host's response is larger than the %d bytes allowed", max)
}

type capped struct {
	body      io.ReadCloser
	left, max int64
}

func (c *capped) Read(b []byte) (int, error) {
	if c.left < 0 {
		return 0, tooLarge(c.max)
	}
	if int64(len(b)) > c.left+1 {
		b = b[:c.left+1] // one more than allowed distinguishes "full" from "too large"
	}
	n, err := c.body.Read(b)
	c.left -= int64(n)
	if c.left < 0 {
		return n - 1, tooLarge(c.max)
	}
	return n, err
}

func (c *capped) Close() error { return c.body.Close() }

// networkError recognizes errors of the network, of TLS, of the policy and of a connection
// that ended, by their type. They quote nothing that a host sent.
func networkError(err error) bool {
	var (
		op      *net.OpError
		dns     *net.DNSError
		timeout net.Error
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		name    x509.HostnameError
		issuer  x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		no      syscall.Errno
		f       *fault.Fault
	)
	for _, target := range [...]any{&op, &dns, &cert, &record, &name, &issuer, &invalid, &no, &f} {
		if errors.As(err, target) {
			return true
		}
	}
	if errors.As(err, &timeout) && timeout.Timeout() {
		return true
	}
	for _, target := range [...]error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.Canceled, context.DeadlineExceeded, http.ErrBodyReadAfterClose} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// NoResponse states why a call got no response, as what follows the name of a host. It quotes
// nothing of err, whose text may contain an address with a key.
func NoResponse(err error) string {
	var (
		dns     *net.DNSError
		timeout net.Error
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &dns):
		return "has an address that cannot be resolved"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "cannot be reached over the network"
	case errors.As(err, &cert):
		return "has a certificate that is not valid"
	case errors.As(err, &record):
		return "does not use TLS, as https requires"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "did not respond in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed the connection without a response"
	}
	return "did not answer"
}

// plainly is the error for a call that failed in net/http or another engine: the
// context's own error, one of the network, or that the response was malformed. It omits the
// host's bytes that the engine quotes.
func plainly(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case networkError(err):
		return err
	}
	return malformed("it is not valid HTTP")
}

// plainBody reads the body of another engine's answer; its errors are those of plainly.
type plainBody struct {
	io.ReadCloser
	ctx  context.Context
	stop func() bool // if nil, the body ends with ctx on its own
}

func (b *plainBody) Close() error {
	if b.stop != nil {
		b.stop()
	}
	return b.ReadCloser.Close()
}

func (b *plainBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	if b.ctx.Err() == nil && networkError(err) {
		return n, broken("the response was truncated", err)
	}
	return n, plainly(b.ctx, err)
}

// plainResponse makes the response of another engine look like this package's own.
//
// If an HTTP/2 answer begins before its request was sent, the stream does not notice that
// its context has ended while the host opens no window. Such a response is then closed,
// which ends both.
func plainResponse(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	ctx := req.Context()
	if err != nil {
		return nil, plainly(ctx, err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols && resp.Body != http.NoBody {
		b := &plainBody{ReadCloser: resp.Body, ctx: ctx}
		if resp.ProtoMajor == 2 && !sent(req) {
			b.stop = context.AfterFunc(ctx, func() { _ = b.ReadCloser.Close() })
		}
		resp.Body = b
	}
	return resp, nil
}

// sent reports whether all of the request is known to have gone out.
func sent(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	b, ok := req.Body.(*Body)
	return ok && b.sent.Load()
}

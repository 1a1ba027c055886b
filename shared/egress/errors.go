package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"

	"gateway/shared/fault"
)

// networkError recognises errors of the network, of TLS, of the policy and of a connection
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

// NoAnswer states why a call got no response, as what follows the name of a host. It quotes
// nothing of err, whose text may contain an address with a key.
func NoAnswer(err error) string {
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
		return "did not answer in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "closed the connection without an answer"
	}
	return "did not answer"
}

// plainly is the error for a call that failed in net/http or another engine: the
// context's own error, one of the network, or that the answer was malformed. It omits the
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
	return malformed("it is not HTTP as it should be")
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
		return n, broken("the answer broke off", err)
	}
	return n, plainly(b.ctx, err)
}

// plainAnswer makes the answer of another engine look like this package's own.
//
// If an HTTP/2 answer begins before its request was sent, the stream does not notice that
// its context has ended while the host opens no window. Such an answer is then closed,
// which ends both.
func plainAnswer(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
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

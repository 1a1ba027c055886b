package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/wire/socket"
)

// HTTP1 is the guarded transport for calls on the hot path: HTTP/1.1, plain or over TLS,
// without a goroutine per connection. The caller's goroutine writes the request and reads
// the response. It is an http.RoundTripper with the guarantees of NewTransport: the same
// dialer and policy, no redirects followed, nothing decompressed, no time limit except
// the request's context.
//
// It sends requests without a body and with a Body. Everything else is left to net/http:
// bodies that are streamed, upgrades, trailers, and hosts that only support HTTP/2.
//
// A request is sent again, on a new connection, only if the first connection had been
// used before and ended before any byte of a response. A request that is not idempotent
// is repeated only if the connection ended within staleTime: the host has then closed it
// while it was idle.
type HTTP1 struct {
	standard *Standard
	guard    *guard
	tls      *tls.Config
	idle     idlePool
	streams  *streams
	offers   offers
}

// NewHTTP1 returns the transport for a policy.
func NewHTTP1(p Policy) *HTTP1 { return newHTTP1(p, nil) }

// newHTTP1 takes the resolver, which tests replace; nil is the system's.
func newHTTP1(p Policy, resolver *net.Resolver) *HTTP1 {
	t := &HTTP1{standard: newStandard(p, resolver), guard: &guard{policy: p, resolver: resolver}}
	t.tls = t.standard.common.TLSClientConfig.Clone()
	t.tls.NextProtos = []string{"http/1.1"}
	t.tls.ClientSessionCache = tls.NewLRUClientSessionCache(1024)
	t.idle.idleTimeout = idleTimeout
	t.streams = newStreams(t)
	return t
}

func (t *HTTP1) notifiesObserver() {}

// CloseIdleConnections closes the connections that no request uses.
func (t *HTTP1) CloseIdleConnections() {
	t.idle.closeAll()
	t.streams.closeIdle()
	t.standard.CloseIdleConnections()
}

// RoundTrip implements http.RoundTripper. Its errors are those of NewTransport: IsBlocked
// recognizes a closed address, errors.Is finds the context's own error.
func (t *HTTP1) RoundTrip(req *http.Request) (*http.Response, error) {
	body, ok := t.takes(req)
	if !ok {
		return t.standard.RoundTrip(req)
	}
	var first *conn
	for range 3 {
		resp, err := t.roundTrip(req, body, first)
		if err != errHTTP2 {
			return resp, err
		}
		if resp, err = t.streams.roundTrip(req, body); !errors.Is(err, errHTTP1) {
			return resp, err
		}
		if made, ok := err.(fresh); ok {
			first = made.c
		}
	}
	return nil, errUndecided
}

// errUndecided reports that a host offers HTTP/2 and then rejects it, again and again.
var errUndecided = errors.New("egress: the host does not decide for a protocol")

// takes reports whether this transport can send the request, and gives its body.
func (t *HTTP1) takes(req *http.Request) (*Body, bool) {
	if req.URL == nil || req.Close || len(req.TransferEncoding) > 0 || len(req.Trailer) > 0 || req.Method == http.MethodConnect {
		return nil, false
	}
	if req.URL.Scheme != "https" && req.URL.Scheme != "http" || !plainHost(req.URL.Host) || !plainHost(req.Host) && req.Host != "" {
		return nil, false
	}
	for _, name := range [...]string{"Upgrade", "Expect", "Connection", "Te", "Trailer"} {
		if _, has := req.Header[name]; has {
			return nil, false
		}
	}
	if req.Body == nil || req.Body == http.NoBody {
		return nil, req.ContentLength <= 0
	}
	b, ok := req.Body.(*Body)
	return b, ok && int64(len(b.data)) == req.ContentLength
}

// plainHost reports whether a host has only the characters of names and addresses, so
// that it needs no encoding.
func plainHost(h string) bool {
	for i := range len(h) {
		c := h[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != ':' && c != '[' && c != ']' && c != '_' {
			return false
		}
	}
	return h != ""
}

// errHTTP2 reports that a request must be sent as a stream.
var errHTTP2 = errors.New("egress: HTTP/2 is to be used")

// keyOf is the key of a request's connections.
func keyOf(req *http.Request) hostKey {
	return hostKey{secure: req.URL.Scheme == "https", host: req.URL.Host, lane: laneOf(req)}
}

func (t *HTTP1) roundTrip(req *http.Request, body *Body, c *conn) (*http.Response, error) {
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		if c != nil {
			c.close()
		}
		wrote(req, body, err)
		return nil, context.Cause(ctx)
	}
	key := keyOf(req)
	if c == nil {
		c = t.idle.get(key)
	}
	for {
		if c == nil {
			var err error
			if c, err = t.connect(ctx, key, req); err != nil {
				if err != errHTTP2 {
					wrote(req, body, err)
				}
				return nil, err
			}
		}
		resp, err, again := c.roundTrip(req, body)
		if err == nil {
			return resp, nil
		}
		if err == errStale {
			c = t.idle.get(key)
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !again || body != nil && req.GetBody == nil {
			return nil, err
		}
		if body != nil {
			next, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			if body, _ = next.(*Body); body == nil {
				return nil, errors.New("egress: GetBody gave another kind of body")
			}
		}
		c = nil // the second try uses a fresh connection and is the last one
	}
}

// connect makes a connection to the host of a request. errHTTP2: it must be a stream.
func (t *HTTP1) connect(ctx context.Context, key hostKey, req *http.Request) (*conn, error) {
	addr := address(req)
	if !key.secure {
		raw, err := t.guard.dialPlain(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return newConn(&t.idle, key, socket.Wrap(raw), nil), nil
	}
	offered := t.offers.of(key.host)
	both := offered == bothHTTPs
	if offered == unsolicited || offered == onlyHTTP2 || both && !t.streams.takePlain(key) {
		return nil, errHTTP2
	}
	raw, err := t.guard.dialTLS(ctx, "tcp", addr, t.tls)
	if err != nil {
		if both {
			t.streams.givePlain(key)
		}
		if ctx.Err() != nil || !rejectedProtocol(err) {
			return nil, err
		}
		if offered = unsolicited; both {
			offered = onlyHTTP2
		}
		t.offers.set(key.host, offered)
		return nil, errHTTP2
	}
	secure := raw.(*tls.Conn)
	c := newConn(&t.idle, key, raw, secure)
	if both {
		c.release = sync.OnceFunc(func() { t.streams.givePlain(key) })
		if secure.ConnectionState().NegotiatedProtocol == "" { // it knows ALPN, but agreed on no protocol
			c.close()
			t.offers.set(key.host, onlyHTTP2)
			return nil, errHTTP2
		}
	}
	return c, nil
}

// rejectedProtocol reports whether a host ended a handshake by an alert although other
// handshakes with it have succeeded: then it does not take the protocols that were
// offered.
func rejectedProtocol(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// wrote notes that the transport no longer needs a request's body.
func wrote(req *http.Request, body *Body, err error) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{Err: err})
	}
	if body != nil {
		_ = body.Close()
		if body.observer != nil {
			body.observer.BodyWritten(err == nil)
		}
	}
}

// idempotent reports whether a request may be sent again although the host may have read
// it (RFC 9110, 9.2.2).
func idempotent(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	_, keyed := req.Header["Idempotency-Key"]
	return keyed
}

// Body is a request body of bytes in memory. HTTP1 sends it with the head in one write. The
// bytes must not change until Close was called or, with other transports, until httptrace's
// WroteRequest.
type Body struct {
	data     []byte
	read     int
	observer BodyObserver // may be nil
	sent     atomic.Bool
}

// NewBody returns a body of b, which is not copied.
func NewBody(b []byte) *Body { return &Body{data: b} }

// BodyObserver is notified when a transport no longer reads the bytes of a body. whole
// reports whether the request was sent with all of them.
type BodyObserver interface{ BodyWritten(whole bool) }

// NewObservedBody returns a body of b for a request to HTTP1, which notifies t when it no
// longer reads the bytes: once for this body, and again for each body returned by
// GetBody.
func NewObservedBody(b []byte, t BodyObserver) *Body { return &Body{data: b, observer: t} }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if b.read == len(b.data) {
		return 0, io.EOF
	}
	n := copy(p, b.data[b.read:])
	b.read += n
	return n, nil
}

// WriteTo implements io.WriterTo.
func (b *Body) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.data[b.read:])
	b.read += n
	return int64(n), err
}

// Close implements io.Closer.
func (b *Body) Close() error { return nil }

// malformed is the error for a response that is not correct HTTP/1.1. It quotes nothing of
// the response.
type malformed string

func (m malformed) Error() string { return "egress: malformed answer: " + string(m) }

// broken wraps the error of a connection that failed during a response.
func broken(what string, err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("egress: %s: %w", what, err)
}

// expiredDeadline is a deadline that ends every read and write at once.
var expiredDeadline = time.Unix(1, 0)

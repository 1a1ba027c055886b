package egress

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"gateway/shared/fault"
	"gateway/shared/wire/socket"
)

const (
	dialTimeout = 10 * time.Second // look-up and TCP connect
	tlsTimeout  = 10 * time.Second
)

// NewTransport returns the transport for every outbound call. Each new connection is
// checked against the policy at the moment it connects. Plain http reaches only trusted
// hosts and what the policy allows. The transport ignores proxy settings, follows no
// redirects, forwards bytes as they come (no decompression) and sets no time limit on an
// answer: the request's context does.
//
// A rejected connection gives an error for which IsBlocked is true.
func NewTransport(p Policy) *http.Transport { return newTransport(p, nil) }

// newTransport takes the resolver, which tests replace; nil is the system's.
func newTransport(p Policy, resolver *net.Resolver) *http.Transport {
	g := &guard{policy: p, resolver: resolver}
	t := &http.Transport{
		Proxy:              nil,
		DisableCompression: true,
		ForceAttemptHTTP2:  true,

		// Over HTTP/1.1 each stream holds a connection, so the pool is as wide as the
		// concurrency that a process is expected to carry.
		MaxIdleConns:        maxIdle,
		MaxIdleConnsPerHost: maxIdlePerHost,
		IdleConnTimeout:     idleTimeout,

		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         16 << 10, // one read takes many events of a stream

		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			RootCAs:            p.RootCAs,
			ClientSessionCache: tls.NewLRUClientSessionCache(1024),
		},
		// A connection that went silent (frozen process, lost route) is found by a
		// ping instead of by the next request's failure.
		HTTP2: streamBounds(),
	}
	t.DialContext = g.dialPlain
	// A transport with a separate TLS dialer calls DialContext for http only, which
	// identifies plain connections.
	t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return g.dialTLS(ctx, network, addr, t.TLSClientConfig)
	}
	return t
}

// NewClient returns a client over NewTransport that follows no redirect: the
// caller gets the 3xx answer itself.
func NewClient(p Policy) *http.Client {
	return &http.Client{
		Transport:     NewTransport(p),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// IsBlocked reports whether a call failed because the policy closes its address. Such an
// error has a 400 fault, blocked_host, somewhere in its chain.
func IsBlocked(err error) bool { return fault.Is(err, fault.BlockedHost) }

type guard struct {
	policy   Policy
	resolver *net.Resolver
}

func (g *guard) dialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	return g.dial(ctx, network, addr, true)
}

func (g *guard) dialTLS(ctx context.Context, network, addr string, cfg *tls.Config) (net.Conn, error) {
	raw, err := g.dial(ctx, network, addr, false)
	if err != nil {
		return nil, err
	}
	return handshake(ctx, socket.Wrap(raw), addr, cfg)
}

// handshake speaks TLS over a connection. It closes the connection when that fails.
func handshake(ctx context.Context, raw net.Conn, addr string, cfg *tls.Config) (*tls.Conn, error) {
	host, _, _ := net.SplitHostPort(addr)
	if cfg.ServerName == "" {
		cfg = cfg.Clone()
		cfg.ServerName = host
	}
	conn := tls.Client(raw, cfg)
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

// dial connects to addr with every address it resolves to checked in turn.
func (g *guard) dial(ctx context.Context, network, addr string, plain bool) (net.Conn, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, rejection("the address is malformed")
	}
	port, ok := parsePort(portText)
	if !ok {
		return nil, rejection("the port must be between 1 and 65535")
	}
	host = strings.ToLower(host)
	if a, err := netip.ParseAddr(host); err == nil {
		host = plainAddr(a).String()
	}
	listed := g.policy.listed(host, port)
	d := net.Dialer{
		Timeout:  dialTimeout,
		Resolver: g.resolver,
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			return g.check(network, address, verdict{
				named: listed || g.policy.trusted(host, port), listed: listed, plain: plain,
			})
		},
	}
	return d.DialContext(ctx, network, addr)
}

// verdict is what the name of a host allows for its connections.
type verdict struct {
	named  bool // the policy names this host: its addresses may be private
	listed bool // it names host and port: then the port is not checked either
	plain  bool // no TLS
}

// check decides on one address, just before the socket connects to it.
func (g *guard) check(network, address string, v verdict) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil || !strings.HasPrefix(network, "tcp") {
		return rejection("the address is not a TCP address")
	}
	ap = netip.AddrPortFrom(plainAddr(ap.Addr()), ap.Port())
	p := &g.policy
	if p.never(ap) {
		return rejection("the host resolves to an address that is never reachable from the gateway")
	}
	if v.listed || p.listed(ap.Addr().String(), ap.Port()) {
		return nil
	}
	if closedPort(ap.Port()) {
		return rejection("the port belongs to another kind of service")
	}
	switch {
	case v.named || p.allowed(ap.Addr()):
		return nil
	case v.plain:
		return rejection("http is accepted only for trusted hosts (TRUSTED_CUSTOM_HOSTS); use https")
	case !public(ap.Addr()):
		return rejection("the host resolves to a private or reserved address")
	}
	return nil
}

// rejection never names the address: that would reveal to a caller what internal names
// resolve to.
func rejection(why string) error {
	return fault.New(fault.BlockedHost, "", "Connection refused by the gateway: "+why)
}

// Dialer opens connections that will speak something other than HTTP, such as WebSockets,
// through the same guard as all others.
type Dialer struct {
	guard guard
	tls   *tls.Config
}

// sessions are shared by all dialers, because the first handshake of TLS costs the most.
var sessions = sync.OnceValue(func() tls.ClientSessionCache { return tls.NewLRUClientSessionCache(1024) })

// NewDialer returns a dialer for a policy.
func NewDialer(p Policy) *Dialer {
	return &Dialer{guard: guard{policy: p}, tls: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: p.RootCAs, ClientSessionCache: sessions()}}
}

// Dial connects without TLS, if the policy allows it.
func (d *Dialer) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.guard.dial(ctx, network, addr, true)
}

// DialTLS connects by TLS and offers only HTTP/1.1, because upgrades belong to it.
func (d *Dialer) DialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	raw, err := d.guard.dial(ctx, network, addr, false)
	if err != nil {
		return nil, err
	}
	cfg := d.tls.Clone()
	cfg.ServerName, _, _ = net.SplitHostPort(addr)
	conn := tls.Client(raw, cfg)
	ctx, cancel := context.WithTimeout(ctx, tlsTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

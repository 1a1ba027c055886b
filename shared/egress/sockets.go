package egress

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

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

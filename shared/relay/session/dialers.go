package session

import (
	"io"
	"sync"

	"gateway/shared/egress"
)

// Dialers are the ways out of WebSockets, made when they are needed first. The zero
// value is good.
type Dialers struct {
	once             sync.Once
	public, trusting *egress.Dialer
}

// Of is the way out of a policy; own: to a custom host.
func (d *Dialers) Of(p egress.Policy, own bool) *egress.Dialer {
	d.once.Do(func() { d.public, d.trusting = egress.NewDialer(p.WithoutTrusted()), egress.NewDialer(p) })
	if own {
		return d.trusting
	}
	return d.public
}

// Body is the body of a response that is a connection.
type Body struct{ Conn }

// Read implements io.Reader. It returns io.EOF: only messages can be read.
func (Body) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (b Body) Close() error {
	b.Drop()
	return nil
}

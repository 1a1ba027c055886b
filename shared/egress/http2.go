package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/wire/socket"
)

// Hosts that offer HTTP/2 are called by both protocols. While few requests are running,
// HTTP/1.1 is used, because it costs less per request. Further requests become streams of
// one connection, because every further connection would cost a handshake. The first
// handshake determines by ALPN what a host offers.

const (
	// fewConns is how many connections of HTTP/1.1 a lane has to a host that offers
	// HTTP/2, busy and idle ones together.
	fewConns = 8
	// maxStreamConns bounds the HTTP/2 connections of a lane to a host. The host itself says
	// how many streams each takes, which may be none.
	maxStreamConns = 64
	// maxOffers limits the remembered hosts, because callers choose them. A further host
	// replaces another one, which is probed again.
	maxOffers = 4096
)

// offer is a host's support of HTTP/2.
type offer uint8

const (
	unsolicited offer = iota
	onlyHTTP1         // HTTP/2 is not offered
	bothHTTPs         // HTTP/2 is offered
	onlyHTTP2         // HTTP/2 without HTTP/1.1
)

// offers are the hosts' offers, by host and port as they are written.
type offers struct {
	sync.RWMutex
	known map[string]offer
}

func (o *offers) of(host string) offer {
	o.RLock()
	defer o.RUnlock()
	return o.known[host]
}

func (o *offers) set(host string, what offer) {
	o.Lock()
	defer o.Unlock()
	if o.known == nil {
		o.known = make(map[string]offer)
	}
	if _, there := o.known[host]; !there && len(o.known) >= maxOffers {
		for other := range o.known {
			delete(o.known, other)
			break
		}
	}
	o.known[host] = what
}

// errHTTP1 reports that the host did not choose HTTP/2.
var errHTTP1 = errors.New("egress: the host does not support HTTP/2")

// errBusy reports that a host takes no further streams.
var errBusy = errors.New("egress: the host accepts no more concurrent streams")

// streams are the HTTP/2 connections of a transport. net/http speaks the protocol; the pool
// is here, because connections are not shared between lanes.
type streams struct {
	owner     *HTTP1
	transport *http.Transport
	offered   *tls.Config // with HTTP/2

	mu    sync.Mutex
	hosts map[hostKey]*streamHost
}

// streamHost is one host of a lane.
type streamHost struct {
	conns   []*streamConn
	dialing *dialing // may be nil dials
	plain   int      // connections of HTTP/1.1, busy and idle
}

// streamConn is one connection.
type streamConn struct {
	*http.ClientConn
	most int // concurrent streams that the host initially allowed
}

// reserve reserves a stream. closing reports that the connection takes no more streams,
// although it has fewer than the host allowed: the host is going away.
func (c *streamConn) reserve() (ok, closing bool) {
	if c.Reserve() == nil {
		return true, false
	}
	return false, c.Available() == 0 && c.InFlight() < c.most
}

// dialing is a handshake that several requests wait for.
type dialing struct {
	done  chan struct{}
	err   error
	fresh atomic.Pointer[conn] // the new connection if the host chose HTTP/1.1: the first waiting request takes it
}

// freshTime is how long such a connection may wait to be taken.
const freshTime = 5 * time.Second

// fresh is errHTTP1 with a new connection.
type fresh struct{ c *conn }

func (fresh) Error() string   { return errHTTP1.Error() }
func (fresh) Is(e error) bool { return e == errHTTP1 }

func newStreams(t *HTTP1) *streams {
	s := &streams{owner: t, hosts: make(map[hostKey]*streamHost), offered: t.tls.Clone()}
	s.offered.NextProtos = []string{"h2", "http/1.1"}
	s.transport = &http.Transport{
		DisableCompression: true, MaxResponseHeaderBytes: maxHead, IdleConnTimeout: idleTimeout, HTTP2: streamBounds(),
		// The connection that it dials is the one of the context, over TLS, on which the
		// host has chosen HTTP/2 already.
		Protocols: new(http.Protocols),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return ctx.Value(dialed{}).(*batchedConn), nil
		},
	}
	s.transport.Protocols.SetUnencryptedHTTP2(true)
	return s
}

// dialed is the key of a context's connection.
type dialed struct{}

// streamBounds bounds what a host may send before its client has taken it, and finds
// connections that have gone silent.
func streamBounds() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 64 << 20,
		SendPingTimeout: 30 * time.Second, PingTimeout: 10 * time.Second,
	}
}

// maxTries is how often a request is sent that the host has not processed.
const maxTries = 3

// roundTrip sends a request as a stream. errHTTP1: the host does not want one.
func (s *streams) roundTrip(req *http.Request, body *Body) (*http.Response, error) {
	for try := 1; ; try++ {
		c, err := s.reserve(req)
		if err != nil {
			if errors.Is(err, errHTTP1) {
				return nil, err // the body was not touched
			}
			wrote(req, body, err)
			return nil, plainly(req.Context(), err)
		}
		resp, err := c.RoundTrip(traceBody(req))
		if err == nil || try == maxTries || !unprocessed(err) || req.Context().Err() != nil || body != nil && req.GetBody == nil {
			return plainResponse(req, resp, err)
		}
		if body != nil {
			next, failed := req.GetBody()
			if failed != nil {
				return nil, failed
			}
			again := *req
			again.Body = next
			req = &again
			body, _ = next.(*Body)
		}
	}
}

// resetStream has the fields of net/http's error for a stream that was reset, so that
// errors.As finds it.
type resetStream struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (resetStream) Error() string { return "egress: the stream was reset" }

const rejectedStream = 7 // RFC 9113, 7: REFUSED_STREAM

// unprocessed reports whether an error means that the host has done nothing for the request,
// so that it may be sent again (RFC 9113, 8.7). The texts are those of net/http, which has
// no names for these errors.
func unprocessed(err error) bool {
	var reset resetStream
	if errors.As(err, &reset) {
		return reset.Code == rejectedStream
	}
	switch err.Error() {
	case "http2: client conn not usable", "http2: Transport received Server's graceful shutdown GOAWAY":
		return true
	}
	return false
}

func (s *streams) of(key hostKey) *streamHost {
	h := s.hosts[key]
	if h == nil {
		h = new(streamHost)
		s.hosts[key] = h
	}
	return h
}

// remove drops a host without connections. The caller holds the lock.
func (s *streams) remove(key hostKey) {
	if h := s.hosts[key]; h != nil && len(h.conns) == 0 && h.dialing == nil && h.plain == 0 {
		delete(s.hosts, key)
	}
}

// reserve returns a connection on which a stream is reserved. Only one handshake at a time
// is made with a host; all requests wait for it.
func (s *streams) reserve(req *http.Request) (*streamConn, error) {
	key := keyOf(req)
	for {
		s.mu.Lock()
		h := s.of(key)
		var left []*streamConn // those that do not go away
		for i, c := range h.conns {
			ok, closing := c.reserve()
			if ok {
				if len(left) < i {
					h.conns = append(left, h.conns[i:]...)
				}
				s.mu.Unlock()
				return c, nil
			}
			if !closing {
				left = append(left, c)
			}
		}
		h.conns = left
		d := h.dialing
		if d == nil {
			if len(h.conns) >= maxStreamConns {
				s.mu.Unlock()
				return nil, errBusy
			}
			d = &dialing{done: make(chan struct{})}
			h.dialing = d
			go s.dial(key, address(req), d)
		}
		s.mu.Unlock()
		select {
		case <-d.done:
			if c := d.fresh.Swap(nil); c != nil {
				return nil, fresh{c}
			}
			if d.err != nil {
				return nil, d.err
			}
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		}
	}
}

// dial makes a connection, in whatever protocol the host chooses.
func (s *streams) dial(key hostKey, addr string, d *dialing) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout+tlsTimeout)
	defer cancel()
	secure, wire, err := s.secured(ctx, addr)
	var made *streamConn
	if err == nil {
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			if made, err = s.streamed(ctx, addr, gather(secure, wire)); s.owner.offers.of(key.host) != onlyHTTP2 {
				s.owner.offers.set(key.host, bothHTTPs)
			}
		} else {
			s.owner.offers.set(key.host, onlyHTTP1)
			c := newConn(&s.owner.idle, key, secure, secure)
			d.fresh.Store(c)
			time.AfterFunc(freshTime, func() { // in case all waiting requests have gone
				if d.fresh.CompareAndSwap(c, nil) {
					c.close()
				}
			})
			err = errHTTP1
		}
	}
	s.mu.Lock()
	h := s.of(key)
	if h.dialing = nil; made != nil {
		h.conns = append(h.conns, made)
	}
	s.remove(key)
	d.err = err
	close(d.done)
	s.mu.Unlock()
	if made != nil {
		made.SetStateHook(func(c *http.ClientConn) {
			if c.Err() != nil {
				go s.drop(key, made) // the hook also runs within reserve, which holds the lock
			}
		})
	}
}

// secured creates a connection over TLS, and also returns the connection below it.
func (s *streams) secured(ctx context.Context, addr string) (*tls.Conn, *corked, error) {
	raw, err := s.owner.guard.dial(ctx, "tcp", addr, false)
	if err != nil {
		return nil, nil, err
	}
	wire := &corked{Conn: socket.Wrap(raw)}
	secure, err := handshake(ctx, wire, addr, s.offered)
	return secure, wire, err
}

// settingsTime is how long a new connection waits for the host's settings.
const settingsTime = 500 * time.Millisecond

// streamed starts HTTP/2 on a connection and waits until the host has announced how many
// streams it allows. That is in its first frame, which arrives with the handshake. Before
// that frame a client assumes 100 streams. An excess stream that is sent before the frame
// arrives is a protocol error, and such a request cannot be sent again. If the
// announcement does not arrive in time, the default applies. If the host allows no
// streams at all, the connection is closed: another one would get the same settings.
func (s *streams) streamed(ctx context.Context, addr string, g *batchedConn) (*streamConn, error) {
	c, err := s.transport.NewClientConn(context.WithValue(ctx, dialed{}, g), "http", addr)
	if err != nil {
		_ = g.Close()
		return nil, err
	}
	patience := time.NewTimer(settingsTime)
	defer patience.Stop()
	select {
	case <-g.settled:
	case <-patience.C:
	}
	most := c.Available()
	if most == 0 {
		_ = c.Close()
		return nil, errBusy
	}
	return &streamConn{c, most}, nil
}

// drop takes a closed connection out of the pool.
func (s *streams) drop(key hostKey, c *streamConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[key]; h != nil {
		h.conns = slices.DeleteFunc(h.conns, func(other *streamConn) bool { return other == c })
	}
	s.remove(key)
}

// takePlain reports whether one more HTTP/1.1 connection may be made, and counts it;
// givePlain takes it off the count.
func (s *streams) takePlain(key hostKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.of(key)
	if h.plain >= fewConns {
		return false
	}
	h.plain++
	return true
}

func (s *streams) givePlain(key hostKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[key]; h != nil {
		h.plain--
		s.remove(key)
	}
}

// closeIdle closes the connections without streams, and lets the others end.
func (s *streams) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, h := range s.hosts {
		for _, c := range h.conns {
			idle := func(c *http.ClientConn) {
				if c.InFlight() == 0 && c.Err() == nil {
					go c.Close() // it may wait for its reader
				}
			}
			c.SetStateHook(idle)
			idle(c.ClientConn)
		}
		h.conns = nil
		s.remove(key)
	}
}

// address is the address at which the host of a request is dialled.
func address(req *http.Request) string {
	port := req.URL.Port()
	if port == "" {
		if port = "80"; req.URL.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(req.URL.Hostname(), port)
}

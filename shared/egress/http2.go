package egress

//lint:file-ignore SA1019 net/http gives the streams of one connection no pool of the
// caller's own, by which tenants are kept apart, and none of its rules for sending again.

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

	"golang.org/x/net/http2"

	"gateway/shared/wire/socket"
)

// Hosts that offer HTTP/2 are called by both protocols. While few requests are under way,
// HTTP/1.1 is used, because it costs less for each request. Further requests become streams
// of one connection, because every further connection would cost a handshake. The first
// handshake with a host tells by ALPN what it offers.

const (
	// fewConns is how many connections of HTTP/1.1 a lane has to a host that offers
	// HTTP/2, busy and idle ones together.
	fewConns = 8
	// maxStreamConns bounds the HTTP/2 connections of a lane to a host. The host itself says
	// how many streams each takes, which may be none.
	maxStreamConns = 64
	// maxOffers bounds the hosts that are remembered, because callers choose them. A further
	// host replaces another one, which is asked again.
	maxOffers = 4096
)

// offer is what a host has said about HTTP/2.
type offer uint8

const (
	unasked   offer = iota
	onlyHTTP1       // HTTP/2 is not offered
	bothHTTPs       // HTTP/2 is offered
	onlyHTTP2       // HTTP/2 is offered, and HTTP/1.1 is not spoken
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

// errHTTP1 says that the host did not choose HTTP/2.
var errHTTP1 = errors.New("egress: the host does not take HTTP/2")

// errBusy says that a host takes no further streams.
var errBusy = errors.New("egress: the host takes no more streams at once")

// noConn is an error that happened before a request could be sent.
type noConn struct{ error }

func (e noConn) Unwrap() error { return e.error }

// streams are the HTTP/2 connections, the pool of an http2.Transport.
type streams struct {
	owner     *HTTP1
	transport *http2.Transport
	offered   *tls.Config // with HTTP/2

	mu    sync.Mutex
	hosts map[hostKey]*streamHost
	keys  map[*http2.ClientConn]hostKey
}

// streamHost is one host of a lane.
type streamHost struct {
	conns   []*http2.ClientConn
	dialing *dialing // nil: nobody dials
	plain   int      // connections of HTTP/1.1, busy and idle
}

// dialing is a handshake whose connection several requests wait for.
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
	s := &streams{owner: t, hosts: make(map[hostKey]*streamHost), keys: make(map[*http2.ClientConn]hostKey), offered: t.tls.Clone()}
	s.offered.NextProtos = []string{"h2", "http/1.1"}
	like := &http.Transport{DisableCompression: true, MaxResponseHeaderBytes: maxHead, IdleConnTimeout: idleTime, HTTP2: streamBounds()}
	var err error
	if s.transport, err = http2.ConfigureTransports(like); err != nil {
		panic(err) // cannot happen: this transport was not configured before
	}
	s.transport.DisableCompression = true
	s.transport.IdleConnTimeout = idleTime
	s.transport.MaxHeaderListSize = maxHead
	s.transport.ConnPool = s
	return s
}

// streamBounds bounds what a host may send before its client has taken it, and finds
// connections that have gone silent.
func streamBounds() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxReceiveBufferPerStream: 256 << 10, MaxReceiveBufferPerConnection: 64 << 20,
		SendPingTimeout: 30 * time.Second, PingTimeout: 10 * time.Second,
	}
}

// roundTrip sends a request as a stream. errHTTP1: the host does not want one.
func (s *streams) roundTrip(req *http.Request, body *Body) (*http.Response, error) {
	resp, err := s.transport.RoundTrip(told(req))
	var none noConn
	if errors.As(err, &none) {
		if err = none.error; errors.Is(err, errHTTP1) {
			return nil, err // the body was not touched
		}
		wrote(req, body, err)
	}
	return plainAnswer(req, resp, err)
}

func (s *streams) of(key hostKey) *streamHost {
	h := s.hosts[key]
	if h == nil {
		h = new(streamHost)
		s.hosts[key] = h
	}
	return h
}

// forget drops a host without connections. The caller holds the lock.
func (s *streams) forget(key hostKey) {
	if h := s.hosts[key]; h != nil && len(h.conns) == 0 && h.dialing == nil && h.plain == 0 {
		delete(s.hosts, key)
	}
}

// GetClientConn implements http2.ClientConnPool: a connection with room for one more
// stream. Only one handshake at a time is made with a host; all requests wait for it.
func (s *streams) GetClientConn(req *http.Request, _ string) (*http2.ClientConn, error) {
	key := keyOf(req)
	for {
		s.mu.Lock()
		h := s.of(key)
		for _, c := range h.conns {
			if c.ReserveNewRequest() {
				s.mu.Unlock()
				return c, nil
			}
		}
		d := h.dialing
		if d == nil {
			if len(h.conns) >= maxStreamConns {
				s.mu.Unlock()
				return nil, noConn{errBusy}
			}
			d = &dialing{done: make(chan struct{})}
			h.dialing = d
			go s.dial(key, address(req), d)
		}
		s.mu.Unlock()
		select {
		case <-d.done:
			if c := d.fresh.Swap(nil); c != nil {
				return nil, noConn{fresh{c}}
			}
			if d.err != nil {
				return nil, noConn{d.err}
			}
		case <-req.Context().Done():
			return nil, noConn{context.Cause(req.Context())}
		}
	}
}

// dial makes a connection, in whatever protocol the host chooses.
func (s *streams) dial(key hostKey, addr string, d *dialing) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout+tlsTimeout)
	defer cancel()
	secure, wire, err := s.secured(ctx, addr)
	var made *http2.ClientConn
	if err == nil {
		if secure.ConnectionState().NegotiatedProtocol == http2.NextProtoTLS {
			if made, err = s.transport.NewClientConn(gather(secure, wire)); err != nil {
				_ = secure.Close()
			} else if made, err = usable(made); s.owner.offers.of(key.host) != onlyHTTP2 {
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
	defer s.mu.Unlock()
	h := s.of(key)
	if h.dialing = nil; made != nil {
		h.conns = append(h.conns, made)
		s.keys[made] = key
	}
	s.forget(key)
	d.err = err
	close(d.done)
}

// secured makes a connection over TLS, and also returns what is below it.
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

// awaitSettings waits until the host has said how many streams it takes. That is in its
// first frame, which comes with the handshake. Before that frame a client assumes 100
// streams. A stream too many that is sent before the frame comes in is a protocol error,
// and such a request cannot be sent again. A host that says nothing in time is taken as it
// is.
func awaitSettings(c *http2.ClientConn) {
	for waited := time.Duration(0); waited < settingsTime; waited += time.Millisecond {
		if state := c.State(); state.MaxConcurrentStreams > 0 || state.Closed || state.Closing {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// usable waits for the host's settings and gives the connection. If the host takes no
// streams at all, it closes the connection: another one would get the same settings.
func usable(c *http2.ClientConn) (*http2.ClientConn, error) {
	awaitSettings(c)
	if c.CanTakeNewRequest() {
		return c, nil
	}
	_ = c.Close()
	return nil, errBusy
}

// MarkDead implements http2.ClientConnPool.
func (s *streams) MarkDead(c *http2.ClientConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(c)
}

func (s *streams) drop(c *http2.ClientConn) {
	key, there := s.keys[c]
	if !there {
		return
	}
	delete(s.keys, c)
	if h := s.hosts[key]; h != nil {
		h.conns = slices.DeleteFunc(h.conns, func(other *http2.ClientConn) bool { return other == c })
	}
	s.forget(key)
}

// takePlain tells whether one more HTTP/1.1 connection may be made, and counts it;
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
		s.forget(key)
	}
}

// closeIdle closes the connections without streams, and lets the others end.
func (s *streams) closeIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.keys {
		c.SetDoNotReuse()
		if state := c.State(); state.StreamsActive+state.StreamsReserved+state.StreamsPending == 0 {
			go c.Close() // it may wait for its reader
		}
		s.drop(c)
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

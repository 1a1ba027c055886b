package http1

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gateway/shared/wire/socket"
)

// Options bound what clients may cost.
type Options struct {
	HeadTime time.Duration // for a request's head
	IdleTime time.Duration // between requests
	// BodyTime is how long a body may bring nothing; beyond it, 128 bytes must have
	// come for each second that was waited. The handler is told by
	// os.ErrDeadlineExceeded. 0: for ever.
	BodyTime time.Duration
	// WriteTime is how long a client may take nothing of an answer. 0: for ever.
	WriteTime time.Duration
	MaxHead   int // of a head, in bytes

	MaxConns      int // in all; 0: no bound
	MaxPerAddress int // from one address, or 64 bits of IPv6; 0: no bound
	// Crowded serves connections beyond these bounds: one request each, and a few at
	// a time. nil: the handler does.
	Crowded http.Handler

	// Standard leaves everything to net/http.
	Standard bool
	// Panicked is told of a handler's panic, in the handler's goroutine. It may be
	// nil. The connection is closed either way.
	Panicked func(any)
}

// Server serves one handler.
type Server struct {
	handler  http.Handler
	options  Options
	standard *http.Server // serves what is handed over
	handed   *handover
	gate     *gate
	base     context.Context // of every request
	template *http.Request

	closing atomic.Bool
	done    chan struct{} // closed when nothing is to be watched any more
	stop    sync.Once
	clock   clock

	mu    sync.Mutex
	ln    net.Listener
	conns map[*conn]struct{}
}

// New makes a server, which serves once.
func New(h http.Handler, o Options) *Server {
	s := &Server{
		handler: h, options: o, template: new(http.Request), done: make(chan struct{}), conns: make(map[*conn]struct{}),
		gate: newGate(&o),
	}
	s.standard = s.newStandard()
	// httputil.ReverseProxy tells by it that a panic cuts the connection.
	s.base = context.WithValue(context.Background(), http.ServerContextKey, s.standard)
	s.clock.begin()
	return s
}

// Serve takes connections until Shutdown or Close, and then gives
// http.ErrServerClosed. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.ln = ln
	if s.options.Standard || !socket.Supported {
		s.mu.Unlock()
		if err := s.standard.Serve(counted{ln, s}); !s.closing.Load() {
			return err
		}
		return http.ErrServerClosed
	}
	s.handed = newHandover(ln.Addr())
	s.mu.Unlock()
	defer ln.Close()
	if s.closing.Load() {
		return http.ErrServerClosed
	}
	go s.watch()                                   // ends with done
	go func() { _ = s.standard.Serve(s.handed) }() // ends when the server is closed
	for wait := time.Duration(0); ; {
		c, err := ln.Accept()
		switch {
		case err == nil:
			wait = 0
			s.take(c)
		case s.closing.Load():
			return http.ErrServerClosed
		case !passing(err):
			_ = s.Close()
			return err
		default: // as net/http waits: files may become free
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(wait):
			case <-s.done:
			}
		}
	}
}

// passing tells whether an error of Accept says nothing of the listener.
func passing(err error) bool {
	var no syscall.Errno
	return errors.As(err, &no) && (no.Temporary() || no == syscall.ECONNABORTED)
}

// take begins to serve a connection.
func (s *Server) take(raw net.Conn) {
	t := s.gate.enter(raw.RemoteAddr(), raw)
	if tcp, ok := raw.(*net.TCPConn); ok {
		if c := newConn(s, tcp, t); c != nil {
			s.mu.Lock()
			s.conns[c] = struct{}{}
			s.mu.Unlock()
			c.enter(fresh)
			go c.serve()
			return
		}
	}
	s.handed.give(&begun{Conn: raw, ticket: t, writeTime: s.options.WriteTime})
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// drainPause is how often Shutdown looks whether all is done, at most.
const drainPause = 100 * time.Millisecond

// Shutdown takes no new connections and no new requests, closes idle connections
// and returns when running requests have ended, or with ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.halt()
	standard := make(chan error, 1)
	go func() { standard <- s.standard.Shutdown(ctx) }()
	for pause := time.Millisecond; !s.quiet(); pause = min(2*pause, drainPause) {
		select {
		case <-ctx.Done():
			<-standard
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	err := <-standard
	if err == nil {
		s.stop.Do(func() { close(s.done) })
	}
	return err
}

// halt ends the taking of connections.
func (s *Server) halt() {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln != nil {
		_ = s.ln.Close()
	}
}

// quiet closes the connections that no request uses and tells whether there are
// no others.
func (s *Server) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.closeIdle()
	}
	return len(s.conns) == 0
}

// Close closes all connections, whatever goes on.
func (s *Server) Close() error {
	s.halt()
	s.stop.Do(func() { close(s.done) })
	s.mu.Lock()
	for c := range s.conns {
		_ = c.net.Close()
		c.gone()
	}
	s.mu.Unlock()
	return s.standard.Close()
}

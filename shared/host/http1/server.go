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

	"gateway/shared/wire/engine"
	"gateway/shared/wire/socket"
)

// Options limits the resources of clients.
type Options struct {
	HeadTime time.Duration // for a request's head
	IdleTime time.Duration // between requests
	// BodyTime is how long a body may pause; beyond it, 128 bytes must have arrived for
	// each second of waiting. The handler gets os.ErrDeadlineExceeded. 0 means forever.
	BodyTime time.Duration
	// WriteTime is how long a client may accept nothing of a response. 0 means forever.
	WriteTime time.Duration
	MaxHead   int // of a head, in bytes

	MaxConns      int // total; 0 means no limit
	MaxPerAddress int // per address, or per /64 prefix of IPv6; 0 means no limit
	// Overload serves connections beyond these limits, one request each, a few at a time;
	// the handler if nil.
	Overload http.Handler

	// Standard uses net/http for everything.
	Standard bool
	// Panicked is called for a handler's panic, in the handler's goroutine. It may be
	// nil. The connection is closed in any case.
	Panicked func(any)
}

// Server serves one handler.
type Server struct {
	handler  http.Handler
	options  Options
	standard *http.Server // serves connections that are handed over
	handed   *handover
	gate     *connLimit
	base     context.Context // of every request
	template *http.Request

	closing atomic.Bool
	done    chan struct{} // closed when there is nothing left to watch
	stop    sync.Once
	clock   clock

	mu    sync.Mutex
	ln    net.Listener
	conns map[*conn]struct{}
}

// New returns a server, which serves once.
func New(h http.Handler, o Options) *Server {
	s := &Server{
		handler: h, options: o, template: new(http.Request), done: make(chan struct{}), conns: make(map[*conn]struct{}),
		gate: newConnLimit(&o),
	}
	s.standard = s.newStandard()
	// httputil.ReverseProxy detects by it that a panic cuts the connection.
	s.base = context.WithValue(context.Background(), http.ServerContextKey, s.standard)
	s.clock.begin()
	return s
}

// Serve accepts connections until Shutdown or Close, and then returns
// http.ErrServerClosed. It closes ln.
func (s *Server) Serve(ln net.Listener) error {
	s.mu.Lock()
	s.ln = ln
	if s.options.Standard || !socket.Supported || !engine.Linked {
		s.mu.Unlock()
		if err := s.standard.Serve(countedListener{ln, s}); !s.closing.Load() {
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
			s.accept(c)
		case s.closing.Load():
			return http.ErrServerClosed
		case !isTransient(err):
			_ = s.Close()
			return err
		default: // retry like net/http: file descriptors may become available
			wait = min(max(2*wait, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(wait):
			case <-s.done:
			}
		}
	}
}

// isTransient reports whether an error of Accept does not concern the listener.
func isTransient(err error) bool {
	var no syscall.Errno
	return errors.As(err, &no) && (no.Temporary() || no == syscall.ECONNABORTED)
}

// accept starts to serve a connection.
func (s *Server) accept(raw net.Conn) {
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
	s.handed.handOver(&replayConn{Conn: raw, ticket: t, writeTime: s.options.WriteTime})
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// drainPause is the maximum interval of Shutdown's checks.
const drainPause = 100 * time.Millisecond

// Shutdown rejects new connections and requests, closes idle connections and returns when
// running requests have ended, or with ctx's error.
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

// halt stops accepting connections.
func (s *Server) halt() {
	s.closing.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln != nil {
		_ = s.ln.Close()
	}
}

// quiet closes unused connections and reports whether there are no others.
func (s *Server) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.closeIdle()
	}
	return len(s.conns) == 0
}

// Close closes all connections immediately.
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

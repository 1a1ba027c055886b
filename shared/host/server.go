package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"gateway/shared/host/http1"
)

// DrainTime is how long running streams may go on after a stop was asked for.
const DrainTime = 30 * time.Second

// Server is the host of a long-running process.
type Server struct {
	http *http1.Server
	ln   net.Listener
}

// Listen opens addr. The server's timeouts bound slow request heads; bodies and
// answers may take as long as a model does.
func Listen(addr string, h http.Handler) (*Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("host: listen on %s: %w", addr, err)
	}
	return &Server{ln: ln, http: http1.New(h, http1.Options{
		HeadTime: 10 * time.Second,
		IdleTime: 120 * time.Second,
		MaxHead:  64 << 10,
		Panicked: logPanic,
	})}, nil
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Run serves until ctx ends, then takes no new requests, lets running ones
// finish within DrainTime and returns.
func (s *Server) Run(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.ln) }()
	select {
	case err := <-failed:
		return fmt.Errorf("host: serve: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTime)
	defer cancel()
	err := s.http.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = s.http.Close()
	}
	<-failed
	return err
}

package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/host/alias"
	"gateway/shared/host/http1"
	"gateway/shared/mcp/cors"
	"gateway/shared/mcp/oauthserver"
)

// DrainTime is how long running streams may continue after a shutdown was requested.
const DrainTime = 30 * time.Second

// Variables of long-running processes, besides app.EnvHTTP.
const (
	EnvMaxConns      = "GATEWAY_MAX_CONNECTIONS"             // total; 0 means no limit
	EnvMaxPerAddress = "GATEWAY_MAX_CONNECTIONS_PER_ADDRESS" // per client address; 0 means no limit
)

// Options are the settings of a long-running process.
type Options struct {
	Standard bool // use net/http instead of the http1 engine
	// MaxConns and MaxPerAddress limit the connections; 0 means no limit. Beyond the
	// limit, a few connections are accepted for one request each, which succeeds only for
	// /healthz.
	MaxConns, MaxPerAddress int
	IdleTime                time.Duration // of connections between requests
	// Aliases of the headers, and the web pages that may call MCP servers: the caller
	// wraps the handler in both.
	Aliases alias.Prefixes
	Pages   cors.Pages
	// DataPages are the web pages that may call the data plane: the caller wraps its handler.
	DataPages cors.DataPlane
}

// DefaultOptions returns the options of a process without a load balancer.
func DefaultOptions() Options {
	return Options{MaxConns: 4096, MaxPerAddress: 1024, IdleTime: 120 * time.Second}
}

// FromEnvironment applies environment variables.
func (o Options) FromEnvironment() (Options, error) {
	var err error
	if o.Aliases, err = alias.FromEnvironment(); err != nil {
		return o, err
	}
	if o.Pages, err = cors.FromEnvironment(oauthserver.Public(os.Getenv(oauthserver.EnvPublic))); err != nil {
		return o, err
	}
	if o.DataPages, err = cors.DataPlaneFromEnvironment(); err != nil {
		return o, err
	}
	for name, to := range map[string]*int{EnvMaxConns: &o.MaxConns, EnvMaxPerAddress: &o.MaxPerAddress} {
		v := os.Getenv(name)
		if v == "" {
			continue
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 {
			return o, fmt.Errorf("%s must be a whole number, 0 or above", name)
		}
		*to = n
	}
	return o, nil
}

// Server is the host of a long-running process.
type Server struct {
	http *http1.Server
	ln   net.Listener
}

// Listen opens addr. Bodies and responses may take as long as a model does, as long as
// they progress.
func Listen(addr string, h http.Handler, o Options) (*Server, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("host: listen on %s: %w", addr, err)
	}
	return &Server{ln: ln, http: http1.New(h, http1.Options{
		HeadTime:  10 * time.Second,
		IdleTime:  o.IdleTime,
		BodyTime:  30 * time.Second,
		WriteTime: 60 * time.Second,
		MaxHead:   64 << 10,

		MaxConns: o.MaxConns, MaxPerAddress: o.MaxPerAddress, Crowded: crowded(h),
		Standard: o.Standard, Panicked: logPanic,
	})}, nil
}

// crowded responds on connections beyond the limits: the process is alive but overloaded.
func crowded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			h.ServeHTTP(w, r)
			return
		}
		f := fault.New(fault.ServiceUnavailable, "", "Too many connections are open; use those that are, or try again later")
		f.RetryAfter = time.Second
		f.SetHeaders(w.Header())
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.Status())
		_, _ = w.Write(f.DataBody(false))
	})
}

// Addr returns the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Close releases the address of a server that will not run.
func (s *Server) Close() { _ = s.ln.Close() }

// Run serves until ctx ends, then rejects new requests, lets running ones finish within
// DrainTime and returns.
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

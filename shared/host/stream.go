package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/fault"
	"gateway/shared/host/alias"
	"gateway/shared/host/http1"
	"gateway/shared/host/originauth"
	"gateway/shared/mcp/cors"
)

// MaxLambdaBody is the largest request body, in bytes, that is safe in a Lambda event,
// which escapes it again.
const MaxLambdaBody = 3_500_000

const (
	// closeMargin is reserved before the invocation's deadline: later output of this
	// process is lost.
	closeMargin = 2 * time.Second
	// accountingMargin precedes it: the request's context ends, so that the handler stops
	// waiting for the provider and writes its usage record.
	accountingMargin = 2 * time.Second
	// frozenFor is the pause between requests after which connections may have died while
	// the process was frozen.
	frozenFor = 20 * time.Second
	// defaultKeepAlive is the idle time of a stream before a comment is sent.
	defaultKeepAlive = 15 * time.Second
)

// BodyEnder is implemented by responses with a body that can end before the handler
// returns. A handler that still has accounting to do calls EndBody after its last byte:
// the caller has the complete response, and the host waits for the handler.
type BodyEnder interface{ EndBody() }

// Stream adapts a handler to API Gateway REST events with streamed responses. It is safe
// for concurrent invocations.
type Stream struct {
	Handler   http.Handler
	Verifier  *originauth.Verifier // nil admits every request
	KeepAlive time.Duration        // idle time of a server-sent event stream before a comment line; 15 s if zero
	Thaw      func()               // called before a request after more than 20 s of frozen time
	Now       func() time.Time     // time.Now if nil

	mu   sync.Mutex
	last time.Time // end of the last invocation, or the start of a running one
}

// Invoke is the Lambda handler.
func (s *Stream) Invoke(ctx context.Context, ev events.APIGatewayProxyRequest) (*events.APIGatewayProxyStreamingResponse, error) {
	if s.frozen() && s.Thaw != nil {
		s.Thaw()
	}
	req, err := newRequest(ctx, &ev, s.Verifier)
	if err == nil && req.ContentLength > MaxLambdaBody {
		err = fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes on this route", MaxLambdaBody)
	}
	if err != nil {
		return rejection(fault.From(err)), nil
	}
	var deadline time.Time
	cancel := func() {}
	if d, ok := ctx.Deadline(); ok {
		deadline = d.Add(-closeMargin)
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-accountingMargin))
		req = req.WithContext(ctx)
	}
	keepAlive := s.KeepAlive
	if keepAlive == 0 {
		keepAlive = defaultKeepAlive
	}
	pr, pw := io.Pipe()
	w := newStreamWriter(pw, keepAlive)
	done := make(chan struct{})
	go func() { // ends with the handler; Close waits for it
		defer close(done)
		defer cancel()
		serve(s.Handler, w, req)
	}()
	<-w.committed
	return &events.APIGatewayProxyStreamingResponse{
		StatusCode: w.status, MultiValueHeaders: prelude(w.sent),
		Body: &streamBody{pipe: pr, done: done, deadline: deadline, closed: s.touch},
	}, nil
}

// serve runs the handler and ends the response, also after a panic, which would end the
// process.
func serve(h http.Handler, w *streamWriter, req *http.Request) {
	defer w.end(nil)
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			w.end(errBroken)
		default:
			logPanic(p)
			w.fail(fault.Internal(nil))
		}
	}()
	h.ServeHTTP(w, req)
}

// logPanic logs where a handler panicked. A value that is not a runtime error may contain
// secrets; only its type is logged.
func logPanic(p any) {
	what := fmt.Sprintf("%T", p)
	if err, ok := p.(runtime.Error); ok {
		what = err.Error()
	}
	slog.Error("handler panicked", "panic", what, "stack", string(debug.Stack()))
}

func (s *Stream) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// frozen reports whether the process may have been frozen since the last request.
func (s *Stream) frozen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	was := !s.last.IsZero() && now.Sub(s.last) > frozenFor
	s.last = now
	return was
}

func (s *Stream) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.now()
}

func rejection(f *fault.Fault) *events.APIGatewayProxyStreamingResponse {
	h := http.Header{}
	f.SetHeaders(h)
	h.Set("Content-Type", "application/json")
	return &events.APIGatewayProxyStreamingResponse{
		StatusCode: f.Status(), MultiValueHeaders: h,
		Body: strings.NewReader(string(f.DataBody(false))),
	}
}

// prelude returns the response's header without the fields that the integration sets.
func prelude(h http.Header) map[string][]string {
	out := make(map[string][]string, len(h))
	for k, v := range h {
		switch k {
		case "Content-Length", "Transfer-Encoding", "Connection":
		default:
			out[k] = v
		}
	}
	return out
}

// streamBody is the reader for the Lambda library. Close runs when the response has been
// posted and before the next event is taken: it waits until the handler has finished its
// accounting.
type streamBody struct {
	pipe     *io.PipeReader
	done     <-chan struct{}
	deadline time.Time // zero if there is none
	closed   func()
}

func (b *streamBody) Read(p []byte) (int, error) { return b.pipe.Read(p) }

// Close unblocks a handler with an abandoned response and waits for it.
func (b *streamBody) Close() error {
	_ = b.pipe.CloseWithError(errGone) // never fails
	defer b.closed()
	if b.deadline.IsZero() {
		<-b.done
		return nil
	}
	t := time.NewTimer(time.Until(b.deadline))
	defer t.Stop()
	select {
	case <-b.done:
		return nil
	case <-t.C:
		slog.Error("the handler did not end before the deadline; its accounting may be missing")
		return errLate
	}
}

var (
	errGone   = errors.New("host: the response is over")
	errBroken = errors.New("host: the response was truncated")
	errLate   = errors.New("host: the handler did not end before the deadline")
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
	if o.Pages, err = cors.FromEnvironment(cors.Public(os.Getenv(cors.EnvPublic))); err != nil {
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

		MaxConns: o.MaxConns, MaxPerAddress: o.MaxPerAddress, Overload: crowded(h),
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
		f := fault.New(fault.ServiceUnavailable, "", "Too many connections are open; reuse them, or try again later")
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

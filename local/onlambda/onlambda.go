// Package onlambda serves the real function binaries at one HTTP address. It converts requests
// into REST API events as API Gateway does, passes them to the functions through a Runtime API
// on loopback, and forwards what the functions stream back. Queues and schedules reach their
// workers in the same way.
package onlambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/fault"
	"gateway/shared/host"
	"gateway/shared/host/placement"
	"gateway/shared/host/runtimeapi"
	"gateway/shared/relay/upstream"
)

// Timeouts of the functions, as in a deployed installation.
const (
	streamTimeout   = 15 * time.Minute
	bufferedTimeout = 29 * time.Second
	workerTimeout   = 5 * time.Minute
)

// Options of a Platform.
type Options struct {
	// Dir holds <function>/bootstrap, as scripts/lambdas.sh builds them for this
	// machine.
	Dir string
	// Env are the variables of the functions.
	Env []string
	// Log takes what the functions print.
	Log io.Writer
	// Secret proves to the functions that a request came through this edge.
	Secret string
	// Container starts the container when the first request needs it, and returns where it
	// listens; nil: there is none, and its routes do what the placement table says for that
	// case. It is called again until it succeeds.
	Container func(context.Context) (string, error)
	// Build makes a function's binary before its first event; nil: all binaries are there. It
	// is called again until it succeeds.
	Build func(ctx context.Context, function string) error
	// EnvOf returns variables that one function has besides Env; nil: none.
	EnvOf func(function string) []string
	// Max is how many environments a function may have; 0: 10.
	Max int
}

// Platform is the edge, the API and the platform of the functions. It is safe for
// concurrent use.
type Platform struct {
	o         Options
	container once[http.Handler]

	mu    sync.Mutex
	pools map[string]*once[*runtimeapi.Pool]
}

// once makes a value when it is first needed; after a failure it tries again.
type once[T any] struct {
	mu    sync.Mutex
	made  bool
	value T
}

func (o *once[T]) get(make func() (T, error)) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.made {
		return o.value, nil
	}
	v, err := make()
	if err == nil {
		o.value, o.made = v, true
	}
	return v, err
}

// New makes a shim. A function starts with its first event.
func New(o Options) *Platform { return &Platform{o: o, pools: map[string]*once[*runtimeapi.Pool]{}} }

// toContainer returns the handler that passes requests to the container.
func (s *Platform) toContainer(ctx context.Context) (http.Handler, error) {
	return s.container.get(func() (http.Handler, error) {
		addr, err := s.o.Container(context.WithoutCancel(ctx))
		if err != nil {
			return nil, err
		}
		to := &url.URL{Scheme: "http", Host: addr}
		return &httputil.ReverseProxy{
			Rewrite: func(p *httputil.ProxyRequest) {
				p.SetURL(to)
				p.Out.Host = p.In.Host
				s.forwarded(p.Out.Header, p.In)
				if p.Out.Body != nil {
					p.Out.Body = upstream.WithLength(p.Out.Body, p.Out.ContentLength)
				}
			},
			FlushInterval: -1,
		}, nil
	})
}

// Build makes the binaries of all functions for this machine in dir, and leaves those that
// are up to date. They stay up to date as long as the source does, so the commit is not
// stamped into them. Build needs the source tree and the go command.
func Build(ctx context.Context, root, dir string, names ...string) error {
	dir, err := filepath.Abs(dir) // the script works in the source tree
	if err != nil {
		return fmt.Errorf("onlambda: build: %w", err)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "scripts", "lambdas.sh"), append([]string{"--out", dir}, names...)...)
	cmd.Env = append(os.Environ(), "GOOS="+hostOS, "GOARCH="+hostArch, "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("onlambda: build: %w\n%s", err, out)
	}
	return nil
}

// pool returns the environments of a function.
func (s *Platform) pool(ctx context.Context, name string) (*runtimeapi.Pool, error) {
	s.mu.Lock()
	p := s.pools[name]
	if p == nil {
		p = &once[*runtimeapi.Pool]{}
		s.pools[name] = p
	}
	s.mu.Unlock()
	return p.get(func() (*runtimeapi.Pool, error) {
		if s.o.Build != nil {
			if err := s.o.Build(ctx, name); err != nil {
				return nil, err
			}
		}
		env := s.o.Env
		if s.o.EnvOf != nil {
			env = append(slices.Clone(env), s.o.EnvOf(name)...)
		}
		return &runtimeapi.Pool{Binary: filepath.Join(s.o.Dir, name, "bootstrap"), Env: env, Log: s.o.Log, Max: s.o.Max}, nil
	})
}

// Prepare makes a function ready for its first event.
func (s *Platform) Prepare(ctx context.Context, name string) error {
	_, err := s.pool(ctx, name)
	return err
}

// Started is how many environments a function has had, that is, its cold starts.
func (s *Platform) Started(ctx context.Context, name string) int {
	p, err := s.pool(ctx, name)
	if err != nil {
		return 0
	}
	return p.Started()
}

// Running is how many events of a function have not been settled: Lambda may freeze its
// environments when there are none.
func (s *Platform) Running(ctx context.Context, name string) int {
	p, err := s.pool(ctx, name)
	if err != nil {
		return 0
	}
	return p.Running()
}

// Close ends each function once its events are done, or when ctx ends.
func (s *Platform) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.pools {
		p.mu.Lock()
		if p.made {
			errs = append(errs, p.value.Close(ctx))
		}
		p.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Limits of the edge: larger requests go to the container.
const (
	maxConfigHeader = 4 << 10
	maxBody         = 10 << 20 // for a request to the API
)

// ServeHTTP routes a request as the edge does.
func (s *Platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/v1")
	if r.URL.Path == "/healthz" {
		w.WriteHeader(http.StatusOK)
		return
	}
	route, known := placement.Find(r.Method, path)
	if !ok || !known {
		reject(w, fault.New(fault.RouteNotFound, "", "There is no such route"))
		return
	}
	large := r.ContentLength > host.MaxLambdaBody || r.ContentLength < 0 || len(r.Header.Get("X-Gateway-Config")) > maxConfigHeader ||
		strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/")
	place := route.Place
	if place == placement.Stream && large {
		place = placement.Container
	}
	if place == placement.Container && s.o.Container != nil {
		to, err := s.toContainer(r.Context())
		if err != nil {
			s.broken(w, "the container", err)
			return
		}
		to.ServeHTTP(w, r)
		return
	}
	if route.Place == placement.Container {
		place = route.WithoutContainer
	}
	if place == placement.Refused {
		reject(w, rejected(route.Status))
		return
	}
	s.invoke(w, r, route)
}

func rejected(status int) *fault.Fault {
	f := fault.New(fault.BodyTooLarge, "body", "Files and audio need the container, which this installation does not have")
	if status == placement.NoFunction || status == placement.NoUpgrade {
		f = fault.New(fault.RouteNotFound, "", "WebSockets need the container, which this installation does not have")
	}
	f.StatusCode = status
	return f
}

func reject(w http.ResponseWriter, f *fault.Fault) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status())
	_, _ = w.Write(f.DataBody(false)) // the client may be gone
}

// invoke responds with what the family's function answers to the request's event.
func (s *Platform) invoke(w http.ResponseWriter, r *http.Request, route placement.Route) {
	ev, err := s.Event(r, route)
	if err != nil {
		reject(w, fault.From(err))
		return
	}
	timeout := streamTimeout
	if route.Place == placement.Buffered {
		timeout = bufferedTimeout
	}
	// The platform does not notify a function when its client disconnects.
	a, err := s.start(context.WithoutCancel(r.Context()), route.Family, ev, timeout)
	if err != nil {
		s.broken(w, "function "+route.Family, err)
		return
	}
	defer a.Body.Close()
	if route.Place == placement.Buffered {
		writeBuffered(w, a)
		return
	}
	for k, v := range a.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.Status)
	if err := copyFlushing(w, a.Body); err != nil {
		panic(http.ErrAbortHandler) // the client must see that the response is incomplete
	}
}

// start gives a function an event.
func (s *Platform) start(ctx context.Context, function string, event []byte, timeout time.Duration) (*runtimeapi.Response, error) {
	p, err := s.pool(ctx, function)
	if err != nil {
		return nil, err
	}
	return p.Invoke(ctx, event, timeout)
}

// broken answers as API Gateway does when a function fails.
func (s *Platform) broken(w http.ResponseWriter, what string, err error) {
	f := fault.Internal(err)
	f.StatusCode = http.StatusBadGateway
	_, _ = fmt.Fprintf(s.o.Log, "%s: %v\n", what, err)
	reject(w, f)
}

// copyFlushing sends each chunk when it arrives. If the client has gone, the function goes
// on: the rest is read and dropped.
func copyFlushing(w http.ResponseWriter, body io.Reader) error {
	flush := http.NewResponseController(w)
	buf := make([]byte, 64<<10)
	var gone error
	for {
		n, err := body.Read(buf)
		if n > 0 && gone == nil {
			if _, gone = w.Write(buf[:n]); gone == nil {
				gone = flush.Flush()
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func writeBuffered(w http.ResponseWriter, a *runtimeapi.Response) {
	var out events.APIGatewayProxyResponse
	if err := json.NewDecoder(a.Body).Decode(&out); err != nil {
		f := fault.Internal(err)
		f.StatusCode = http.StatusBadGateway
		reject(w, f)
		return
	}
	for k, v := range out.Headers {
		w.Header().Set(k, v)
	}
	for k, vs := range out.MultiValueHeaders {
		w.Header()[http.CanonicalHeaderKey(k)] = vs
	}
	w.WriteHeader(out.StatusCode)
	body := []byte(out.Body)
	if out.IsBase64Encoded {
		body = decoded(out.Body)
	}
	_, _ = w.Write(body) // the client may be gone
}

// forwarded adds what the edge and the API add to a request's headers.
func (s *Platform) forwarded(h http.Header, r *http.Request) {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	h.Set("X-Forwarded-For", client+", 127.0.0.1")
	h.Set("X-Gateway-Origin-Secret", s.o.Secret)
}

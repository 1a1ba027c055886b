// Package onlambda puts the real function binaries behind one HTTP address: it
// makes REST API events of requests as API Gateway does, hands them to the
// functions through a Runtime API on loopback and answers with what they stream
// back. Queues and schedules reach their workers the same way.
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
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/fault"
	"gateway/shared/host"
	"gateway/shared/host/placement"
	"gateway/shared/host/runtimeapi"
)

// Timeouts of the functions, as they are deployed.
const (
	streamTimeout   = 15 * time.Minute
	bufferedTimeout = 29 * time.Second
	workerTimeout   = 5 * time.Minute
)

// Options of a Shim.
type Options struct {
	// Dir holds <function>/bootstrap, as scripts/lambdas.sh builds them for this
	// machine.
	Dir string
	// Env is what the functions see.
	Env []string
	// Log takes what the functions print.
	Log io.Writer
	// Secret proves to the functions that a request came through this edge.
	Secret string
	// Container is where the container listens; empty: there is none, and its
	// routes do what the placement table says then.
	Container string
	// Max is how many environments a function may have; 0: 10.
	Max int
}

// Shim is the edge, the API and the platform of the functions. It is safe for
// concurrent use.
type Shim struct {
	o         Options
	container http.Handler

	mu    sync.Mutex
	pools map[string]*runtimeapi.Pool
}

// New makes a shim. Functions start with their first event.
func New(o Options) *Shim {
	s := &Shim{o: o, pools: map[string]*runtimeapi.Pool{}}
	if o.Container != "" {
		to := &url.URL{Scheme: "http", Host: o.Container}
		s.container = &httputil.ReverseProxy{
			Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = p.In.Host; s.forwarded(p.Out.Header, p.In) },
			FlushInterval: -1,
		}
	}
	return s
}

// Build makes the binaries of all functions for this machine in dir, where those
// that are up to date stay; they are when the source is, so the commit is not
// stamped into them. It needs the source tree and the go command.
func Build(ctx context.Context, root, dir string, names ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "scripts", "lambdas.sh"), append([]string{"--out", dir}, names...)...)
	cmd.Env = append(os.Environ(), "GOOS="+hostOS, "GOARCH="+hostArch, "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("onlambda: build: %w\n%s", err, out)
	}
	return nil
}

// pool gives the environments of a function.
func (s *Shim) pool(name string) *runtimeapi.Pool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pools[name]
	if p == nil {
		p = &runtimeapi.Pool{Binary: filepath.Join(s.o.Dir, name, "bootstrap"), Env: s.o.Env, Log: s.o.Log, Max: s.o.Max}
		s.pools[name] = p
	}
	return p
}

// Close ends the functions once they have nothing under way, or when ctx ends.
func (s *Shim) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.pools {
		errs = append(errs, p.Close(ctx))
	}
	return errors.Join(errs...)
}

// Edge bounds: larger requests go to the container.
const (
	maxConfigHeader = 4 << 10
	maxBody         = 10 << 20 // of a request to the API
)

// ServeHTTP routes a request as the edge does.
func (s *Shim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), "/v1")
	if r.URL.Path == "/healthz" {
		w.WriteHeader(http.StatusOK)
		return
	}
	route, known := placement.Find(r.Method, path)
	if !ok || !known {
		refuse(w, fault.New(fault.RouteNotFound, "", "There is no such route"))
		return
	}
	large := r.ContentLength > host.MaxLambdaBody || r.ContentLength < 0 || len(r.Header.Get("X-Gateway-Config")) > maxConfigHeader ||
		strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/")
	place := route.Place
	if place == placement.Stream && large {
		place = placement.Container
	}
	if place == placement.Container && s.container != nil {
		s.container.ServeHTTP(w, r)
		return
	}
	if route.Place == placement.Container {
		place = route.Without
	}
	if place == placement.Refused {
		refuse(w, refused(route.Status))
		return
	}
	s.invoke(w, r, route)
}

func refused(status int) *fault.Fault {
	f := fault.New(fault.BodyTooLarge, "body", "Files and audio need the container, which this installation does not have")
	if status == http.StatusNotImplemented {
		f = fault.New(fault.RouteNotFound, "", "Realtime needs the container, which this installation does not have")
	}
	f.StatusCode = status
	return f
}

func refuse(w http.ResponseWriter, f *fault.Fault) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status())
	_, _ = w.Write(f.DataBody(false)) // the client may be gone
}

// invoke answers with what the family's function says to the request's event.
func (s *Shim) invoke(w http.ResponseWriter, r *http.Request, route placement.Route) {
	ev, err := s.Event(r, route)
	if err != nil {
		refuse(w, fault.From(err))
		return
	}
	timeout := streamTimeout
	if route.Place == placement.Buffered {
		timeout = bufferedTimeout
	}
	// The platform does not tell a function that its client has gone.
	a, err := s.pool(route.Family).Invoke(context.WithoutCancel(r.Context()), ev, timeout)
	if err != nil {
		f := fault.Internal(err)
		f.StatusCode = http.StatusBadGateway // as API Gateway answers
		_, _ = fmt.Fprintf(s.o.Log, "function %s: %v\n", route.Family, err)
		refuse(w, f)
		return
	}
	defer a.Body.Close()
	if route.Place == placement.Buffered {
		answerWhole(w, a)
		return
	}
	for k, v := range a.Header {
		w.Header()[k] = v
	}
	w.WriteHeader(a.Status)
	if err := copyFlushing(w, a.Body); err != nil {
		panic(http.ErrAbortHandler) // the client must see that it is not whole
	}
}

// copyFlushing sends each chunk as it comes. A client that has gone does not end
// the function: the rest is read and dropped.
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

func answerWhole(w http.ResponseWriter, a *runtimeapi.Answer) {
	var out events.APIGatewayProxyResponse
	if err := json.NewDecoder(a.Body).Decode(&out); err != nil {
		f := fault.Internal(err)
		f.StatusCode = http.StatusBadGateway
		refuse(w, f)
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
func (s *Shim) forwarded(h http.Header, r *http.Request) {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	h.Set("X-Forwarded-For", client+", 127.0.0.1")
	h.Set("X-Gateway-Origin-Secret", s.o.Secret)
}

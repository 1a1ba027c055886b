package runtimeapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	base       = "/2018-06-01/runtime/"
	streamType = "application/vnd.awslambda.http-integration-response"
	// functionARN is the invoked function in events.
	functionARN = "arn:aws:lambda:us-east-1:000000000000:function:gateway"
)

// Server is the Runtime API of one execution environment: it runs one event at a time for
// each poll.
type Server struct {
	ln      net.Listener
	http    *http.Server
	pending chan *invocation
	stopped chan struct{}
	stop    sync.Once

	mu      sync.Mutex
	n       int
	flying  map[string]*invocation
	failure error // of the function's start
	polls   int
}

// Listen starts a server on a free port of loopback.
func Listen() (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("runtimeapi: %w", err)
	}
	s := &Server{ln: ln, pending: make(chan *invocation), stopped: make(chan struct{}), flying: map[string]*invocation{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+base+"invocation/next", s.next)
	mux.HandleFunc("POST "+base+"invocation/{id}/response", s.response)
	mux.HandleFunc("POST "+base+"invocation/{id}/error", s.invocationError)
	mux.HandleFunc("POST "+base+"init/error", s.initError)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(ln) }() // ends with Close
	return s, nil
}

// Addr is the value of AWS_LAMBDA_RUNTIME_API.
func (s *Server) Addr() string { return s.ln.Addr().String() }

// Close stops the server and pending calls.
func (s *Server) Close() error {
	s.stop.Do(func() { close(s.stopped) })
	return s.http.Close()
}

// Polls returns how often the function has polled for an event. The first poll ends the
// function's start; each later one ends an invocation.
func (s *Server) Polls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.polls
}

// Response is the response of a function.
type Response struct {
	// Status and Header are those of a streamed response's prelude.
	Status int
	Header http.Header
	// Stream reports whether the response was streamed.
	Stream bool
	// Body is the body of a streamed response, or the complete response otherwise. It ends with
	// a *FunctionError if the function aborted the stream.
	Body io.ReadCloser
	// Settled is closed when the function has polled for its next event: all its work for
	// this one is done.
	Settled <-chan struct{}
}

// FunctionError is the error of a function.
type FunctionError struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (e *FunctionError) Error() string { return "function error " + e.Type + ": " + e.Message }

// ErrStopped is returned by a server that has been closed.
var ErrStopped = errors.New("runtimeapi: stopped")

type invocation struct {
	id       string
	event    []byte
	deadline time.Time
	answered chan result // receives one
	settled  chan struct{}
}

type result struct {
	response *Response
	err      error
}

// Invoke passes the event to the function and waits for the start of its response. The
// function gets timeout for all of it.
func (s *Server) Invoke(ctx context.Context, event []byte, timeout time.Duration) (*Response, error) {
	s.mu.Lock()
	s.n++
	in := &invocation{
		id: fmt.Sprintf("00000000-0000-4000-8000-%012d", s.n), event: event, deadline: time.Now().Add(timeout),
		answered: make(chan result, 1), settled: make(chan struct{}),
	}
	failure := s.failure
	s.mu.Unlock()
	if failure != nil {
		return nil, failure
	}
	select {
	case s.pending <- in:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.stopped:
		return nil, s.why()
	}
	select {
	case a := <-in.answered:
		return a.response, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.stopped:
		return nil, s.why()
	}
}

func (s *Server) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != nil {
		return s.failure
	}
	return ErrStopped
}

func (s *Server) next(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.polls++
	for id, in := range s.flying {
		close(in.settled)
		delete(s.flying, id)
	}
	s.mu.Unlock()
	var in *invocation
	select {
	case in = <-s.pending:
	case <-r.Context().Done():
		return
	case <-s.stopped:
		return
	}
	s.mu.Lock()
	s.flying[in.id] = in
	s.mu.Unlock()
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Lambda-Runtime-Aws-Request-Id", in.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(in.deadline.UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", functionARN)
	h.Set("Lambda-Runtime-Trace-Id", "Root=1-00000000-000000000000000000000000;Sampled=0")
	_, _ = w.Write(in.event) // the owner notices a function that has ended
}

func (s *Server) find(w http.ResponseWriter, r *http.Request) *invocation {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.flying[r.PathValue("id")]
	if in == nil {
		http.Error(w, `{"errorMessage":"unknown invocation","errorType":"InvalidRequestID"}`, http.StatusBadRequest)
	}
	return in
}

func (s *Server) response(w http.ResponseWriter, r *http.Request) {
	in := s.find(w, r)
	if in == nil {
		return
	}
	if r.Header.Get("Content-Type") == streamType {
		s.streamed(in, r)
	} else {
		whole, err := io.ReadAll(r.Body)
		in.answered <- result{&Response{Body: io.NopCloser(bytes.NewReader(whole)), Settled: in.settled}, err}
	}
	w.WriteHeader(http.StatusAccepted)
}

// streamed reads the prelude, then forwards the body as it arrives.
func (s *Server) streamed(in *invocation, r *http.Request) {
	a := &Response{Stream: true, Settled: in.settled}
	if err := readPrelude(r.Body, a); err != nil {
		in.answered <- result{nil, err}
		_, _ = io.Copy(io.Discard, r.Body)
		return
	}
	pr, pw := io.Pipe()
	a.Body = pr
	in.answered <- result{a, nil}
	_, err := io.CopyBuffer(pipeWriter{pw}, r.Body, make([]byte, 64<<10))
	if err == nil {
		err = trailerError(r.Trailer)
	}
	_ = pw.CloseWithError(err) // never fails
	// The platform continues to read after the client has disconnected.
	_, _ = io.Copy(io.Discard, r.Body)
}

// pipeWriter hides the pipe's other methods, so that each read is one write.
type pipeWriter struct{ w io.Writer }

func (p pipeWriter) Write(b []byte) (int, error) { return p.w.Write(b) }

// maxPrelude is far above the platform's limit.
const maxPrelude = 1 << 20

// readPrelude reads {"statusCode",...} and the following eight NUL bytes.
func readPrelude(body io.Reader, a *Response) error {
	var head []byte
	one := make([]byte, 1)
	for !bytes.HasSuffix(head, make([]byte, 8)) {
		if len(head) > maxPrelude {
			return errors.New("runtimeapi: the prelude does not end")
		}
		if _, err := io.ReadFull(body, one); err != nil {
			return fmt.Errorf("runtimeapi: the prelude is cut off: %w", err)
		}
		head = append(head, one[0])
	}
	var p struct {
		StatusCode        int                 `json:"statusCode"`
		Headers           map[string]string   `json:"headers"`
		MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
	}
	if err := json.Unmarshal(head[:len(head)-8], &p); err != nil {
		return fmt.Errorf("runtimeapi: prelude: %w", err)
	}
	if p.StatusCode < 200 || p.StatusCode > 599 {
		return fmt.Errorf("runtimeapi: prelude with status %d", p.StatusCode)
	}
	a.Status, a.Header = p.StatusCode, http.Header{}
	for k, v := range p.Headers {
		a.Header.Set(k, v)
	}
	for k, vs := range p.MultiValueHeaders {
		if _, twice := p.Headers[k]; twice {
			return fmt.Errorf("runtimeapi: header %s is in both forms", k)
		}
		for _, v := range vs {
			a.Header.Add(k, v)
		}
	}
	return nil
}

// trailerError returns the error that ended a stream, if any.
func trailerError(t http.Header) error {
	kind := t.Get("Lambda-Runtime-Function-Error-Type")
	if kind == "" {
		return nil
	}
	e := &FunctionError{Type: kind}
	if raw, err := base64.StdEncoding.DecodeString(t.Get("Lambda-Runtime-Function-Error-Body")); err == nil {
		_ = json.Unmarshal(raw, e) // the type suffices
	}
	return e
}

func (s *Server) invocationError(w http.ResponseWriter, r *http.Request) {
	in := s.find(w, r)
	if in == nil {
		return
	}
	in.answered <- result{nil, readError(r)}
	w.WriteHeader(http.StatusAccepted)
}

func (s *Server) initError(w http.ResponseWriter, r *http.Request) {
	s.failAll(readError(r))
	w.WriteHeader(http.StatusAccepted)
}

// failAll fails pending and future events.
func (s *Server) failAll(err error) {
	s.mu.Lock()
	if s.failure == nil {
		s.failure = err
	}
	s.mu.Unlock()
	s.stop.Do(func() { close(s.stopped) })
}

func readError(r *http.Request) error {
	e := &FunctionError{Type: r.Header.Get("Lambda-Runtime-Function-Error-Type")}
	raw, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if json.Unmarshal(raw, e) != nil {
		e.Message = strings.ToValidUTF8(string(raw), "?")
	}
	return e
}

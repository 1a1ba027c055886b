package mockprovider

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Options sets limits; the zero value works.
type Options struct {
	// KeepRequests limits the number of requests that /__mock/requests shows (64).
	KeepRequests int
	// KeepBytes limits the total of their bodies, in bytes (4 MiB).
	KeepBytes int
	// KeepRows limits the rows of the bill (10,000); the sums have no limit.
	KeepRows int
	// MaxBody limits a request body in bytes (64 MiB); longer ones get 413.
	MaxBody int64
	// CacheMinTokens is the shortest prefix that an Anthropic prompt cache stores (1,024, as
	// for most models).
	CacheMinTokens int64
	// ServiceAccount is the key that Google's token endpoint knows; nil: it refuses every
	// assertion.
	ServiceAccount *rsa.PublicKey
	// Now returns the time; nil: time.Now.
	Now func() time.Time
}

// Server is the mock provider. It is an http.Handler; Listen makes it serve on its own
// address. It is safe for concurrent use.
type Server struct {
	opts    Options
	bill    ledger
	history history
	faults  faultQueue
	caches  promptCaches
	objects resources
	serial  atomic.Int64

	url     string // set by Listen
	http    *http.Server
	stopped chan struct{} // closed by Close: running streams end
	closing atomic.Bool
}

// New makes a server that does not listen yet.
func New(o Options) *Server {
	if o.KeepRequests <= 0 {
		o.KeepRequests = 64
	}
	if o.KeepBytes <= 0 {
		o.KeepBytes = 4 << 20
	}
	if o.KeepRows <= 0 {
		o.KeepRows = 10_000
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	if o.CacheMinTokens <= 0 {
		o.CacheMinTokens = 1024
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{opts: o, stopped: make(chan struct{})}
	s.bill.keep = o.KeepRows
	s.history.keep, s.history.maxBytes = o.KeepRequests, o.KeepBytes
	return s
}

// Listen serves on addr ("127.0.0.1:0" takes a free port) until Close. It returns the
// address as a URL without a path; a provider's base URL is that plus /v1.
func (s *Server) Listen(addr string) (string, error) {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("mock provider: %w", err)
	}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second}
	go func() { _ = s.http.Serve(ln) }() // ends with Close
	s.url = "http://" + ln.Addr().String()
	return s.url, nil
}

// URL is the address that Listen returned; empty before that.
func (s *Server) URL() string { return s.url }

// Close stops listening and ends running requests. Closing twice is harmless.
func (s *Server) Close() error {
	if s.closing.Swap(true) {
		return nil
	}
	close(s.stopped)
	if s.http == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.http.Shutdown(ctx); err != nil {
		return s.http.Close()
	}
	return nil
}

// Bill returns the bill so far, as GET /__mock/bill does.
func (s *Server) Bill() Bill { return s.bill.bill() }

// Requests returns the last n requests, oldest first, as GET /__mock/requests does.
func (s *Server) Requests(n int) []Received { return s.history.last(n) }

// Fault steers the next requests, as POST /__mock/faults does.
func (s *Server) Fault(next int, directives string) error {
	return s.order(queuedFault{Next: next, Directives: directives})
}

// Reset clears the bill, the requests, the faults and the prompt caches.
func (s *Server) Reset() {
	s.bill.reset()
	s.history.reset()
	s.faults.reset()
	s.caches.reset()
	s.objects.reset()
}

var errBodyTooLarge = errors.New("body too large")

func (s *Server) readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > s.opts.MaxBody {
		return nil, errBodyTooLarge
	}
	if r.ContentLength > 0 {
		b := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, b)
		return b, err
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, s.opts.MaxBody+1))
	if err == nil && int64(len(b)) > s.opts.MaxBody {
		err = errBodyTooLarge
	}
	return b, err
}

// ServeHTTP answers as the provider does. It uses the request line as it arrived: it cleans
// no path and sends no redirect.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	if path == "" || path[0] != '/' { // httptest requests and absolute-form targets
		path, query = r.URL.EscapedPath(), r.URL.RawQuery
	}
	if admin := strings.TrimPrefix(path, "/v1"); strings.HasPrefix(admin, "/__mock/") {
		s.administer(w, r, admin)
		return
	}
	body, err := s.readBody(r)
	x := &exchange{s: s, w: w, r: r, body: body, path: path, query: query, st: unsteered()}
	x.anthropic = r.Header["Anthropic-Version"] != nil || strings.HasPrefix(strings.TrimPrefix(path, "/v1"), "/messages")
	if errors.Is(err, errBodyTooLarge) {
		x.reject(&apiError{status: http.StatusRequestEntityTooLarge, message: "Request body is too large."})
		return
	}
	if err != nil {
		panic(http.ErrAbortHandler) // the client has disconnected
	}
	s.history.add(Received{Method: r.Method, Path: path, Query: query, Host: r.Host, Headers: r.Header.Clone(), Body: body, Length: r.ContentLength})
	if e := x.route(); e != nil {
		x.reject(e)
	}
}

// route answers the request or returns the error to answer with.
func (x *exchange) route() *apiError {
	path := x.path
	if rest, ok := strings.CutPrefix(path, "/v1/"); ok {
		path = "/" + rest
	}
	if strings.HasPrefix(path, "/echo/") || path == "/echo" {
		return echo(x)
	}
	if size, ok := strings.CutPrefix(path, "/binary/"); ok {
		return sendBinary(x, size)
	}
	for _, s := range shapes {
		if handle := s.match(x); handle != nil {
			if x.shape = s; s.authenticate == nil {
				return handle(x)
			}
			if e := s.authenticate(x); e != nil {
				return e
			}
			return handle(x)
		}
	}
	if e := x.authenticate(); e != nil {
		return e
	}
	if path == "/models" || strings.HasPrefix(path, "/models/") {
		return models(x, strings.TrimPrefix(strings.TrimPrefix(path, "/models"), "/"))
	}
	handle, known := routed(x, operations(), path)
	switch {
	case handle != nil:
		return handle(x)
	case known:
		return &apiError{status: http.StatusMethodNotAllowed, message: "Not allowed to " + x.r.Method + " on " + x.path + ". (HINT: Perhaps you meant to use a different HTTP method?)"}
	case x.anthropic:
		return &apiError{status: http.StatusNotFound, message: "Not found"}
	}
	return &apiError{status: http.StatusNotFound, message: "Invalid URL (" + x.r.Method + " " + x.path + ")"}
}

// shape is a provider's wire format other than OpenAI's and Anthropic's. The path selects it.
type shape struct {
	name string
	// match returns the handler of the request; nil when the request is not of this shape.
	match        func(*exchange) func(*exchange) *apiError
	authenticate func(*exchange) *apiError // nil: the handler does
	// reject responds with an error as the provider does.
	reject func(*exchange, *apiError)
}

// shapes are tried in this order, before OpenAI's and Anthropic's routes.
var shapes = []*shape{jobHostShape, signedShape, bucketShape, messageBatchShape, bedrockJobsShape, vertexJobsShape, bedrockShape, geminiShape, cohereShape, federationShape, wiresShape, azureShape}

// exchange is one request and its response.
type exchange struct {
	shape     *shape // nil: OpenAI or Anthropic
	s         *Server
	w         http.ResponseWriter
	r         *http.Request
	body      []byte
	path      string
	query     string
	vars      []string // the variables of an operation's path
	anthropic bool
	st        steering
	model     string
	row       entry
	hasRow    bool
}

// authenticate checks the key where the provider looks for it.
func (x *exchange) authenticate() *apiError {
	key, missing, wrong := "", "", ""
	if x.anthropic {
		// The libraries send the key as a bearer token; x-api-key takes precedence.
		if key = x.r.Header.Get("X-Api-Key"); key == "" {
			key, _ = strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
		}
		missing, wrong = "x-api-key header is required", "invalid x-api-key"
	} else {
		key, _ = strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
		missing = "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
		wrong = "Incorrect API key provided: " + masked(key) + ". You can find your API key at https://platform.openai.com/account/api-keys."
	}
	switch {
	case key == "":
		return &apiError{status: http.StatusUnauthorized, message: missing}
	case key == "mock-limited":
		return &apiError{status: http.StatusTooManyRequests, message: "Rate limit reached for this key.", retryAfter: "1"}
	case key == "mock-broken":
		return &apiError{status: http.StatusInternalServerError, message: "The server had an error while processing your request."}
	case key == "mock-denied":
		return &apiError{status: http.StatusForbidden, message: "This key may not use this model."}
	case !strings.HasPrefix(key, "mock-") && !strings.HasPrefix(key, "sk-"):
		return &apiError{status: http.StatusUnauthorized, code: "invalid_api_key", message: wrong}
	}
	return nil
}

func masked(key string) string {
	if len(key) <= 8 {
		return "***"
	}
	return key[:3] + "***" + key[len(key)-4:]
}

// newID makes an id that is not used again, for this conversation.
func (x *exchange) newID(prefix string, seed uint32) string {
	return prefix + "mock" + strconv.FormatUint(uint64(seed), 36) + "x" + strconv.FormatInt(x.s.serial.Add(1), 10)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func seedOf(s string) uint32 { return crc32.Checksum([]byte(s), castagnoli) }

// administer serves /__mock/...
func (s *Server) administer(w http.ResponseWriter, r *http.Request, path string) {
	switch r.Method + " " + path {
	case "GET /__mock/bill":
		writeJSON(w, http.StatusOK, s.bill.bill())
	case "DELETE /__mock/bill":
		s.bill.reset()
		w.WriteHeader(http.StatusNoContent)
	case "GET /__mock/requests":
		n := 10
		if q := r.URL.Query().Get("last"); q != "" {
			var err error
			if n, err = strconv.Atoi(q); err != nil || n < 0 {
				writeJSON(w, http.StatusBadRequest, map[string]string{"error": "last must be a number of requests"})
				return
			}
		}
		writeJSON(w, http.StatusOK, s.history.last(n))
	case "DELETE /__mock/requests":
		s.history.reset()
		w.WriteHeader(http.StatusNoContent)
	case "GET /__mock/faults":
		writeJSON(w, http.StatusOK, s.faults.list())
	case "DELETE /__mock/faults":
		s.faults.reset()
		w.WriteHeader(http.StatusNoContent)
	case "POST /__mock/faults":
		var f queuedFault
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
		d.DisallowUnknownFields()
		err := d.Decode(&f)
		if err == nil {
			err = s.order(f)
		}
		if err != nil {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		writeJSON(w, http.StatusNotFound, map[string]string{"error": "no such page of the mock"})
	}
}

// order queues a fault, after it has checked the directives.
func (s *Server) order(f queuedFault) error {
	if f.Next < 1 {
		return errors.New("next must be the number of requests to steer, 1 or more")
	}
	st := unsteered()
	if err := st.read(f.Directives); err != nil {
		return err
	}
	s.faults.add(f)
	return nil
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

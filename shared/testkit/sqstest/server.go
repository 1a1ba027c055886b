package sqstest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Options of a queue. The zero value is SQS's defaults.
type Options struct {
	Visibility  time.Duration // 0: 30 s
	MaxReceives int           // redrive policy: deliveries before DeadLetter; 0: none
	DeadLetter  string        // name of the dead-letter queue; it must exist
}

// Faults may be changed while the server runs, through Server.SetFaults.
type Faults struct {
	// Request may answer a call itself: return a status to fail with, 0 to go on.
	Request func(action string) int
	// Entry may fail one entry of a batch; nil lets it pass.
	Entry func(action, id, body string) *EntryFault
	// LoseResponse reports whether a call is done but its response is cut off.
	LoseResponse func(action string) bool
}

// EntryFault is an entry of "Failed".
type EntryFault struct {
	Code        string
	SenderFault bool
}

// Server is the service. Its clock may be moved with Advance.
type Server struct {
	http *httptest.Server

	mu      sync.Mutex
	queues  map[string]*store
	faults  Faults
	calls   map[string]int
	offset  time.Duration
	changed chan struct{} // closed and replaced when a message may be visible
}

// Stored is a message as the service holds it.
type Stored struct {
	ID, Group, Body string
	Receives        int
	InFlight        bool
}

type store struct {
	name     string
	opt      Options
	messages []*message
}

type message struct {
	id, group, body string
	sent, first     time.Time
	visible         time.Time
	receives        int
	receipt         string // of the latest delivery
}

// Start serves on loopback until Close.
func Start() *Server {
	s := &Server{queues: map[string]*store{}, calls: map[string]int{}, changed: make(chan struct{})}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Close ends the server and every waiting receive.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// URL is the endpoint.
func (s *Server) URL() string { return s.http.URL }

const account = "123456789012"

// Create makes a queue and gives its URL.
func (s *Server) Create(name string, o Options) string {
	if o.Visibility == 0 {
		o.Visibility = 30 * time.Second
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.DeadLetter != "" && s.queues[o.DeadLetter] == nil {
		panic("sqstest: no queue " + o.DeadLetter)
	}
	s.queues[name] = &store{name: name, opt: o}
	return s.http.URL + "/" + account + "/" + name
}

// SetFaults replaces the faults.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	s.faults = f
	s.mu.Unlock()
}

// Calls counts the requests of an action so far.
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[action]
}

// Messages lists what a queue holds.
func (s *Server) Messages(name string) []Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Stored
	for _, m := range s.queues[name].messages {
		out = append(out, Stored{ID: m.id, Group: m.group, Body: m.body, Receives: m.receives,
			InFlight: m.receipt != "" && m.visible.After(s.now())})
	}
	return out
}

// Advance moves the server's clock; hidden messages may become visible.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	s.offset += d
	s.wake()
	s.mu.Unlock()
}

func (s *Server) now() time.Time { return time.Now().Add(s.offset) }

// wake is called with the lock held.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// find gives the queue that a QueueUrl names.
func find(s *Server, url string) (*store, *failure) {
	rest, ok := strings.CutPrefix(url, s.http.URL+"/"+account+"/")
	if !ok {
		return nil, fail("InvalidAddress", "The address %q is not valid for this endpoint.", url)
	}
	q := s.queues[rest]
	if q == nil {
		return nil, fail("QueueDoesNotExist", "The specified queue does not exist.")
	}
	return q, nil
}

// bury moves messages that were received too often to the dead-letter queue.
func bury(s *Server, q *store) {
	if q.opt.MaxReceives == 0 {
		return
	}
	dead := s.queues[q.opt.DeadLetter]
	remaining := q.messages[:0]
	for _, m := range q.messages {
		if m.receives >= q.opt.MaxReceives && !m.visible.After(s.now()) {
			m.receipt = ""
			dead.messages = append(dead.messages, m)
			continue
		}
		remaining = append(remaining, m)
	}
	clear(q.messages[len(remaining):])
	q.messages = remaining
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// createQueue makes a queue, as SQS does: it is no error if the queue exists and has the
// given attributes.
func (s *Server) createQueue(in *struct {
	QueueName  string
	Attributes map[string]string
	Tags       map[string]string `json:"tags"`
}) (any, *failure) {
	if !queueName.MatchString(in.QueueName) {
		return nil, fail("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	opt := Options{Visibility: 30 * time.Second}
	for name, v := range in.Attributes {
		switch name {
		case "VisibilityTimeout":
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 || n > 43200 {
				return nil, fail("InvalidAttributeValue", "Invalid value for the parameter VisibilityTimeout.")
			}
			opt.Visibility = time.Duration(n) * time.Second
		case "RedrivePolicy":
			if f := redrive(s, v, &opt); f != nil {
				return nil, f
			}
		case "MessageRetentionPeriod", "MaximumMessageSize", "ReceiveMessageWaitTimeSeconds", "SqsManagedSseEnabled":
		default:
			return nil, fail("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	_, visible := in.Attributes["VisibilityTimeout"]
	_, dies := in.Attributes["RedrivePolicy"]
	q := s.queues[in.QueueName]
	if q != nil && (visible && q.opt.Visibility != opt.Visibility || dies && (q.opt.DeadLetter != opt.DeadLetter || q.opt.MaxReceives != opt.MaxReceives)) {
		return nil, fail("QueueNameExists", "A queue already exists with the same name and a different value for an attribute.")
	}
	if q == nil {
		s.queues[in.QueueName] = &store{name: in.QueueName, opt: opt}
	}
	return map[string]string{"QueueUrl": s.http.URL + "/" + account + "/" + in.QueueName}, nil
}

func redrive(s *Server, policy string, to *Options) *failure {
	var p struct {
		Target string      `json:"deadLetterTargetArn"`
		Most   json.Number `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(policy), &p) != nil {
		return fail("InvalidParameterValue", "RedrivePolicy is no JSON.")
	}
	n, err := strconv.Atoi(p.Most.String())
	name := p.Target[strings.LastIndexByte(p.Target, ':')+1:]
	if err != nil || n < 1 || n > 1000 || !strings.HasPrefix(p.Target, "arn:aws:sqs:") || s.queues[name] == nil {
		return fail("InvalidParameterValue", "Value %s for parameter RedrivePolicy is invalid.", policy)
	}
	to.MaxReceives, to.DeadLetter = n, name
	return nil
}

func (s *Server) deleteQueue(in *struct{ QueueUrl string }) (any, *failure) {
	q, f := find(s, in.QueueUrl)
	if f != nil {
		return nil, f
	}
	delete(s.queues, q.name)
	return map[string]string{}, nil
}

// failure is an error response: {"__type","message"} and a query-mode header.
type failure struct {
	status  int
	code    string
	message string
}

func fail(code, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, code: code, message: fmt.Sprintf(format, args...)}
}

// signature is the form of a SigV4 header for this service; the signature itself is not
// verified.
var signature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/[a-z0-9-]+/sqs/aws4_request, SignedHeaders=[a-z0-9;-]*host[a-z0-9;-]*, Signature=[0-9a-f]{64}$`)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	action, body, f := accept(s, r)
	s.mu.Lock()
	s.calls[action]++
	faults := s.faults
	s.mu.Unlock()
	if f == nil && faults.Request != nil {
		if status := faults.Request(action); status != 0 {
			f = &failure{status: status, code: "InternalError", message: "injected"}
		}
	}
	var answer any
	if f == nil {
		answer, f = s.dispatch(r, action, body)
	}
	if faults.LoseResponse != nil && faults.LoseResponse(action) {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-amz-json-1.0")
	h.Set("x-amzn-RequestId", "5e2ec6d5-7a3e-5f1c-8f6a-9b1b1a2c3d4e")
	if f != nil {
		h.Set("x-amzn-query-error", queryCode(f.code)+";Sender")
		w.WriteHeader(f.status)
		answer = map[string]string{"__type": "com.amazonaws.sqs#" + f.code, "message": f.message}
	}
	if answer == nil {
		return // actions without a result have an empty body
	}
	_ = json.NewEncoder(w).Encode(answer) // an error means that the client is gone
}

// queryCode is the code of the older query protocol, which the SDK reads too.
func queryCode(code string) string {
	switch code {
	case "QueueDoesNotExist":
		return "AWS.SimpleQueueService.NonExistentQueue"
	case "InvalidMessageContents", "ReceiptHandleIsInvalid", "InvalidAddress", "InvalidAttributeName", "InternalError",
		"InvalidParameterValue", "MissingParameter", "SerializationException", "IncompleteSignature":
		return code
	}
	return "AWS.SimpleQueueService." + code
}

// accept checks everything about a request except its fields.
func accept(s *Server, r *http.Request) (action string, body []byte, f *failure) {
	target := r.Header.Get("X-Amz-Target")
	action, ok := strings.CutPrefix(target, "AmazonSQS.")
	if !ok {
		return "", nil, fail("UnknownOperationException", "target %q", target)
	}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/" || r.URL.RawQuery != "":
		return action, nil, fail("UnknownOperationException", "%s %s", r.Method, r.URL)
	case r.Header.Get("Content-Type") != "application/x-amz-json-1.0":
		return action, nil, fail("UnknownOperationException", "content type %q", r.Header.Get("Content-Type"))
	case !signature.MatchString(r.Header.Get("Authorization")) || r.Header.Get("X-Amz-Date") == "":
		return action, nil, fail("IncompleteSignature", "the request is not signed for sqs")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 16<<20))
	if err != nil || !utf8.Valid(body) {
		return action, nil, fail("SerializationException", "the body is cut off or not UTF-8")
	}
	return action, body, nil
}

// read decodes the body into one action's request; unknown fields are rejected.
func read(body []byte, into any) *failure {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fail("SerializationException", "%v", err)
	}
	if d.More() {
		return fail("SerializationException", "bytes behind the object")
	}
	return nil
}

// act reads one action's request and runs it under the lock.
func act[T any](s *Server, body []byte, run func(*Server, *T) (any, *failure)) (any, *failure) {
	var in T
	if f := read(body, &in); f != nil {
		return nil, f
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return run(s, &in)
}

func (s *Server) dispatch(r *http.Request, action string, body []byte) (any, *failure) {
	switch action {
	case "SendMessage":
		return act(s, body, (*Server).send)
	case "SendMessageBatch":
		return act(s, body, (*Server).sendBatch)
	case "ReceiveMessage":
		var in receiveRequest
		if f := read(body, &in); f != nil {
			return nil, f
		}
		return s.receive(r.Context(), &in)
	case "DeleteMessage":
		return act(s, body, (*Server).delete)
	case "DeleteMessageBatch":
		return act(s, body, (*Server).deleteBatch)
	case "ChangeMessageVisibility":
		return act(s, body, (*Server).change)
	case "ChangeMessageVisibilityBatch":
		return act(s, body, (*Server).changeBatch)
	case "CreateQueue":
		return act(s, body, (*Server).createQueue)
	case "DeleteQueue":
		return act(s, body, (*Server).deleteQueue)
	case "GetQueueUrl":
		return act(s, body, (*Server).queueURL)
	case "GetQueueAttributes":
		return act(s, body, (*Server).attributes)
	}
	return nil, fail("UnknownOperationException", "%s is not served here", action)
}

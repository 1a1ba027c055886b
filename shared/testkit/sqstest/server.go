package sqstest

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
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
	// LoseAnswer reports whether a call is done but its answer is cut off.
	LoseAnswer func(action string) bool
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
	kept := q.messages[:0]
	for _, m := range q.messages {
		if m.receives >= q.opt.MaxReceives && !m.visible.After(s.now()) {
			m.receipt = ""
			dead.messages = append(dead.messages, m)
			continue
		}
		kept = append(kept, m)
	}
	clear(q.messages[len(kept):])
	q.messages = kept
}

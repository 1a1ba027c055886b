package record

import (
	"net/http"
	"time"

	"gateway/shared/fault"
)

// Log collects what the accounting record of one request states about its response. The stages
// only add to it; the last one reads it and writes the record. The zero value is empty. It is not
// safe for concurrent use.
type Log struct {
	Bodies  Bodies
	outcome Outcome
	closed  bool
}

// Outcome is what the stages have added to a Log.
type Outcome struct {
	Status        int           // HTTP status of the response; of a failure after the head, the status of that failure
	Failure       *fault.Fault  // why the client got no good response; nil if it did
	ProviderFault *fault.Fault  // the provider's fault that ended a response after its head; nil if none did
	Bytes         int64         // of the response's body
	Retries       int           // of the target that was tried last
	Upstream      time.Duration // latency of the attempt that succeeded
	Waited        time.Duration // time spent waiting for providers and other hosts
}

// Kind is the kind of a body.
type Kind uint8

const (
	// Response is a piece of the client's response.
	Response Kind = iota + 1
	// Received is the provider's response, if the client gets another. It replaces an earlier
	// one.
	Received
)

// Body adds a piece of a body.
func (l *Log) Body(kind Kind, p []byte) {
	if kind == Received {
		l.Bodies.Receive(p)
		return
	}
	l.outcome.Bytes += int64(len(p))
	l.Bodies.Answer(p)
}

// Count adds n bytes to the response's body that the log does not show.
func (l *Log) Count(n int64) { l.outcome.Bytes += n }

// Wait adds time spent waiting for a provider or another host.
func (l *Log) Wait(d time.Duration) { l.outcome.Waited += d }

// Attempt records the latency of the attempt that succeeded.
func (l *Log) Attempt(latency time.Duration) { l.outcome.Upstream = latency }

// Retried records how often the target being tried was called again.
func (l *Log) Retried(n int) { l.outcome.Retries = n }

// Head records the status of the response when its head is sent, unless Status has set another.
func (l *Log) Head(status int) {
	if l.outcome.Status == 0 {
		l.outcome.Status = status
	}
}

// Status records the status of the request, whatever head was sent.
func (l *Log) Status(status int) { l.outcome.Status = status }

// Fail records why the client got no good response. It is the only place where that is set.
func (l *Log) Fail(f *fault.Fault) { l.outcome.Failure = f }

// Reject is Fail and Status for a fault that decides the status of the request, also where a
// head with another status was sent.
func (l *Log) Reject(f *fault.Fault) {
	l.Fail(f)
	l.Status(f.Status())
}

// EndedBy records the provider's fault that ended a response after its head.
func (l *Log) EndedBy(f *fault.Fault) { l.outcome.ProviderFault = f }

// Sent records the request to a provider; see Bodies.Send.
func (l *Log) Sent(h http.Header, body []byte, hidden, secrets []string) {
	l.Bodies.Send(h, body, hidden, secrets)
}

// Close reports whether the record is still to be written; it returns true once.
func (l *Log) Close() bool {
	first := !l.closed
	l.closed = true
	return first
}

// Closed reports whether Close was called.
func (l *Log) Closed() bool { return l.closed }

// Outcome returns everything added so far.
func (l *Log) Outcome() Outcome { return l.outcome }

// Free clears the log for another request.
func (l *Log) Free() {
	l.Bodies.Free()
	l.outcome, l.closed = Outcome{}, false
}

// Package record stores the logged parts of a request and its response: limited in size, with
// credentials redacted, and sealed.
package record

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/seal"
	"gateway/shared/usage"
	"gateway/shared/wire"
	"gateway/shared/wire/mask"
)

// MaxBody limits each body in a log, in bytes.
const MaxBody = 1 << 20

// Bodies are the bodies of one request: the stages store theirs, SetExtras states what the log shows of
// them. The zero value has none. Free releases their memory.
type Bodies struct {
	response  *buffer.Buffer // the client's response
	received  *buffer.Buffer
	sent      []byte
	sentHead  []byte // the headers, as JSON
	truncated bool

	of     usage.Bodies
	heads  *buffer.Buffer // the client's headers
	sealed *buffer.Buffer
}

// AppendResponse appends a piece of the client's response.
func (b *Bodies) AppendResponse(p []byte) {
	if b.response == nil {
		b.response = buffer.New()
	}
	b.truncated = !b.response.AppendMax(p, MaxBody) || b.truncated
}

// Receive stores the provider's response, and replaces an earlier one.
func (b *Bodies) Receive(p []byte) {
	b.received.Free()
	b.received = buffer.For(min(len(p), MaxBody))
	b.received.AppendMax(p, MaxBody)
}

// Send stores a request to a provider, and replaces an earlier one. The body is not copied and
// must not change until Seal. The values of hidden headers, and secrets anywhere in the others,
// are redacted.
func (b *Bodies) Send(h http.Header, body []byte, hidden, secrets []string) {
	b.sent = body[:min(len(body), MaxBody)]
	b.sentHead = AppendHeaders(b.sentHead[:0], h, hidden)
	mask.Bytes(b.sentHead, secrets)
}

// Extras is what a log shows besides the stored bodies, and what it does not show of these.
type Extras struct {
	ResponseHeaders http.Header
	NoResponse      bool                // without the body of the response
	Change          func([]byte) []byte // of that body; nil: it is shown unchanged

	Requests         bool // the client's request is shown, and that to the provider
	RequestHeaders   http.Header
	SensitiveHeaders []string // names of these headers
	Request          []byte
}

// BeginAttempt clears what an earlier call of a provider left: its request and its response.
func (b *Bodies) BeginAttempt() {
	b.received.Free()
	b.received, b.sent, b.sentHead = nil, nil, b.sentHead[:0]
}

// SetExtras states what Seal seals. Secrets are redacted in both responses, not in other encodings.
func (b *Bodies) SetExtras(what Extras, secrets []string) {
	var response, received []byte
	if b.response != nil && !what.NoResponse {
		response = b.response.B
	}
	if what.Change != nil {
		response = what.Change(response)
	}
	if b.received != nil {
		received = b.received.B
	}
	if b.heads == nil {
		b.heads = buffer.New()
	}
	heads := AppendHeaders(b.heads.B[:0], what.ResponseHeaders, nil)
	n := len(heads)
	if what.Requests {
		heads = AppendHeaders(heads, what.RequestHeaders, what.SensitiveHeaders)
		b.of = usage.Bodies{
			RequestHeaders: heads[n:], Request: what.Request[:min(len(what.Request), MaxBody)], SentHeaders: b.sentHead, Sent: b.sent, Received: received,
			ResponseHeaders: heads[:n], Response: response, Truncated: b.truncated || len(what.Request) > MaxBody,
		}
	} else {
		b.of = usage.Bodies{Received: received, ResponseHeaders: heads, Response: response, Truncated: b.truncated}
	}
	b.heads.B = heads
	for _, s := range secrets {
		mask.Overwrite(response, s)
		mask.Overwrite(received, s)
		mask.Overwrite(b.of.ResponseHeaders, s)
	}
}

// sealOverhead is the expected overhead of a sealed value; a wrong guess costs a copy.
const sealOverhead = 512

// writtenSealer is a Sealer that seals into a given buffer, into which the value has written
// itself.
type writtenSealer interface {
	SealWritten(ctx context.Context, dst []byte, b seal.Binding, plain seal.Writer) ([]byte, error)
}

// Seal returns the sealed bodies; they are valid until Free.
func (b *Bodies) Seal(ctx context.Context, s seal.Sealer, to seal.Binding) ([]byte, error) {
	b.sealed = buffer.For(b.of.Size() + sealOverhead)
	if into, ok := s.(writtenSealer); ok {
		return into.SealWritten(ctx, b.sealed.B, to, &b.of)
	}
	return s.Seal(ctx, to, b.of.Append(b.sealed.B))
}

// Free releases the memory and clears the bodies.
func (b *Bodies) Free() {
	b.response.Free()
	b.received.Free()
	b.heads.Free()
	b.sealed.Free()
	*b = Bodies{sentHead: b.sentHead[:0]}
}

// Names of the gateway's headers that contain secrets or results; package admission has the
// others.
const (
	HeaderConfig            = "X-Gateway-Config"
	HeaderTraceID           = "X-Gateway-Trace-Id"
	HeaderProvider          = "X-Gateway-Provider"
	HeaderCustomHost        = "X-Gateway-Custom-Host"
	HeaderRetryCount        = "X-Gateway-Retry-Attempt-Count"
	HeaderCacheStatus       = "X-Gateway-Cache-Status"
	HeaderOptionIndex       = "X-Gateway-Last-Used-Option-Index"
	HeaderProviderRequestID = "X-Gateway-Provider-Request-Id"
)

// IsSensitive reports whether the value of a header must not be logged, because it may be a credential
// or because the caller named it as sensitive.
func IsSensitive(name string, sensitive []string) bool {
	switch name {
	case "Authorization", "X-Gateway-Api-Key", "X-Api-Key", "Api-Key", "Cookie", "Set-Cookie",
		"Proxy-Authorization", "X-Goog-Api-Key", "X-Amz-Security-Token", HeaderConfig:
		return true
	case HeaderTraceID, HeaderProvider, HeaderRetryCount, HeaderCacheStatus, HeaderOptionIndex, HeaderProviderRequestID:
		return slices.Contains(sensitive, name) // on most requests; none of them is secret
	}
	return secretHeader(name) || slices.Contains(sensitive, name)
}

// secretWords end a part of the name of a header that holds a credential.
var secretWords = [...]string{"auth", "authorization", "cookie", "credential", "credentials", "jwt", "key", "passphrase", "password", "secret", "signature", "token"}

// namesSecret reports whether a header that is no header of the gateway holds a credential by
// its name. Callers forward headers with any name to their providers.
func namesSecret(name string) bool {
	switch name {
	case "Idempotency-Key", "Sec-Websocket-Key", "Surrogate-Key":
		return false
	}
	for part := range strings.FieldsFuncSeq(name, func(c rune) bool { return c == '-' || c == '_' }) {
		for _, w := range secretWords {
			if begin := len(part) - len(w); begin >= 0 && strings.EqualFold(part[begin:], w) {
				return true
			}
		}
	}
	return false
}

// AppendHeaders writes headers as a JSON object in the order of their names;
// credentials, and what the caller named as sensitive, are masked.
func AppendHeaders(dst []byte, h http.Header, sensitive []string) []byte {
	var room [32]string // most requests have fewer headers; more are sorted in the heap
	names := room[:0]
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		value := h[name][0]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendJSONString(dst, name)
		dst = append(dst, ':')
		withPassword := name == HeaderCustomHost && strings.Contains(value, "@")
		if withPassword || IsSensitive(name, sensitive) {
			dst = append(dst, `"*****"`...)
			continue
		}
		dst = wire.AppendJSONString(dst, value)
	}
	return append(dst, '}')
}

// secretHeader reports by its name whether a header holds a secret.
func secretHeader(name string) bool {
	if !strings.HasPrefix(name, "X-Gateway-") {
		return namesSecret(name)
	}
	for _, part := range []string{"Secret", "Token", "Private-Key", "Password", "Passphrase", "Account-Json"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

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
	l.Bodies.AppendResponse(p)
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

// RecordRequest records the request to a provider; see Bodies.Send.
func (l *Log) RecordRequest(h http.Header, body []byte, hidden, secrets []string) {
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

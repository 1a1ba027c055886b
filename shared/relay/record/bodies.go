// Package record stores the logged parts of a request and its response: limited in size, with
// credentials redacted, and sealed.
package record

import (
	"context"
	"net/http"

	"gateway/shared/egress/buffer"
	"gateway/shared/seal"
	"gateway/shared/usage"
	"gateway/shared/wire/mask"
)

// MaxBody limits each body in a log, in bytes.
const MaxBody = 1 << 20

// Bodies are the bodies of one request. The zero value has none. Free releases their memory.
type Bodies struct {
	of       usage.Bodies
	answer   *buffer.Buffer
	received *buffer.Buffer
	headers  *buffer.Buffer
	sealed   *buffer.Buffer
}

// Answer appends a piece of the client's response.
func (b *Bodies) Answer(p []byte) {
	if b.answer == nil {
		b.answer = buffer.New()
	}
	if !b.answer.Keep(p, MaxBody) {
		b.of.Truncated = true
	}
}

// Receive stores the provider's response, and replaces an earlier one.
func (b *Bodies) Receive(p []byte) {
	if b.received == nil {
		b.received = buffer.New()
	}
	b.received.B = append(b.received.B[:0], p[:min(len(p), MaxBody)]...)
	b.of.Received = b.received.B
}

// Send stores a request to a provider, and replaces an earlier one. The body is not copied and
// must not change until Seal. The values of hidden headers, and secrets anywhere in the others,
// are redacted.
func (b *Bodies) Send(h http.Header, body []byte, hidden, secrets []string) {
	b.of.Sent = body[:min(len(body), MaxBody)]
	b.of.SentHeaders = AppendHeaders(b.of.SentHeaders[:0], h, hidden)
	mask.Bytes(b.of.SentHeaders, secrets)
}

// Unsent removes the request to the provider.
func (b *Bodies) Unsent() { b.of.Sent, b.of.SentHeaders = nil, nil }

// Head stores the headers of the response, which must be complete.
func (b *Bodies) Head(h http.Header) {
	if b.answer != nil {
		b.of.Response = b.answer.B
	}
	b.headers = buffer.New()
	b.headers.B = AppendHeaders(b.headers.B, h, nil)
	b.of.ResponseHeaders = b.headers.B
}

// Rewrite changes the stored response. It is called after Head.
func (b *Bodies) Rewrite(change func([]byte) []byte) { b.of.Response = change(b.of.Response) }

// Unanswered removes the body of the response.
func (b *Bodies) Unanswered() { b.of.Response = nil }

// Request stores the client's request. It is called after Head.
func (b *Bodies) Request(h http.Header, hidden []string, body []byte) {
	n := len(b.headers.B)
	b.headers.B = AppendHeaders(b.headers.B, h, hidden)
	b.of.RequestHeaders = b.headers.B[n:]
	b.of.Request = body[:min(len(body), MaxBody)]
	b.of.Truncated = b.of.Truncated || len(body) > MaxBody
}

// Hide redacts secrets in the provider's response. Successful responses are searched for their
// exact values, not for other encodings.
func (b *Bodies) Hide(secrets []string) {
	for _, s := range secrets {
		mask.Plain(b.of.Response, s)
		mask.Plain(b.of.Received, s)
		mask.Plain(b.of.ResponseHeaders, s)
	}
}

// sealedRoom is the expected overhead of a sealed value; a wrong guess costs a copy.
const sealedRoom = 512

// writtenSealer is a Sealer that seals into a given buffer, into which the value has written
// itself.
type writtenSealer interface {
	SealWritten(ctx context.Context, dst []byte, b seal.Binding, plain seal.Writer) ([]byte, error)
}

// Seal returns the sealed bodies; they are valid until Free.
func (b *Bodies) Seal(ctx context.Context, s seal.Sealer, to seal.Binding) ([]byte, error) {
	b.sealed = buffer.For(b.of.Size() + sealedRoom)
	if into, ok := s.(writtenSealer); ok {
		var err error
		if b.sealed.B, err = into.SealWritten(ctx, b.sealed.B, to, &b.of); err != nil {
			return nil, err
		}
		return b.sealed.B, nil
	}
	b.sealed.B = b.of.Append(b.sealed.B)
	return s.Seal(ctx, to, b.sealed.B)
}

// Free releases the memory and clears the bodies.
func (b *Bodies) Free() {
	b.answer.Free()
	b.received.Free()
	b.headers.Free()
	b.sealed.Free()
	headers := b.of.SentHeaders[:0]
	*b = Bodies{}
	b.of.SentHeaders = headers
}

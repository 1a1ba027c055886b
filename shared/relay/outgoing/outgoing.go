// Package outgoing watches the bytes of bodies that are sent to providers, so that
// their memory is not used again too early.
package outgoing

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"gateway/shared/egress"
)

// Bytes watches the pooled bytes that a request sends to providers. A
// transport may read a body after its answer has begun, even after the request
// is over; bytes that went back to the pool too early would then be another
// request's, sent to the wrong provider. It outlives the pooled call.
type Bytes struct {
	trace   *httptrace.ClientTrace // nil: the bodies tell
	handed  atomic.Int32           // readers that were given to the transport
	written atomic.Int32           // those of them that it has finished with
	last    atomic.Pointer[sending]
}

// sending is one request, however often the transport sends it anew. What is told late of
// an earlier request does not touch it.
type sending struct {
	of    *Bytes
	whole atomic.Bool
}

// Wrote implements egress.BodyObserver.
func (s *sending) Wrote(whole bool) {
	s.whole.Store(whole)
	s.of.written.Add(1)
}

func New(t http.RoundTripper) *Bytes {
	o := new(Bytes)
	if !egress.Tells(t) {
		o.trace = &httptrace.ClientTrace{WroteRequest: func(how httptrace.WroteRequestInfo) {
			if s := o.last.Load(); s != nil {
				s.whole.Store(how.Err == nil)
			}
			o.written.Add(1)
		}}
	}
	return o
}

// Whole tells whether the provider was sent all of the last request.
func (o *Bytes) Whole() bool {
	if o == nil {
		return false
	}
	s := o.last.Load()
	return s != nil && s.whole.Load()
}

// Busy tells whether the bytes may still be read. A transport that does not
// tell is taken for one that does.
func (o *Bytes) Busy() bool { return o != nil && o.written.Load() < o.handed.Load() }

// Watch makes the transport tell when it has written a request.
func (o *Bytes) Watch(ctx context.Context) context.Context {
	if o.trace == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, o.trace)
}

// Attach gives a request its body, which can be sent again on another connection.
func (o *Bytes) Attach(req *http.Request, body []byte) {
	s := &sending{of: o}
	o.last.Store(s)
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) {
		o.handed.Add(1)
		s.whole.Store(false)
		if o.trace != nil {
			return egress.NewBody(body), nil
		}
		return egress.NewObservedBody(body, s), nil
	}
	req.Body, _ = req.GetBody()
}

// Stream gives a request a body that is read once and cannot be sent again. It counts as
// sent when the transport has read it to its end. Where o is nil it makes one.
func (o *Bytes) Stream(req *http.Request, body io.ReadCloser, length int64) *Bytes {
	if o == nil {
		o = New(nil)
	}
	s := &sending{of: o}
	o.last.Store(s)
	req.Body, req.ContentLength = &streamed{body, s}, length
	return o
}

type streamed struct {
	io.ReadCloser
	of *sending
}

func (s *streamed) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err == io.EOF {
		s.of.whole.Store(true)
	}
	return n, err
}

// Exactly ends a streamed body of known length by itself. A transport looks beyond the end
// of a body; if a fast provider has answered by then, the server has closed the client's
// body, and the transport would take that for a failed write and cut the answer off.
func Exactly(body io.ReadCloser, length int64) io.ReadCloser {
	if length < 0 {
		return body
	}
	return &exactBody{io.LimitedReader{R: body, N: length}, body}
}

type exactBody struct {
	io.LimitedReader
	io.Closer
}

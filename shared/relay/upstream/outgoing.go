package upstream

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"gateway/shared/egress"
)

// Body tracks the pooled bytes of requests to providers. A transport may read a body after its
// response has started, even after the request is over; bytes returned to the pool too early
// would then belong to another request and be sent to the wrong provider. It outlives the pooled
// call.
type Body struct {
	trace   *httptrace.ClientTrace // nil: the bodies report
	handed  atomic.Int32           // readers given to the transport
	written atomic.Int32           // those of them that it has finished with
	last    atomic.Pointer[sending]
}

// sending is one request, however often the transport retries it. Late reports about an earlier
// request do not affect it.
type sending struct {
	of    *Body
	whole atomic.Bool
}

// BodyWritten implements egress.BodyObserver.
func (s *sending) BodyWritten(whole bool) {
	s.whole.Store(whole)
	s.of.written.Add(1)
}

func NewBody(t http.RoundTripper) *Body {
	o := new(Body)
	if !egress.NotifiesObserver(t) {
		o.trace = &httptrace.ClientTrace{WroteRequest: func(how httptrace.WroteRequestInfo) {
			if s := o.last.Load(); s != nil {
				s.whole.Store(how.Err == nil)
			}
			o.written.Add(1)
		}}
	}
	return o
}

// Sent reports whether all of the last request was sent to the provider.
func (o *Body) Sent() bool {
	if o == nil {
		return false
	}
	s := o.last.Load()
	return s != nil && s.whole.Load()
}

// Busy reports whether the bytes may still be read. It is true for a transport that does not
// report.
func (o *Body) Busy() bool { return o != nil && o.written.Load() < o.handed.Load() }

// Watch makes the transport report when it has written a request.
func (o *Body) Watch(ctx context.Context) context.Context {
	if o.trace == nil {
		return ctx
	}
	return httptrace.WithClientTrace(ctx, o.trace)
}

// Attach sets the body of a request, which can be sent again on another connection.
func (o *Body) Attach(req *http.Request, body []byte) {
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

// Stream sets a request body that is read once and cannot be sent again. It counts as sent when
// the transport has read it to its end. If o is nil it creates one.
func (o *Body) Stream(req *http.Request, body io.ReadCloser, length int64) *Body {
	if o == nil {
		o = NewBody(nil)
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

// WithLength returns a streamed body of known length that reports its end without another read. A
// transport reads beyond the end of a body; if a fast provider has responded by then, the server
// has closed the client's body, and the transport would treat that as a failed write and abort
// the response.
func WithLength(body io.ReadCloser, length int64) io.ReadCloser {
	if length < 0 {
		return body
	}
	return &exactBody{io.LimitedReader{R: body, N: length}, body}
}

type exactBody struct {
	io.LimitedReader
	io.Closer
}

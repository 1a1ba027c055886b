package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/fault"
	"gateway/shared/host/originauth"
)

// MaxLambdaBody is the largest request body, in bytes, that is safe in a Lambda
// event, which carries it escaped once more.
const MaxLambdaBody = 3_500_000

const (
	// closeMargin is kept free before the invocation's deadline: what is not written by
	// then, this process no longer writes.
	closeMargin = 2 * time.Second
	// bookMargin comes before it: the request's context ends, so that the handler
	// stops waiting for the provider and writes its books.
	bookMargin = 2 * time.Second
	// frozenFor is the pause between requests after which connections may have
	// died while the process stood still.
	frozenFor = 20 * time.Second
	// defaultKeepAlive is the quiet time of a stream before a comment goes out.
	defaultKeepAlive = 15 * time.Second
)

// BodyEnder is implemented by answers whose body can be ended before the handler
// returns. A handler that still has books to write calls EndBody after its last
// byte: the caller has everything, the host waits for the handler.
type BodyEnder interface{ EndBody() }

// Stream adapts a handler to API Gateway REST events answered as a stream. It is
// safe for concurrent invocations.
type Stream struct {
	Handler   http.Handler
	Door      *originauth.Door // nil: it stands open
	KeepAlive time.Duration    // quiet time of a server-sent event stream before a comment line; 0: 15 s
	Thaw      func()           // called before a request that comes after more than 20 s of frozen time
	Now       func() time.Time // nil: time.Now

	mu   sync.Mutex
	last time.Time // end of the last invocation, or the start of a running one
}

// Invoke is the Lambda handler.
func (s *Stream) Invoke(ctx context.Context, ev events.APIGatewayProxyRequest) (*events.APIGatewayProxyStreamingResponse, error) {
	if s.frozen() && s.Thaw != nil {
		s.Thaw()
	}
	req, err := newRequest(ctx, &ev, s.Door)
	if err == nil && req.ContentLength > MaxLambdaBody {
		err = fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes on this route", MaxLambdaBody)
	}
	if err != nil {
		return refusal(fault.From(err)), nil
	}
	var deadline time.Time
	cancel := func() {}
	if d, ok := ctx.Deadline(); ok {
		deadline = d.Add(-closeMargin)
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-bookMargin))
		req = req.WithContext(ctx)
	}
	keepAlive := s.KeepAlive
	if keepAlive == 0 {
		keepAlive = defaultKeepAlive
	}
	pr, pw := io.Pipe()
	w := newStreamWriter(pw, keepAlive)
	done := make(chan struct{})
	go func() { // ends with the handler; Close waits for it
		defer close(done)
		defer cancel()
		serve(s.Handler, w, req)
	}()
	<-w.committed
	return &events.APIGatewayProxyStreamingResponse{
		StatusCode: w.status, MultiValueHeaders: prelude(w.sent),
		Body: &streamBody{pipe: pr, done: done, deadline: deadline, closed: s.touch},
	}, nil
}

// serve runs the handler and ends the answer, whatever the handler does: a panic
// in this goroutine would end the process.
func serve(h http.Handler, w *streamWriter, req *http.Request) {
	defer w.end(nil)
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			w.end(errBroken)
		default:
			logPanic(p)
			w.fail(fault.Internal(nil))
		}
	}()
	h.ServeHTTP(w, req)
}

// logPanic logs where a handler panicked. A value that is no runtime error may
// hold anything; only its type is told.
func logPanic(p any) {
	what := fmt.Sprintf("%T", p)
	if err, ok := p.(runtime.Error); ok {
		what = err.Error()
	}
	slog.Error("handler panicked", "panic", what, "stack", string(debug.Stack()))
}

func (s *Stream) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// frozen tells whether the process may have stood still since the last request.
func (s *Stream) frozen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	was := !s.last.IsZero() && now.Sub(s.last) > frozenFor
	s.last = now
	return was
}

func (s *Stream) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = s.now()
}

func refusal(f *fault.Fault) *events.APIGatewayProxyStreamingResponse {
	h := http.Header{}
	f.SetHeaders(h)
	h.Set("Content-Type", "application/json")
	return &events.APIGatewayProxyStreamingResponse{
		StatusCode: f.Status(), MultiValueHeaders: h,
		Body: strings.NewReader(string(f.DataBody(false))),
	}
}

// prelude is the answer's header without what the integration sets itself.
func prelude(h http.Header) map[string][]string {
	out := make(map[string][]string, len(h))
	for k, v := range h {
		switch k {
		case "Content-Length", "Transfer-Encoding", "Connection":
		default:
			out[k] = v
		}
	}
	return out
}

// streamBody is what the Lambda library reads. Close runs when the response has
// been posted and before the next event is taken: it waits until the handler has
// written its books.
type streamBody struct {
	pipe     *io.PipeReader
	done     <-chan struct{}
	deadline time.Time // zero: none
	closed   func()
}

func (b *streamBody) Read(p []byte) (int, error) { return b.pipe.Read(p) }

// Close unblocks a handler whose answer nobody reads any more and waits for it.
func (b *streamBody) Close() error {
	_ = b.pipe.CloseWithError(errGone) // never fails
	defer b.closed()
	if b.deadline.IsZero() {
		<-b.done
		return nil
	}
	t := time.NewTimer(time.Until(b.deadline))
	defer t.Stop()
	select {
	case <-b.done:
		return nil
	case <-t.C:
		slog.Error("the handler did not end before the deadline; its books may be missing")
		return errLate
	}
}

var (
	errGone   = errors.New("host: the response is over")
	errBroken = errors.New("host: the answer broke off")
	errLate   = errors.New("host: the handler did not end before the deadline")
)

package host

import (
	"context"
	"maps"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/awslabs/aws-lambda-go-api-proxy/core"
	"github.com/awslabs/aws-lambda-go-api-proxy/httpadapter"

	"gateway/shared/fault"
	"gateway/shared/host/originauth"
)

// maxBuffered limits a response, in bytes: Lambda's 6 MB, minus space for its envelope
// and for escaping.
const maxBuffered = 5 << 20

// Buffered adapts a handler to API Gateway REST events with buffered responses; the
// administration uses it.
type Buffered struct {
	adapter *httpadapter.HandlerAdapter
	door    *originauth.Verifier
}

// NewBuffered returns the adapter. A nil Verifier admits every request.
func NewBuffered(h http.Handler, d *originauth.Verifier) *Buffered {
	return &Buffered{adapter: httpadapter.New(restoreCaller(h)), door: d}
}

// Invoke is the Lambda handler.
func (b *Buffered) Invoke(ctx context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	h := eventHeader(&ev)
	if err := b.door.Verify(ctx, h); err != nil {
		return plainRefusal(fault.From(err)), nil
	}
	if ip := clientIP(h); b.door != nil && ip != "" {
		ev.RequestContext.Identity.SourceIP = ip
	}
	strip(ev.Headers)
	strip(ev.MultiValueHeaders)
	u, err := eventURL(&ev)
	if err == nil {
		_, err = eventBody(&ev)
	}
	if err != nil {
		return plainRefusal(fault.From(err)), nil
	}
	ev.Path = u.EscapedPath()
	out, err := b.adapter.ProxyWithContext(ctx, ev)
	if err == nil && len(out.Body) > maxBuffered {
		return plainRefusal(fault.Newf(fault.InvalidRequest, "page_size", "the answer has %d bytes, at most %d fit; ask for fewer items", len(out.Body), maxBuffered)), nil
	}
	return out, err
}

// strip removes headers that only the adapter may set and those that handlers must not
// see.
func strip[V any](headers map[string]V) {
	maps.DeleteFunc(headers, func(name string, _ V) bool { return reserved(name) || strings.EqualFold(name, originauth.Header) })
}

func plainRefusal(f *fault.Fault) events.APIGatewayProxyResponse {
	h := http.Header{}
	f.SetHeaders(h)
	h.Set("Content-Type", "application/json")
	return events.APIGatewayProxyResponse{
		StatusCode: f.Status(), MultiValueHeaders: h,
		Body: string(f.AdminBody("")),
	}
}

// restoreCaller sets the caller's address, which the adapter leaves without a port, and
// writes an error if the handler panics.
func restoreCaller(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rc, ok := core.GetAPIGatewayContextFromContext(r.Context()); ok {
			r.RemoteAddr = remoteAddr(rc.Identity.SourceIP)
		}
		r.Header.Del("Host")
		r.Header.Del("Accept-Encoding") // the API only forwards text; the edge compresses
		tracked := &trackedWriter{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				logPanic(p)
				if !tracked.wrote {
					clear(w.Header())
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = w.Write(fault.Internal(nil).AdminBody("")) // into memory
				}
			} else if !tracked.wrote {
				w.WriteHeader(http.StatusOK)
			}
		}()
		h.ServeHTTP(tracked, r)
	})
}

// trackedWriter records whether the response has started; the adapter's writer lets a
// handler write two statuses.
type trackedWriter struct {
	http.ResponseWriter
	wrote bool
}

func (w *trackedWriter) WriteHeader(status int) {
	if w.wrote || status < 200 {
		return
	}
	w.wrote = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *trackedWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(p)
}

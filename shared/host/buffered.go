package host

import (
	"bytes"
	"context"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

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
	adapter  *httpadapter.HandlerAdapter
	verifier *originauth.Verifier
}

// NewBuffered returns the adapter. A nil Verifier admits every request.
func NewBuffered(h http.Handler, d *originauth.Verifier) *Buffered {
	return &Buffered{adapter: httpadapter.New(restoreCaller(h)), verifier: d}
}

// Invoke is the Lambda handler.
func (b *Buffered) Invoke(ctx context.Context, ev events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	h := eventHeader(&ev)
	if err := b.verifier.Verify(ctx, h); err != nil {
		return plainRejection(fault.From(err)), nil
	}
	if ip := clientIP(h); b.verifier != nil && ip != "" {
		ev.RequestContext.Identity.SourceIP = ip
	}
	strip(ev.Headers)
	strip(ev.MultiValueHeaders)
	u, err := eventURL(&ev)
	if err == nil {
		_, err = eventBody(&ev)
	}
	if err != nil {
		return plainRejection(fault.From(err)), nil
	}
	ev.Path = u.EscapedPath()
	out, err := b.adapter.ProxyWithContext(ctx, ev)
	if err == nil && len(out.Body) > maxBuffered {
		return plainRejection(fault.Newf(fault.InvalidRequest, "page_size", "the response has %d bytes, which exceeds the limit of %d; request fewer items", len(out.Body), maxBuffered)), nil
	}
	return out, err
}

// strip removes headers that only the adapter may set and those that handlers must not
// see.
func strip[V any](headers map[string]V) {
	maps.DeleteFunc(headers, func(name string, _ V) bool { return reserved(name) || strings.EqualFold(name, originauth.Header) })
}

func plainRejection(f *fault.Fault) events.APIGatewayProxyResponse {
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

// QuietLog removes bytes received from other hosts from the process's log: net/http logs
// what a host sends on an idle connection, by the log package and in full.
func QuietLog() { log.SetOutput(hostBytesFilter{to: log.Writer(), lastLogged: new(atomic.Int64)}) }

// hostBytesFilter removes the quoted bytes of such lines. Lines that a host can cause
// with unexpected HTTP/2 frames, at ten bytes each, are limited to one per second.
type hostBytesFilter struct {
	to         io.Writer
	lastLogged *atomic.Int64 // Unix seconds of the last such line
}

var ofFrames = [][]byte{
	[]byte("Transport: unhandled response frame type"), []byte("Transport received unsolicited DATA frame"), []byte("protocol error: received "),
}

// repeated reports whether a line exceeds that limit.
func (w hostBytesFilter) repeated(line []byte) bool {
	for _, text := range ofFrames {
		if bytes.Contains(line, text) {
			now := time.Now().Unix()
			return w.lastLogged.Swap(now) == now
		}
	}
	return false
}

var unsolicited, quoted, behind = []byte("Unsolicited response received on idle HTTP channel"), []byte(` starting with "`), []byte(`"; err=`)

// Write implements io.Writer; p is one line of the log package.
func (w hostBytesFilter) Write(p []byte) (int, error) {
	if w.repeated(p) {
		return len(p), nil
	}
	line := p
	if at := bytes.Index(line, unsolicited); at >= 0 {
		if from := bytes.Index(line[at:], quoted); from >= 0 {
			cut := append([]byte(nil), line[:at+from]...)
			if to := bytes.LastIndex(line, behind); to >= 0 {
				cut = append(cut, line[to+1:]...)
			}
			line = append(bytes.TrimRight(cut, "\n"), '\n')
		}
	}
	if _, err := w.to.Write(line); err != nil {
		return 0, err
	}
	return len(p), nil
}

// EnvLogLevel is the variable with the minimum level of the log: debug, info, warn or
// error. On Lambda AWS_LAMBDA_LOG_LEVEL sets it.
const EnvLogLevel = "GATEWAY_LOG_LEVEL"

// LogJSON configures the log as one JSON object per line with the names that Lambda
// reads: timestamp, level and message.
func LogJSON() {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{
		Level: logLevel(os.Getenv(EnvLogLevel), os.Getenv("AWS_LAMBDA_LOG_LEVEL")),
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 {
				switch a.Key {
				case slog.TimeKey:
					a.Key = "timestamp"
				case slog.MessageKey:
					a.Key = "message"
				}
			}
			return a
		},
	})))
	QuietLog()
}

// logLevel returns the first of the names that is a level, or info. Lambda's two
// additional levels map to the nearest level of slog.
func logLevel(names ...string) slog.Level {
	for _, name := range names {
		switch strings.ToLower(name) {
		case "trace", "debug":
			return slog.LevelDebug
		case "info":
			return slog.LevelInfo
		case "warn":
			return slog.LevelWarn
		case "error", "fatal":
			return slog.LevelError
		}
	}
	return slog.LevelInfo
}

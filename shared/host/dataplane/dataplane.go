// Package dataplane is the main function of data-plane functions on Lambda.
package dataplane

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"gateway/shared/app/onaws"
	"gateway/shared/app/plane"
	"gateway/shared/chat"
	"gateway/shared/host"
	"gateway/shared/host/alias"
	"gateway/shared/host/meter"
	"gateway/shared/host/originauth"
	"gateway/shared/mcp/cors"
	"gateway/shared/pricing/running"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/usage"
)

// drain is how long a response without a reader is read. On Lambda a disconnected client
// is detected only when the invocation's time is over.
const drain = time.Second

// Main serves a family's routes until the platform ends the process. Families of files,
// batches and fine-tuning jobs pass the implementation of jobs (plane.Jobs) and omit
// unneeded translators (plane.RowTranslators).
func Main(routes []relay.Route, translators []chat.Translator, jobs ...chat.Jobs) {
	host.LogJSON()
	s, err := open(context.Background(), routes, translators, jobs)
	if err != nil {
		slog.Error("the function cannot start", "error", err.Error())
		os.Exit(1)
	}
	lambda.Start(s.Invoke)
}

func open(ctx context.Context, routes []relay.Route, translators []chat.Translator, jobs []chat.Jobs) (*host.Stream, error) {
	if err := checkJobs(routes, jobs); err != nil {
		return nil, err
	}
	m := meter.Process(onaws.Name())
	in, err := onaws.Open(ctx, onaws.Bucket, onaws.UsageQueue, onaws.AuditQueue, onaws.Keys)
	if err != nil {
		return nil, err
	}
	secrets, err := onaws.OriginSecrets()
	if err != nil {
		return nil, err
	}
	front, err := frontFromEnvironment()
	if err != nil {
		return nil, err
	}
	vectors, err := onaws.Vectors(ctx)
	if err != nil {
		return nil, err
	}
	r := plane.New(in.Core, m.Sink(newCostSink(logFallback{in.Sink})), plane.Options{RecordAfterBody: true, Drain: drain, Jobs: jobs, Translators: translators, Vectors: vectors})
	return &host.Stream{Handler: front(relay.NewMux(r, routes)), Verifier: originauth.ForStore(secrets, in.Store).OnRejected(m.CountBypass), Thaw: in.CloseIdleConnections}, nil
}

// frontFromEnvironment returns what is in front of the routes: header aliases, and the web pages
// that may call MCP servers and the data plane.
func frontFromEnvironment() (func(http.Handler) http.Handler, error) {
	aliases, err := alias.FromEnvironment()
	if err != nil {
		return nil, err
	}
	pages, err := cors.FromEnvironment(cors.Public(os.Getenv(cors.EnvPublic)))
	if err != nil {
		return nil, err
	}
	dataPages, err := cors.DataPlaneFromEnvironment()
	if err != nil {
		return nil, err
	}
	return func(h http.Handler) http.Handler { return pages.Handler(aliases.Handler(dataPages.Handler(h))) }, nil
}

// checkJobs rejects routes of jobs without an implementation.
func checkJobs(routes []relay.Route, jobs []chat.Jobs) error {
	for _, r := range routes {
		if len(jobs) == 0 && provider.IsJobOperation(r.Operation) {
			return fmt.Errorf("dataplane: %s needs what carries jobs, and none was named", r.Operation)
		}
	}
	return nil
}

// LogFallback returns a sink that writes an event to the log if s fails.
func LogFallback(s usage.Sink) usage.Sink { return logFallback{s} }

// logFallback writes an event that cannot be queued to the log, from where it can be
// queued again. Its bodies are sealed.
type logFallback struct{ usage.Sink }

// maxLine is the maximum size of a log line, in bytes; a larger event is logged without
// its bodies.
const maxLine = 128 << 10

// lostEvent is the message of log lines with an event; the function requeue reads them.
const lostEvent = "usage event is not queued"

func (s logFallback) Emit(ctx context.Context, r *usage.Record) error {
	err := s.Sink.Emit(ctx, r)
	if err == nil {
		return nil
	}
	event := r.AppendEvent(nil)
	if len(event) > maxLine {
		bare := *r
		bare.Bodies = nil
		event = bare.AppendEvent(event[:0])
	}
	slog.Error(lostEvent, "org", r.Org, "event", base64.StdEncoding.EncodeToString(event), "error", err.Error())
	return nil
}

// costSink adds the cost of running the gateway to each record. A function serves one
// request at a time, so its AWS calls between two records belong to the second.
type costSink struct {
	usage.Sink
	memory int64 // MB

	mu   sync.Mutex
	last running.Used
}

// newCostSink reads the memory of the function from Lambda's environment.
func newCostSink(to usage.Sink) usage.Sink {
	memory, err := strconv.ParseInt(os.Getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"), 10, 64)
	if err != nil || memory <= 0 {
		return to // not on Lambda
	}
	return &costSink{Sink: to, memory: memory, last: running.Process.Now()}
}

// Emit implements usage.Sink. The message that carries the record counts in its own
// request and in no later one.
func (s *costSink) Emit(ctx context.Context, r *usage.Record) error {
	r.Running = running.Request(s.used(), s.memory, r.Duration)
	defer s.used()
	return s.Sink.Emit(ctx, r)
}

// used returns the AWS calls since the last call.
func (s *costSink) used() running.Used {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := running.Process.Now()
	used := now.Since(s.last)
	s.last = now
	return used
}

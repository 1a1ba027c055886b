package observe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"gateway/shared/egress"
	"gateway/shared/observe/otlp"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/wire/release"
)

// Directory returns the destinations of a workspace: its own and the organization's.
type Directory interface {
	Targets(ctx context.Context, sc store.Scope) ([]Target, error)
}

// Exporter reports records to destinations.
type Exporter struct {
	Directory Directory
	// Bodies returns the stored content of a record, for destinations that need it; nil
	// or false if there is none.
	Bodies           func(ctx context.Context, r *usage.Record) (usage.Bodies, bool)
	Transport        http.RoundTripper // guarded, because users choose the addresses
	Now              func() time.Time
	ProcessTarget    *Target           // of the process, besides those of the directory; nil if there is none
	ProcessTransport http.RoundTripper // to ProcessTarget; nil: Transport
	OptIn            string            // same as the environment variable of that name: for destinations that do not choose

	totals      totals
	dropped     atomic.Int64 // records that were not reported to a destination
	mu          sync.Mutex
	pausedUntil map[string]time.Time // destinations that failed, with the time until which nothing is sent to them
}

// Limits of sending.
const (
	maxSpans          = 500              // of one request
	pauseAfterFailure = 30 * time.Second // without requests to a destination after it failed
	requestTimeout    = 5 * time.Second  // for one request
	maxResponse       = 64 << 10         // of a response that is read
	maxConcurrent     = 8                // requests under way
)

// Push is a request that is ready to be sent.
type Push struct {
	target  *Target
	signal  string
	body    []byte
	records int
}

// Dropped is how many records were not reported to destinations, counted once for each
// destination and signal.
func (e *Exporter) Dropped() int64 { return e.dropped.Load() }

// drop counts records that are not sent, and logs the reason.
func (e *Exporter) drop(p *Push, why string) {
	total := e.dropped.Add(int64(p.records))
	slog.Warn("telemetry is dropped", "destination", p.target.ID, "signal", p.signal, "records", p.records, "dropped", total, "error", why)
}

// Prepare returns the requests that report records. They retain no reference to the records.
func (e *Exporter) Prepare(ctx context.Context, records []usage.Record) (out []Push) {
	of := make(map[store.Scope][]*usage.Record)
	for i := range records {
		if r := &records[i]; r.Org != "" && !r.Start.IsZero() && !r.Reported { // other spans under the same ids would be forged
			sc := store.Scope{Org: r.Org, Workspace: r.Workspace}
			of[sc] = append(of[sc], r)
		}
	}
	for sc, list := range of {
		if e.ProcessTarget != nil {
			for part := range slices.Chunk(list, maxSpans) {
				out = append(out, e.pushes(ctx, e.ProcessTarget, part)...)
			}
		}
		targets, err := e.Directory.Targets(ctx, sc)
		if err != nil {
			slog.Warn("destinations of telemetry cannot be read", "organisation", sc.Org, "error", err.Error())
			e.dropped.Add(int64(len(list)))
			continue
		}
		for i := range targets {
			for part := range slices.Chunk(list, maxSpans) {
				out = append(out, e.pushes(ctx, &targets[i], part)...)
			}
		}
	}
	return out
}

// pushes are the requests that report some records to one destination.
func (e *Exporter) pushes(ctx context.Context, t *Target, records []*usage.Record) (out []Push) {
	latest := newest(t.OptIn) || t.OptIn == "" && newest(e.OptIn)
	origin := e.origin(t, latest)
	if t.gets(Traces) {
		var all []otlp.Span
		for _, r := range records {
			var c *Content
			if t.Content && e.Bodies != nil {
				if b, ok := e.Bodies(ctx, r); ok {
					c = ReadContent(&b, failure(r) != "")
				}
			}
			all = append(all, spans(r, latest, c)...)
		}
		out = append(out, Push{t, Traces, otlp.Traces(origin, all), len(records)})
	}
	if t.gets(Metrics) {
		s := newSums(latest)
		for _, r := range records {
			s.add(r)
		}
		metrics := s.metrics
		if t.Temporality == Cumulative {
			metrics = e.totals.add(state(t), metrics)
		}
		out = append(out, Push{t, Metrics, otlp.Metrics(origin, metrics), len(records)})
	}
	return out
}

// origin returns the sender. The destination's own resource attributes take precedence.
func (e *Exporter) origin(t *Target, latest bool) *otlp.Origin {
	named := map[string]string{"service.name": "gateway", "service.version": release.Version}
	if !latest {
		named[attrConventionsOfNow] = conventionsOfToday
	}
	if t.Temporality == Cumulative {
		named["service.instance.id"] = e.totals.name()
	}
	maps.Copy(named, t.Attributes)
	o := &otlp.Origin{Name: "gateway", Version: "1", Schema: schemaOfToday}
	for _, k := range slices.Sorted(maps.Keys(named)) {
		o.Resource = append(o.Resource, otlp.Attr{Key: k, Value: named[k]})
	}
	return o
}

// Send sends requests concurrently, each only once. It waits for all.
func (e *Exporter) Send(ctx context.Context, pushes []Push) {
	var wg sync.WaitGroup
	free := make(chan struct{}, maxConcurrent)
	for i := range pushes {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			e.send(ctx, &pushes[i])
		})
	}
	wg.Wait()
}

func (e *Exporter) send(ctx context.Context, p *Push) {
	if e.paused(p.target) {
		e.drop(p, "the destination failed a moment ago")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if why := e.post(ctx, p); why != "" {
		e.pause(p.target)
		e.drop(p, why)
	}
}

// post sends one request; "" when it was accepted.
func (e *Exporter) post(ctx context.Context, p *Push) (why string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.target.address(p.signal), bytes.NewReader(p.body))
	if err != nil {
		return "the address cannot be called"
	}
	for _, h := range p.target.Headers {
		req.Header.Set(h[0], h[1])
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("User-Agent", "gateway-telemetry/1")
	via := e.Transport
	if p.target == e.ProcessTarget && e.ProcessTransport != nil {
		via = e.ProcessTransport
	}
	resp, err := via.RoundTrip(req)
	switch {
	case err == nil:
	case egress.IsBlocked(err):
		return "the gateway may not call the address"
	case errors.Is(err, context.DeadlineExceeded):
		return "the destination did not respond in time"
	default:
		return "the destination cannot be reached"
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponse)) // so that the connection can be used again
	if resp.StatusCode/100 != 2 {
		return "the destination responded with status " + strconv.Itoa(resp.StatusCode)
	}
	return ""
}

// state names a destination in its present settings: after a change of them it is tried at
// once.
func state(t *Target) string { return t.Scope.Org + "/" + t.ID + "/" + strconv.FormatInt(t.Rev, 10) }

func (e *Exporter) paused(t *Target) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.Now().Before(e.pausedUntil[state(t)])
}

func (e *Exporter) pause(t *Target) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.Now()
	maps.DeleteFunc(e.pausedUntil, func(_ string, until time.Time) bool { return !now.Before(until) })
	if e.pausedUntil == nil {
		e.pausedUntil = map[string]time.Time{}
	}
	e.pausedUntil[state(t)] = now.Add(pauseAfterFailure)
}

// Export reports records and waits until that is done, or until its time is over. It is for
// workers that stop between batches.
func (e *Exporter) Export(ctx context.Context, records []usage.Record) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	e.Send(ctx, e.Prepare(ctx, records))
}

// Queue sends in the background, so that the worker that ingests records does not wait.
// Its size is limited; excess exports are dropped and counted.
type Queue struct {
	exporter *Exporter
	waiting  chan []Push
}

// maxWaiting is how many batches may wait.
const maxWaiting = 64

// NewQueue returns the queue of an exporter; Run empties it.
func NewQueue(e *Exporter) *Queue { return &Queue{e, make(chan []Push, maxWaiting)} }

// Offer queues the reports of records. They keep no reference to the records.
func (q *Queue) Offer(ctx context.Context, records []usage.Record) {
	pushes := q.exporter.Prepare(ctx, records)
	if len(pushes) == 0 {
		return
	}
	select {
	case q.waiting <- pushes:
	default:
		for i := range pushes {
			q.exporter.drop(&pushes[i], "the queue is full")
		}
	}
}

// Run sends until ctx ends. Reports that still wait then are dropped.
func (q *Queue) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case pushes := <-q.waiting:
			q.exporter.Send(ctx, pushes)
		}
	}
}

// Command seed fills the store of a local gateway with usage: a number of requests over the
// last 30 days, stored and compacted as the worker would have done. With -measure it runs the
// queries of analytics and logs, and prints how long they took, cold (in a new process) and
// warm.
//
//	go run ./scripts/seed -data .gateway -requests 1000000
//	go run ./scripts/seed -data .gateway -measure
package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/local/embedded"
	"gateway/shared/pricing"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

const days = 30

func main() {
	data := flag.String("data", ".gateway", "folder of the gateway, which must not run")
	requests := flag.Int("requests", 1_000_000, "how many requests are written")
	measure := flag.Bool("measure", false, "ask questions of what is there, and write nothing")
	flag.Parse()
	if err := run(*data, *requests, *measure); err != nil {
		fmt.Fprintln(os.Stderr, "seed:", err)
		os.Exit(1)
	}
}

func run(data string, requests int, measure bool) (err error) {
	ctx := context.Background()
	stores, err := embedded.Open(ctx, data, embedded.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if closed := stores.Close(); err == nil {
			err = closed
		}
	}()
	in, err := place(ctx, stores)
	if err != nil {
		return err
	}
	if measure {
		return runQueries(ctx, stores, in)
	}
	return fill(ctx, stores, in, requests)
}

// first is the organization that a first start makes.
const first = "default"

// place is the default workspace if a gateway has been started on the folder; otherwise it
// is one that only this program knows.
func place(ctx context.Context, s *embedded.Stores) (store.Scope, error) {
	rec, ok, err := resource.New(s.Store, resource.Embedded()).Get(ctx, store.Scope{Org: first}, tenant.KindWorkspace, first)
	if err != nil {
		return store.Scope{}, err
	}
	if !ok {
		return store.Scope{Org: first, Workspace: "seeded"}, nil
	}
	return store.Scope{Org: first, Workspace: rec.ID}, nil
}

// batch is how many records the worker stores at once.
const batch = 1000

// fill writes records hour by hour, and merges each day when it is over.
func fill(ctx context.Context, s *embedded.Stores, in store.Scope, requests int) error {
	end := time.Now().UTC().Truncate(24 * time.Hour)
	begin := end.Add(-days * 24 * time.Hour)
	now := begin
	archive := segment.New(s.Store, s.Bucket, segment.Options{Clock: func() time.Time { return now }})
	perHour := max(1, requests/(days*24))
	started, written := time.Now(), 0
	records := make([]usage.Record, 0, batch)
	for hour := begin; hour.Before(end); hour = hour.Add(time.Hour) {
		for n := range perHour {
			records = append(records, made(written, hour.Add(time.Duration(n)*time.Hour/time.Duration(perHour)), in))
			written++
			if len(records) == batch || n == perHour-1 {
				now = records[len(records)-1].Start
				if err := archive.Ingest(ctx, records); err != nil {
					return err
				}
				records = records[:0]
			}
		}
		now = hour.Add(time.Hour + 10*time.Minute) // the hour is over
		if err := archive.Compact(ctx); err != nil {
			return err
		}
		if next := hour.Add(time.Hour); next.Hour() != 0 {
			continue
		}
		for _, later := range []time.Duration{2 * time.Hour, time.Minute, 50 * time.Hour, time.Minute, time.Hour} {
			now = now.Add(later)
			if err := archive.Compact(ctx); err != nil {
				return err
			}
		}
		fmt.Printf("%s: %d requests, %.0f s\n", hour.Format(time.DateOnly), written, time.Since(started).Seconds())
	}
	return nil
}

// word is text for a number: so many hexadecimal digits.
func word(kind string, n, digits int) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(kind), uint64(n)))
	return hex.EncodeToString(sum[:])[:digits]
}

var (
	models    = []string{"gpt-4o", "gpt-4o-mini", "claude-sonnet-4-5", "claude-haiku-4-5", "gemini-2.5-flash"}
	providers = []string{"openai", "openai", "anthropic", "anthropic", "google"}
)

// made returns the request with a given number; the same number gives the same request. As
// in applications, an API key has one config and calls one model, and now and then a second
// one.
func made(n int, at time.Time, in store.Scope) usage.Record {
	rnd := rand.New(rand.NewPCG(uint64(n), 1))
	key := rnd.IntN(50)
	model := key % len(models)
	if rnd.IntN(10) == 0 {
		model = (model + 1) % len(models)
	}
	r := usage.Record{
		Start: at, Org: in.Org, Workspace: in.Workspace, WorkspaceSlug: first, KeyID: word("key", key, 32), KeyType: "workspace-service",
		UserID: word("member", rnd.IntN(200), 32), EndUser: "user-" + word("user", rnd.IntN(20_000), 8), TraceID: word("trace", n/3, 32), SpanID: word("span", n, 16),
		Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions", RequestModel: models[model], Model: models[model], Provider: providers[model], ProviderSlug: providers[model],
		ConfigSlug: "config-" + word("config", key%20, 4), CacheStatus: "MISS", ClientStatus: 200, Priced: true, Cost: pricing.NanoDollars(rnd.IntN(5e6)),
		Duration: time.Duration(rnd.ExpFloat64() * 1.5e9), TimeToFirstByte: 300 * time.Millisecond, FinishReason: "stop",
	}
	r.ID = ulid.MustNew(ulid.Timestamp(at), rand.NewChaCha8(sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))))).String()
	r.Agent.Session = word("session", n/40, 32)
	r.Metadata = map[string]string{"_user": r.EndUser, "team": "team-" + word("team", rnd.IntN(12), 4)}
	switch rnd.IntN(50) {
	case 0:
		r.ClientStatus, r.Cost = 500, 0
	case 1:
		r.ClientStatus, r.Cost = 429, 0
	case 2, 3, 4:
		r.CacheStatus, r.CacheSaved, r.Cost = "HIT", r.Cost, 0
	}
	r.Usage.Set(pricing.Input, int64(rnd.IntN(4000)))
	r.Usage.Set(pricing.Output, int64(rnd.IntN(900)))
	return r
}

// question is something to ask, with the time that it may take warm.
type question struct {
	name string
	run  func(*report.Reader) error
	most time.Duration
}

// How long responses may take; lookUp is for questions that find a few logs among all.
const (
	graph  = 300 * time.Millisecond
	lookUp = 100 * time.Millisecond
	cold   = 3 * time.Second
)

// rounds is how often a query is repeated warm; the median counts.
const rounds = 5

// runQueries runs every query with a new reader, which has no cache yet, and then again.
func runQueries(ctx context.Context, s *embedded.Stores, in store.Scope) error {
	to := time.Now().UTC()
	all := report.Filter{From: to.Add(-(days + 2) * 24 * time.Hour), To: to}
	open := func() *report.Reader { return report.New(segment.New(s.Store, s.Bucket, segment.Options{}), s.Bucket) }
	// A worker that starts on the folder would do this first.
	compactor := segment.New(s.Store, s.Bucket, segment.Options{})
	for range 5 {
		if err := compactor.Compact(ctx); err != nil {
			return err
		}
	}
	page, err := open().Logs(ctx, in, &report.LogQuery{Filter: all, Limit: 1, Offset: 5000})
	if err != nil || len(page.Records) == 0 {
		return fmt.Errorf("no requests are there to ask for (%w)", err)
	}
	known := page.Records[0]
	var list []question
	for _, name := range []string{"requests", "cost", "latency", "tokens", "users", "errors/stacks", "cache/hit-rate"} {
		list = append(list, question{"graph " + name, func(r *report.Reader) error { _, _, err := r.Graph(ctx, in, name, &all); return err }, graph})
	}
	logs := func(what string, most time.Duration, set func(*report.Filter)) {
		f := all
		set(&f)
		list = append(list, question{what, func(r *report.Reader) error {
			_, err := r.Logs(ctx, in, &report.LogQuery{Filter: f, Limit: 50})
			return err
		}, most})
	}
	logs("logs, the newest", graph, func(*report.Filter) {})
	list = append(list, question{"log by id", func(r *report.Reader) error { _, _, err := r.Log(ctx, in, known.ID); return err }, lookUp})
	for what, values := range map[string][3]string{"there": {known.TraceID, known.SpanID, known.Agent.Session}, "missing": {"none", "none", "none"}} {
		logs("logs by trace, "+what, lookUp, func(f *report.Filter) { f.TraceIDs = []string{values[0]} })
		logs("logs by span, "+what, lookUp, func(f *report.Filter) { f.SpanIDs = []string{values[1]} })
		logs("logs by session, "+what, lookUp, func(f *report.Filter) { f.Sessions = []string{values[2]} })
	}
	logs("logs by user, there", lookUp, func(f *report.Filter) { f.EndUsers = []string{known.EndUser} })
	logs("logs by user, missing", lookUp, func(f *report.Filter) { f.EndUsers = []string{"none"} })
	slices.SortStableFunc(list, func(x, y question) int { return int(x.most - y.most) })

	fmt.Printf("%-28s %10s %10s %10s\n", "question", "cold ms", "warm ms", "heap MiB")
	late := 0
	for _, q := range list {
		r := open()
		first, err := measure(r, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		var warm []time.Duration
		for range rounds {
			d, err := measure(r, q)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			warm = append(warm, d)
		}
		slices.Sort(warm)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		mark := ""
		if warm[rounds/2] > q.most || first > cold {
			mark, late = "  late", late+1
		}
		fmt.Printf("%-28s %10.1f %10.1f %10.0f%s\n", q.name, ms(first), ms(warm[rounds/2]), float64(m.HeapSys)/(1<<20), mark)
	}
	fmt.Printf("%d of %d questions take longer than they may\n", late, len(list))
	return nil
}

func measure(r *report.Reader, q question) (time.Duration, error) {
	start := time.Now()
	err := q.run(r)
	return time.Since(start), err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

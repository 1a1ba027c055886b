package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"gateway/local/embedded"
	"gateway/shared/store"
	"gateway/shared/usage/report"
	"gateway/shared/usage/segment"
)

// question is something to ask, with the time that it may take warm.
type question struct {
	name string
	ask  func(*report.Reader) error
	most time.Duration
}

// How long answers may take; lookUp is for questions that find a few logs among all.
const (
	graph  = 300 * time.Millisecond
	lookUp = 100 * time.Millisecond
	cold   = 3 * time.Second
)

// rounds is how often a query is repeated warm; the median counts.
const rounds = 5

// ask runs every query with a new reader, which has no cache yet, and then again.
func ask(ctx context.Context, s *embedded.Stores, in store.Scope) error {
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
		first, err := took(r, q)
		if err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
		var warm []time.Duration
		for range rounds {
			d, err := took(r, q)
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

func took(r *report.Reader, q question) (time.Duration, error) {
	start := time.Now()
	err := q.ask(r)
	return time.Since(start), err
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

package claims

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"gateway/shared/store"
)

// Remembered is how long a trace is remembered after its last span.
const Remembered = 24 * time.Hour

// Traces remembers traces, in rows of the table usage.
type Traces struct {
	table store.Table
	now   func() time.Time
	// Logged returns the calls that the gateway itself has logged in traces, as spans. It is
	// called for traces with spans that report calls. It may be nil.
	logged func(ctx context.Context, sc store.Scope, traces []string, from, to time.Time) (map[string][]Span, error)
}

// New returns Traces that keep their rows in s.
func New(s store.Store, now func() time.Time, logged func(ctx context.Context, sc store.Scope, traces []string, from, to time.Time) (map[string][]Span, error)) *Traces {
	return &Traces{s.Table(store.Usage), now, logged}
}

// Request are the spans of one request, by their traces.
type Request struct {
	order []string
	spans map[string][]Span
	at    map[string][]int
	n     int
}

// Add adds a span; its verdict will have the index of its call.
func (r *Request) Add(trace string, s Span) {
	if r.spans == nil {
		r.spans, r.at = map[string][]Span{}, map[string][]int{}
	}
	if _, known := r.spans[trace]; !known {
		r.order = append(r.order, trace)
	}
	r.spans[trace] = append(r.spans[trace], s)
	r.at[trace] = append(r.at[trace], r.n)
	r.n++
}

// key is the row of a trace.
func key(sc store.Scope, trace string) store.Key {
	return sc.Partition("TRACE", trace).Key("CALLS")
}

// tries is how often a row is read again because another request changed it.
const tries = 20

var errBusy = errors.New("claims: other requests change the trace all the time")

// Decide returns the verdicts on the spans of a request, in the order in which they were
// added, after it has remembered them. The same request gets the same verdicts again, so
// that it can be repeated after an error.
func (t *Traces) Decide(ctx context.Context, sc store.Scope, r *Request) ([]Verdict, error) {
	out := make([]Verdict, r.n)
	logged, err := t.ours(ctx, sc, r)
	if err != nil {
		return nil, err
	}
	keys := make([]store.Key, len(r.order))
	for i, trace := range r.order {
		keys[i] = key(sc, trace)
	}
	rows, err := t.table.GetMany(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	for i, trace := range r.order {
		spans := append(append([]Span(nil), logged[trace]...), r.spans[trace]...)
		verdicts, err := t.one(ctx, keys[i], rows[keys[i]], spans)
		if err != nil {
			return nil, err
		}
		for j, v := range verdicts[len(logged[trace]):] {
			out[r.at[trace][j]] = v
		}
	}
	return out, nil
}

// ours returns the gateway's own calls in the traces that have claims.
func (t *Traces) ours(ctx context.Context, sc store.Scope, r *Request) (map[string][]Span, error) {
	if t.logged == nil {
		return nil, nil
	}
	var traces []string
	var from, to int64
	for _, trace := range r.order {
		claims := false
		for i := range r.spans[trace] {
			s := &r.spans[trace][i]
			if !s.Claims {
				continue
			}
			if len(traces) == 0 && !claims {
				from, to = s.Start, s.End
			}
			claims, from, to = true, min(from, s.Start), max(to, s.End)
		}
		if claims {
			traces = append(traces, trace)
		}
	}
	if len(traces) == 0 {
		return nil, nil
	}
	return t.logged(ctx, sc, traces, time.UnixMilli(from), time.UnixMilli(to))
}

// one decides about the spans of a trace whose row is item; nil: there is none.
func (t *Traces) one(ctx context.Context, key store.Key, item store.Item, spans []Span) ([]Verdict, error) {
	expired := false
	for range tries {
		known, err := decode(item.Bytes("spans"))
		if err != nil { // a trace begins anew rather than being rejected until its row expires
			slog.Error("the row of a trace cannot be read", "error", err.Error())
			known = &trace{nodes: map[ID]*node{}}
		}
		verdicts := known.decide(spans)
		now := t.now()
		rev := item.Int("rev")
		row := store.Row{Key: key, Item: store.Item{"spans": known.encode(), "rev": rev + 1, "until": store.Epoch(now.Add(Remembered))}, Expires: now.Add(Remembered)}
		cond := store.IfEqual(store.At("rev"), rev)
		if item == nil {
			// An expired row is not read, but it is there until it is deleted.
			if cond = store.IfAbsent(); expired {
				cond = store.IfAtMost(store.At("until"), store.Epoch(now))
			}
			expired = !expired
		}
		err = t.table.Put(ctx, row, cond)
		if err == nil {
			return verdicts, nil
		}
		if _, refused := store.AsCondition(err); !refused {
			return nil, fmt.Errorf("claims: %w", err)
		}
		if item, _, err = t.table.Get(ctx, key, true); err != nil {
			return nil, fmt.Errorf("claims: %w", err)
		}
	}
	return nil, errBusy
}

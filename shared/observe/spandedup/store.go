package spandedup

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
	store store.Store
	table store.Table
	now   func() time.Time
	// Logged returns the calls that the gateway itself has logged in traces, as spans. It is
	// called for traces with spans that report calls. It may be nil.
	logged func(ctx context.Context, sc store.Scope, traces []string, from, to time.Time) (map[string][]Span, error)
}

// New returns Traces that keep their rows in s.
func New(s store.Store, now func() time.Time, logged func(ctx context.Context, sc store.Scope, traces []string, from, to time.Time) (map[string][]Span, error)) *Traces {
	return &Traces{s, s.Table(store.Usage), now, logged}
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

var errBusy = errors.New("claims: the trace is changed concurrently")

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
	var done []change
	size := 0
	for i, trace := range r.order {
		one := change{trace: trace, key: keys[i], spans: r.spans[trace]}
		if ours := logged[trace]; len(ours) > 0 {
			one.ours = len(ours)
			one.spans = append(ours[:len(ours):len(ours)], one.spans...)
		}
		one.decide(rows[keys[i]], t.now())
		if size += len(one.row.Item.Bytes("spans")); len(done) == maxChanges || size > maxBytes {
			if err := t.write(ctx, done); err != nil {
				return nil, err
			}
			r.collect(out, done)
			done, size = done[:0], len(one.row.Item.Bytes("spans"))
		}
		done = append(done, one)
	}
	if err := t.write(ctx, done); err != nil {
		return nil, err
	}
	r.collect(out, done)
	return out, nil
}

// Limits of the changes that are written together.
const (
	maxChanges = 50
	maxBytes   = 1 << 20
)

// change is what a request changes in a trace.
type change struct {
	trace    string
	key      store.Key
	spans    []Span // those that the gateway has logged come first
	ours     int    // how many these are
	verdicts []Verdict
	row      store.Row
	cond     store.Cond
}

// decide decides about the spans by the stored row; nil if there is none.
func (c *change) decide(item store.Item, now time.Time) {
	known, err := decode(item.Bytes("spans"))
	if err != nil { // a trace begins again rather than being rejected until its row expires
		slog.Error("the row of a trace cannot be read", "error", err.Error())
		known = &trace{nodes: map[ID]*node{}}
	}
	c.verdicts = known.decide(c.spans)
	rev := item.Int("rev")
	c.row = store.Row{Key: c.key, Item: store.Item{"spans": known.encode(), "rev": rev + 1, "until": store.Epoch(now.Add(Remembered))}, Expires: now.Add(Remembered)}
	if c.cond = store.IfEqual(store.At("rev"), rev); item == nil {
		c.cond = store.IfAbsent()
	}
}

// collect puts the verdicts of changes where their spans were added.
func (r *Request) collect(out []Verdict, done []change) {
	for i := range done {
		c := &done[i]
		for j, v := range c.verdicts[c.ours:] {
			out[r.at[c.trace][j]] = v
		}
	}
}

// write writes changes together or, where another request was faster, one by one.
func (t *Traces) write(ctx context.Context, done []change) error {
	if len(done) == 0 {
		return nil
	}
	actions := make([]store.Action, len(done))
	for i := range done {
		actions[i] = store.Action{Table: store.Usage, Put: &store.Put{Row: done[i].row, If: []store.Cond{done[i].cond}}}
	}
	err := t.store.Transact(ctx, actions...)
	if err == nil {
		return nil
	}
	if _, refused := store.AsCondition(err); !refused && !errors.Is(err, store.ErrContended) {
		return fmt.Errorf("claims: %w", err)
	}
	for i := range done {
		if err := t.again(ctx, &done[i]); err != nil {
			return err
		}
	}
	return nil
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

// again decides about one trace until its row is written.
func (t *Traces) again(ctx context.Context, c *change) error {
	expired := false
	for range tries {
		item, _, err := t.table.Get(ctx, c.key, true)
		if err != nil {
			return fmt.Errorf("claims: %w", err)
		}
		now := t.now()
		if c.decide(item, now); item == nil {
			// An expired row is not read, but it is there until it is deleted.
			if expired {
				c.cond = store.IfAtMost(store.At("until"), store.Epoch(now))
			}
			expired = !expired
		}
		err = t.table.Put(ctx, c.row, c.cond)
		if err == nil {
			return nil
		}
		if _, refused := store.AsCondition(err); !refused {
			return fmt.Errorf("claims: %w", err)
		}
	}
	return errBusy
}

package logs

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
	"gateway/shared/observe/instrumentation"
	"gateway/shared/observe/otlp"
	"gateway/shared/observe/spandedup"
	"gateway/shared/route/replay"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// Bounds of one call of a simulation.
const (
	simulated     = 100_000   // default limit of requests
	maxSimulated  = 1_000_000 // and at most
	simulatedPage = 2048      // of them in memory
	simulating    = 20 * time.Second
	atOnce        = 2 // simulations of one process; further ones wait
	patience      = 10 * time.Second
	maxChanges    = 10
)

func (f *family) simulations() admin.Route {
	object := func(name, doc string, example any) admin.Field {
		return admin.Field{Name: name, Type: admin.Object, Open: true, Doc: doc, Example: example}
	}
	list := func(name, doc string, of admin.Field) admin.Field {
		return admin.Field{Name: name, Type: admin.Array, Max: maxChanges, Of: &of, Doc: doc}
	}
	guardrail := admin.Field{Type: admin.Any, Form: admin.Schema{"type": []string{"object", "string"}}, Example: map[string]any{"default.contains": map[string]any{"operator": "none", "words": []string{"secret"}}, "deny": true}}
	conditions := []any{map[string]any{"key": "metadata.team", "value": "*"}}
	groups := []any{map[string]any{"key": "metadata.team"}}
	return admin.Route{
		Method: "POST", Path: "/simulations", Name: "simulate", Scopes: []string{"logs.read", "logs.view"}, Level: admin.InEither,
		Doc:   "Simulate another config, limits, guardrails or prices on recorded requests: changes of targets, rejections and costs. Nothing is sent or stored.",
		Query: usagequery.Fields(true),
		Body: []admin.Field{
			{Name: "config", Type: admin.Any, Form: admin.Schema{"type": []string{"object", "string"}}, Doc: "A config, or the slug of a saved one, that routes all requests.", Example: map[string]any{"provider": "@openai"}},
			{Name: "prices", Type: admin.Object, Doc: "Prices of calls.", Fields: []admin.Field{
				object("models", "Prices by provider/model, each a pricing_config.", map[string]any{"openai/gpt-4o": map[string]any{"pay_as_you_go": map[string]any{"request_token": map[string]any{"price": 0.0002}}}}),
				object("multipliers", "Numbers by provider/model, provider/* or *: the cost of a call is multiplied by the first one that exists.", map[string]any{"openai/*": 0.8}),
			}},
			list("usage_limits", "Budgets in the format of usage policies, with a name; replaces is the id of the resource with the budget that this one replaces.",
				object("", "", map[string]any{"name": "by team", "conditions": conditions, "group_by": groups, "type": "cost", "credit_limit": 100, "periodic_reset": "monthly"})),
			list("rate_limits", "Rate limits in the format of rate policies, with the same additions.",
				object("", "", map[string]any{"name": "by team", "conditions": conditions, "group_by": groups, "type": "requests", "unit": "rpm", "value": 60})),
			list("input_guardrails", "Guardrails of requests, inline or by the slugs of saved ones. Checks that call another service are not run.", guardrail),
			list("output_guardrails", "Guardrails of responses, in the same format.", guardrail),
			{Name: "read_bodies", Type: admin.Boolean, Default: false, Doc: "Read stored bodies, so that conditions on params can be evaluated; guardrails always read them."},
			{Name: "limit", Type: admin.Integer, Min: 1, Max: maxSimulated, Default: simulated, Doc: "Maximum number of requests to read; a call always ends after 20 seconds."},
			{Name: "cursor", Type: admin.String, Max: maxCursor, Doc: "next_cursor of the previous call with the same body. Counters of limits start at zero."},
		},
		Unrecorded: true, ResponseOf: admin.SchemaOf[simulation], Do: f.simulate,
	}
}

// simulation is the response.
type simulation struct {
	Object   string  `json:"object" enum:"simulation"`
	Complete bool    `json:"complete" doc:"All selected requests were read."`
	Next     *string `json:"next_cursor" doc:"Cursor of the next call; null: it is complete."`
	replay.Result
}

// turns are the simulations that run. The zero value is ready.
type turns struct {
	once sync.Once
	all  chan struct{}
}

// take waits for a turn, for a while; give ends it.
func (t *turns) take(ctx context.Context) (give func(), err error) {
	t.once.Do(func() { t.all = make(chan struct{}, atOnce) })
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case t.all <- struct{}{}:
		return func() { <-t.all }, nil
	case <-ctx.Done():
		busy := fault.New(fault.ServiceUnavailable, "", "Too many simulations are running; try again")
		busy.RetryAfter = 5 * time.Second
		return nil, busy
	}
}

func (f *family) simulate(c *admin.Call) (any, error) {
	sc, err := usagequery.Scope(c)
	if err != nil {
		return nil, err
	}
	filter, err := usagequery.TimedFilter(c.Query)
	if err != nil {
		return nil, err
	}
	if err := usagequery.Restrict(c, &filter); err != nil {
		return nil, err
	}
	if err := usagequery.Rated(c, f.Rated, sc, &filter, usagequery.MaxFeedback); err != nil {
		return nil, err
	}
	q, means, err := f.question(c, sc, &filter)
	if err != nil {
		return nil, err
	}
	bodies := q.Checks.Any() || c.Body.Bool("read_bodies")
	if bodies {
		sees, err := c.AllowsView(tenant.SeeBodies)
		if err != nil {
			return nil, err
		}
		if !sees {
			return nil, admin.Denied()
		}
	}
	give, err := f.simulating.take(c.Context)
	if err != nil {
		return nil, err
	}
	defer give()
	run := replay.New(q, means)
	most := simulated
	if c.Body.HasValue("limit") {
		most = int(c.Body.Int("limit"))
	}
	next, err := f.replay(c.Context, sc, &report.LogQuery{Filter: filter, Cursor: c.Body.Text("cursor"), Oldest: true, NoTotal: true, Bodies: bodies}, run, most)
	if err != nil {
		return nil, usagequery.Failed(err)
	}
	out := simulation{Object: "simulation", Complete: next == "", Result: *run.Result()}
	if next != "" {
		out.Next = &next
	}
	return out, nil
}

// replay feeds the records of a query to a run, at most most, and returns the cursor after the
// last one; empty if there are no more.
func (f *family) replay(ctx context.Context, sc store.Scope, q *report.LogQuery, run *replay.Run, most int) (next string, err error) {
	until := time.Now().Add(simulating)
	for seen := 0; ; {
		q.Limit = min(simulatedPage, most-seen)
		late := false
		next, err = f.Reader.EachLog(ctx, sc, q, func(rec *usage.Record) (bool, error) {
			seen++
			var b replay.Bodies
			if q.Bodies {
				if b, err = f.readable(ctx, rec); err != nil {
					return false, err
				}
			}
			late = time.Now().After(until)
			return !late, run.Simulate(ctx, rec, b)
		})
		if err != nil || next == "" || late || seen >= most {
			return next, err
		}
		q.Cursor = next
	}
}

// readable returns the bodies that guardrails and conditions can evaluate: complete ones.
func (f *family) readable(ctx context.Context, rec *usage.Record) (b replay.Bodies, err error) {
	opened, err := f.open(ctx, rec)
	if err != nil || opened.unreadable || opened.Truncated || string(opened.Request) == usage.Withheld {
		return b, err
	}
	return replay.Bodies{Request: opened.Request, Response: opened.Response}, nil
}

// details prefixes the paths of faults in a field.
func details(bad []fault.Detail, at string) (out []fault.Detail) {
	for _, d := range bad {
		switch {
		case d.Field == "":
			d.Field = at
		case d.Field[0] == '[':
			d.Field = at + d.Field
		default:
			d.Field = at + "." + d.Field
		}
		out = append(out, d)
	}
	return out
}

// items returns the entries of a list of the body, unparsed.
func items(c *admin.Call, name string) (out []json.RawMessage) {
	_ = json.Unmarshal(c.Body.Raw(name), &out) // its description is a list's
	return out
}

func entryOf(name string, i int) string { return fmt.Sprintf("%s[%d]", name, i) }

// traces decides which spans are counted.
func (f *family) traces() *spandedup.Traces {
	return spandedup.New(f.Store, f.Ingest.Now, f.loggedCalls)
}

// spanOf is a span as far as charges depend on it.
func spanOf(t *otlp.ReceivedSpan, x *instrumentation.SpanFacts) spandedup.Span {
	s := spandedup.Span{
		ID: idOf(t.ID), Parent: idOf(t.Parent), Claims: x.Kind != instrumentation.Other, Usage: &x.Usage, Priced: x.RequestedModel != "" || x.Model != "",
		Start: t.Start.UnixMilli(), End: t.End.UnixMilli(),
	}
	if x.ResponseID != "" {
		h := fnv.New64a()
		h.Write([]byte(x.ResponseID))
		s.Response = h.Sum64()
	}
	return s
}

// idOf is the id of a span in hexadecimal; zero for none.
func idOf(text string) (id spandedup.ID) {
	if b, err := hex.DecodeString(text); err == nil && len(b) == len(id) {
		return spandedup.ID(b)
	}
	return spandedup.ID{}
}

// Limits of looking for the gateway's own logs.
const (
	maxLogged = 1000        // in the traces of a request
	clockSkew = time.Minute // between the sender's clock and the gateway's
)

// loggedCalls returns the calls of models in traces that passed through the gateway, as
// spans that count in any case. They must be visible to the logs, which takes a second, on
// AWS up to a minute.
func (f *family) loggedCalls(ctx context.Context, sc store.Scope, traces []string, from, to time.Time) (map[string][]spandedup.Span, error) {
	page, err := f.Reader.Logs(ctx, sc, &report.LogQuery{
		Filter: report.Filter{From: from.Add(-clockSkew), To: to.Add(clockSkew), TraceIDs: traces}, Limit: maxLogged, NoTotal: true,
	})
	if err != nil {
		return nil, usagequery.Failed(err)
	}
	out := map[string][]spandedup.Span{}
	for i := range page.Records {
		r := &page.Records[i]
		parent := idOf(r.ParentSpanID)
		if parent == (spandedup.ID{}) || r.Reported || r.Call != nil {
			continue
		}
		id := idOf(r.SpanID)
		if id == (spandedup.ID{}) {
			h := fnv.New64a()
			h.Write([]byte(r.ID))
			id = spandedup.ID(h.Sum(nil))
		}
		out[r.TraceID] = append(out[r.TraceID], spandedup.Span{
			ID: id, Parent: parent, Claims: true, Logged: true, Start: r.Start.UnixMilli(), End: r.Start.Add(r.Duration).UnixMilli(),
		})
	}
	return out, nil
}

package replay

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/pricing"
	"gateway/shared/route"
	"gateway/shared/usage"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

// installation is an installation in which every saved provider is openai. An input token costs a cent
// for each letter of the model's name, an output token two.
type installation struct{ missing string }

func (h installation) Saved(_ context.Context, _, name string) (string, string, bool, error) {
	return name, "openai", name != h.missing, nil
}

func (installation) Price(_ context.Context, _ string, of Target, o pricing.Options) (pricing.Price, bool, error) {
	own, bad := pricing.ParseCustom(fmt.Appendf(nil, `{"pay_as_you_go":{"request_token":{"price":%d},"response_token":{"price":%d}}}`, len(of.Model), 2*len(of.Model)), "")
	if len(bad) > 0 {
		return pricing.Price{}, false, nil
	}
	return own.Price(o), of.Model != "unpriced", nil
}

// config draws a config with strategies within strategies.
func config(rnd *rand.Rand, depth int) map[string]any {
	if depth == 0 || rnd.IntN(4) == 0 {
		c := map[string]any{"provider": fmt.Sprintf("@p%d", rnd.IntN(4))}
		if rnd.IntN(2) == 0 {
			c["override_params"] = map[string]any{"model": fmt.Sprintf("m%d", rnd.IntN(3))}
		}
		if rnd.IntN(3) == 0 {
			c["retry"] = map[string]any{"attempts": 2}
		}
		return c
	}
	var targets []any
	for i := range 1 + rnd.IntN(4) {
		t := config(rnd, depth-1)
		t["name"], t["weight"] = fmt.Sprintf("t%d", i), float64(rnd.IntN(4))
		targets = append(targets, t)
	}
	targets[0].(map[string]any)["weight"] = 1.0
	strategy := map[string]any{"mode": []string{"loadbalance", "fallback", "conditional"}[rnd.IntN(3)]}
	switch strategy["mode"] {
	case "loadbalance":
		if rnd.IntN(3) == 0 {
			strategy["sticky"] = map[string]any{"enabled": true, "hash_fields": []string{"metadata.user"}, "ttl": 3600}
		}
	case "fallback":
		if rnd.IntN(2) == 0 {
			strategy["on_status_codes"] = []int{429, 500, 446}
		}
	case "conditional":
		strategy["conditions"] = []any{map[string]any{"query": map[string]any{"metadata.user": map[string]any{"$in": []string{"u0", "u1"}}}, "then": "t0"}}
		strategy["default"] = fmt.Sprintf("t%d", len(targets)-1)
	}
	c := map[string]any{"strategy": strategy, "targets": targets}
	if rnd.IntN(2) == 0 {
		c["cb_config"] = map[string]any{"failure_threshold": 2, "cooldown_interval": 30000}
	}
	return c
}

func compiled(t testing.TB, raw []byte) *route.Tree {
	t.Helper()
	cfg, bad := route.Parse(raw, route.Strict)
	if len(bad) > 0 {
		t.Fatalf("%s: %v", raw, bad)
	}
	tree, bad := cfg.Compile()
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	return tree
}

// circuits are breakers of one request: each is as it was drawn.
type circuits struct {
	rnd    *rand.Rand
	states map[string]route.State
}

func (c *circuits) AllClosed() bool { return false }
func (c *circuits) State(path string) route.State {
	s, ok := c.states[path]
	if !ok {
		s = []route.State{route.Closed, route.Closed, route.Open, route.HalfOpen, route.Probing}[c.rnd.IntN(5)]
		c.states[path] = s
	}
	return s
}
func (c *circuits) Claim(string, *route.Breaker) bool        { return true }
func (c *circuits) Release(string)                           {}
func (c *circuits) Record(string, *route.Breaker, int, bool) {}

// serve is a request as the gateway routes and records it.
func serve(rnd *rand.Rand, tree *route.Tree, sticky route.Sticky, n int) *usage.Record {
	at := noon.Add(time.Duration(n) * time.Second)
	rec := &usage.Record{ID: ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String(), Start: at, Org: "o", Workspace: "w", Endpoint: "chatComplete",
		RequestModel: fmt.Sprintf("asked%d", rnd.IntN(2)), Metadata: map[string]string{"user": fmt.Sprintf("u%d", rnd.IntN(5))}, Path: "/v1/chat/completions", Stream: rnd.IntN(3) == 0, Priced: true}
	if rnd.IntN(5) == 0 {
		delete(rec.Metadata, "user")
	}
	w := tree.Start(route.Context{Metadata: rec.Metadata, Path: rec.Path, Random: rnd.Uint32, Breakers: &circuits{rnd, map[string]route.State{}}, Sticky: sticky})
	outcome := route.Outcome{}
	for {
		leaf, f := w.Next(outcome)
		if f != nil {
			rec.OptionIndex = ""
			return rec
		}
		if leaf == nil {
			break
		}
		rec.OptionIndex, rec.ProviderSlug, rec.Provider = leaf.Path, leaf.Slug, "openai"
		outcome = route.Outcome{Status: []int{200, 200, 429, 500, 503}[rnd.IntN(5)]}
		model := leaf.Model
		if model == "" {
			model = rec.RequestModel
		}
		rec.Model = model
		if rnd.IntN(8) == 0 {
			outcome.Rejected, outcome.Status = true, 446
			w.Reject("guardrail_denied", 446)
			rec.ClientStatus, rec.ErrorCode = 446, "guardrail_denied"
			continue
		}
		tries := 1
		if leaf.Retry != nil && outcome.Status != 200 {
			tries = 1 + rnd.IntN(3)
		}
		for i := range tries {
			a := usage.Attempt{Provider: "openai", ProviderSlug: leaf.Slug, Model: model, OptionIndex: leaf.Path, Status: outcome.Status}
			if i < tries-1 {
				a.Status = 503
			}
			if outcome.Status == 200 || rnd.IntN(4) == 0 {
				a.Usage.Set(pricing.Input, int64(rnd.IntN(1000)))
				a.Usage.Set(pricing.Output, int64(1+rnd.IntN(1000)))
				a.Cost = pricing.NanoDollars(rnd.IntN(1e6))
			}
			rec.Attempts = append(rec.Attempts, a)
			rec.Usage, rec.Cost = rec.Usage.Sum(a.Usage), rec.Cost+a.Cost
		}
		rec.ClientStatus, rec.ErrorCode = outcome.Status, ""
		rec.ClientGone = rnd.IntN(20) == 0
		outcome.Final = rec.ClientGone || rec.Stream && outcome.Status == 200
	}
	rec.Draws, rec.Breakers, rec.Matches, rec.Skips, rec.Mode = w.AppendDraws(nil), w.Breakers(nil), w.Matches(nil), w.Skips(nil), tree.Mode()
	return rec
}

// With the config that routed the requests, each reaches the same targets, in the same order,
// and costs the same.
func TestTheSameConfigRoutesTheSame(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		raw, _ := json.Marshal(config(rnd, 3))
		tree := compiled(t, raw)
		sticky := route.NewPicks(func() time.Time { return noon }).Of("o", "w", "c")
		run := New(Changes{Config: &Config{Tree: tree}}, installation{})
		for n := range 40 {
			rec := serve(rnd, tree, sticky, n)
			c := &course{rec: rec}
			c.recorded()
			if rec.OptionIndex == "" {
				continue
			}
			kinds[rec.Mode]++
			var before []call
			before = append(before, c.calls...)
			if err := run.reroute(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			run.charge(c)
			if c.is != c.was || len(c.open) > 0 || c.cost != rec.Cost || !slices.Equal(c.calls, before) {
				t.Fatalf("seed %d, request %d by %s:\n%+v\nis %+v, was %+v, %v, cost %d was %d,\ncalls %v\nwere %v", seed, n, raw, *rec, c.is, c.was, c.open, c.cost, rec.Cost, c.calls, before)
			}
			if err := run.Simulate(t.Context(), rec, Bodies{}); err != nil {
				t.Fatal(err)
			}
		}
		got := run.Result()
		if got.Before != got.After || len(got.Differences)+len(got.Unjudged) > 0 {
			t.Fatalf("seed %d: %+v", seed, got)
		}
	}
	for _, mode := range []string{"loadbalance", "fallback", "conditional"} {
		if kinds[mode] < 100 {
			t.Errorf("only %d requests by %s", kinds[mode], mode)
		}
	}
}

// take runs records through a question.
func take(t *testing.T, q Changes, m Deps, records ...*usage.Record) *Result {
	t.Helper()
	run := New(q, m)
	for _, rec := range records {
		if err := run.Simulate(t.Context(), rec, Bodies{}); err != nil {
			t.Fatal(err)
		}
	}
	return run.Result()
}

// plain is a request to @p0 that was answered.
func plain(n int) *usage.Record {
	at := noon.Add(time.Duration(n) * time.Second)
	rec := &usage.Record{ID: fmt.Sprintf("%026d", n), Start: at, Org: "o", Workspace: "w", KeyID: "key", Endpoint: "chatComplete", RequestModel: "gpt", Provider: "openai", ProviderSlug: "p0",
		OptionIndex: "config", ClientStatus: 200, Cost: 30, Priced: true, Metadata: map[string]string{"team": fmt.Sprintf("t%d", n%2)}}
	rec.Usage.Set(pricing.Input, 10)
	rec.Usage.Set(pricing.Output, 5)
	rec.Attempts = []usage.Attempt{{Provider: "openai", ProviderSlug: "p0", Model: "gpt", OptionIndex: "config", Status: 200, Usage: rec.Usage, Cost: 30}}
	return rec
}

func many(n int) (out []*usage.Record) {
	for i := range n {
		out = append(out, plain(i))
	}
	return out
}

func (r *Result) requests(kind string) int64 {
	for _, d := range r.Differences {
		if d.Kind == kind {
			return d.Requests
		}
	}
	return 0
}

func (r *Result) unjudged() string {
	var out []string
	for _, o := range r.Unjudged {
		out = append(out, fmt.Sprintf("%s %d", o.Reason, o.Requests))
	}
	return strings.Join(out, ", ")
}

func TestAnotherConfigMovesRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config   string
		moved    int64
		cost     float64
		unjudged string
	}{
		"another model":        {`{"provider":"@p0","override_params":{"model":"mini"}}`, 100, 100 * 80 * 1e0, ""},
		"the same":             {`{"provider":"@p0"}`, 0, 3e-4, ""},
		"a condition":          {`{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.team":"t1"},"then":"b"}],"default":"a"},"targets":[{"name":"a","provider":"@p0"},{"name":"b","provider":"@p1"}]}`, 50, 50*60 + 1.5e-4, ""},
		"a body":               {`{"strategy":{"mode":"conditional","conditions":[{"query":{"params.temperature":1},"then":"b"}],"default":"a"},"targets":[{"name":"a","provider":"@p0"},{"name":"b","provider":"@p1"}]}`, 0, 3e-4, "parameters 100"},
		"no such provider":     {`{"provider":"@gone"}`, 0, 3e-4, "unknown_provider 100"},
		"a fallback of it":     {`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@gone"},{"provider":"@p1"}]}`, 100, 100 * 60, ""},
		"no price":             {`{"provider":"@p0","override_params":{"model":"unpriced"}}`, 100, 0, "unknown_price 100"},
		"a fallback behind it": {`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@p0"},{"provider":"@p1"}]}`, 0, 3e-4, ""},
	} {
		got := take(t, Changes{Config: &Config{Tree: compiled(t, []byte(c.config))}}, installation{missing: "gone"}, many(100)...)
		if got.requests("moved") != c.moved || got.unjudged() != c.unjudged || got.Before.Cost != 3e-4 || got.After.Requests != 100 {
			t.Errorf("%s: %+v", name, got)
		}
		if d := got.After.Cost - c.cost; d > 1e-6 || d < -1e-6 {
			t.Errorf("%s: costs %v, want %v", name, got.After.Cost, c.cost)
		}
	}
	// Shares: a request goes the same way each time, and one in four goes elsewhere.
	q := Changes{Config: &Config{Tree: compiled(t, []byte(`{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@p0","weight":3},{"provider":"@p1","weight":1}]}`))}}
	a, b := take(t, q, installation{}, many(4000)...), take(t, q, installation{}, many(4000)...)
	if n := a.requests("moved"); n < 900 || n > 1100 || b.requests("moved") != n {
		t.Errorf("%d and %d of 4000 moved", n, b.requests("moved"))
	}
	if e := a.Differences[0].Examples; len(e) != maxExamples || *e[0].After.Slug != "p1" || *e[0].Before.Slug != "p0" {
		t.Errorf("%+v", e)
	}
}

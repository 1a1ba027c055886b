package replay

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gateway/shared/pricing"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// A week of requests to one target and sometimes to others: a simulated strategy chooses by the
// measurements until then, with cost and latency of each alternative.
func TestStrategiesByFiguresAreSimulated(t *testing.T) {
	var used pricing.Usage
	used.Set(pricing.Input, 1000)
	used.Set(pricing.Output, 100)
	latency := map[string]time.Duration{"gpt-4o": 800 * time.Millisecond, "gpt-4o-mini": 300 * time.Millisecond, "gpt-4.1": 500 * time.Millisecond}
	var all []usage.Record
	for i := range 200 {
		model := "gpt-4o"
		if i%10 == 0 {
			model = []string{"gpt-4o-mini", "gpt-4.1"}[i/10%2]
		}
		p, _ := pricing.Default().Price("openai", model, pricing.Options{})
		all = append(all, usage.Record{
			ID: fmt.Sprintf("%026d", i), Start: noon.Add(time.Duration(i) * time.Minute), Workspace: "w", RequestModel: model, Model: model, Provider: "openai", OptionIndex: "config",
			ClientStatus: 200, Duration: latency[model], Usage: used, Cost: p.Cost(used), Priced: true,
			Attempts: []usage.Attempt{{Provider: "openai", Model: model, OptionIndex: "config", Status: 200, Latency: latency[model], Usage: used, Cost: p.Cost(used)}},
		})
	}
	for _, c := range []struct {
		mode, want string
		least      int64
	}{{"latency", "gpt-4o-mini", 195}, {"cost", "gpt-4o-mini", 200}} {
		targets := ""
		for _, m := range []string{"gpt-4o", "gpt-4o-mini", "gpt-4.1"} {
			targets += `,{"provider":"openai","api_key":"k","override_params":{"model":"` + m + `"}}`
		}
		tree := compiled(t, []byte(`{"strategy":{"mode":"`+c.mode+`"},"targets":[`+targets[1:]+`]}`))
		run := New(Changes{Config: &Config{Tree: tree}}, bookMeans{})
		for i := range all {
			if err := run.Simulate(context.Background(), &all[i], Bodies{}); err != nil {
				t.Fatal(err)
			}
		}
		got := run.Result()
		if len(got.Unjudged) != 0 || len(got.Alternatives) != 3 {
			t.Fatalf("%s: %+v %+v", c.mode, got.Unjudged, got.Alternatives)
		}
		for _, alt := range got.Alternatives {
			if *alt.Model == c.want && alt.Routed < c.least || alt.Priced != 200 || alt.Latency == nil || *alt.Latency != float64(latency[*alt.Model].Milliseconds()) {
				t.Errorf("%s: %+v", c.mode, alt)
			}
			if p95 := *alt.P95; p95 < *alt.Latency || p95 > *alt.Latency*1.1 {
				t.Errorf("%s: the 95th percentile of %v is %v", c.mode, *alt.Latency, p95)
			}
		}
		if *got.After.Latency >= *got.Before.Latency || got.After.Cost >= got.Before.Cost {
			t.Errorf("%s: before %+v, after %+v", c.mode, got.Before, got.After)
		}
	}
}

// What the same config has decided by figures is decided again.
func TestChoicesByFiguresAreReproduced(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tree := compiled(t, []byte(`{"strategy":{"mode":"latency"},"targets":[{"provider":"openai","api_key":"k"},{"provider":"openai","api_key":"k"},{"provider":"openai","api_key":"k"}]}`))
	run := New(Changes{Config: &Config{Tree: tree, ID: "c", Version: 2}}, bookMeans{})
	for i := range 50 {
		index := rnd.IntN(3)
		path := fmt.Sprintf("config.targets[%d]", index)
		rec := usage.Record{ID: fmt.Sprintf("%026d", i), Start: noon.Add(time.Duration(i) * time.Second), Workspace: "w", RequestModel: "gpt-4o", Model: "gpt-4o", Provider: "openai", OptionIndex: path, ConfigID: "c", ConfigVersion: 2,
			ClientStatus: 200, Priced: true, Attempts: []usage.Attempt{{Provider: "openai", Model: "gpt-4o", OptionIndex: path, Status: 200, Latency: time.Second}},
			Measured: []usage.Measured{{Path: "config", By: route.ModeLatency, Index: index, Reason: usage.ReasonBest}}}
		if err := run.Simulate(context.Background(), &rec, Bodies{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := run.Result(); len(got.Unjudged) != 0 || len(got.Differences) != 0 {
		t.Errorf("%+v %+v", got.Unjudged, got.Differences)
	}
}

// bookMeans take prices from the book.
type bookMeans struct{}

func (bookMeans) Saved(context.Context, string, string) (slug, provider string, ok bool, err error) {
	return "", "", false, nil
}

func (bookMeans) Price(_ context.Context, _ string, of Target, o pricing.Options) (pricing.Price, bool, error) {
	p, ok := pricing.Default().Price(of.Provider, of.Model, o)
	return p, ok, nil
}

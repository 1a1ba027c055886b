package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
)

// hour is the time that the tests simulate.
func lastHour() string {
	return "time_of_generation_min=" + time.Now().Add(-time.Hour).UTC().Format(time.RFC3339) + "&time_of_generation_max=" + time.Now().UTC().Format(time.RFC3339)
}

// storeTenEach stores ten records in each of three workspaces: a request to @main per minute, of two
// teams in turn, of 10 and 5 tokens and 12,345,678 nano-dollars, with its bodies.
func storeTenEach(t *testing.T, in *installation) (ids []string) {
	t.Helper()
	for _, w := range [][3]string{{admintest.Org, in.One, admintest.OneSlug}, {admintest.Org, in.Two, admintest.TwoSlug}, {admintest.OtherOrg, in.Three, admintest.ThreeSlug}} {
		for i := range 10 {
			r := made(w[0], w[1], w[2], time.Duration(30-i)*time.Minute)
			r.OptionIndex, r.ConfigID = "config", ""
			r.Metadata = map[string]string{"team": fmt.Sprintf("t%d", i%2)}
			r.Attempts = []usage.Attempt{{Provider: "openai", ProviderSlug: "main", Model: "gpt-4o", OptionIndex: "config", Status: 200, Usage: r.Usage, Cost: r.Cost}}
			word := "hello"
			if i == 3 {
				word = "secret"
			}
			seals(t, &r, usage.Bodies{Request: fmt.Appendf(nil, `{"model":"gpt-4o","temperature":%d,"messages":[{"role":"user","content":%q}]}`, i%2, word), Response: []byte(`{"choices":[{"message":{"role":"assistant","content":"hi"}}]}`)})
			in.store(t, r)
			if w[1] == in.One {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

func TestNothingChangedIsAsRecorded(t *testing.T) {
	in := install(t)
	storeTenEach(t, in)
	for key, n := range map[string]float64{admintest.WorkspaceA: 10, admintest.WorkspaceB: 10, admintest.AdminKey: 20, admintest.OtherAdmin: 10} {
		got := in.Do("POST", "/simulations?"+lastHour(), key, map[string]any{}).OK()
		if got.At("complete") != true || got.At("before", "requests") != n || fmt.Sprint(got.At("before")) != fmt.Sprint(got.At("after")) || len(got.At("differences").([]any))+len(got.At("unjudged").([]any)) > 0 {
			t.Errorf("%s: %s", key, got.Body)
		}
	}
}

func TestChangesAreSimulated(t *testing.T) {
	in := install(t)
	ids := storeTenEach(t, in)
	simulate := func(body string) admintest.Response {
		t.Helper()
		return in.Do("POST", "/simulations?"+lastHour(), admintest.WorkspaceA, json.RawMessage(body)).OK()
	}
	for _, c := range []struct {
		body string
		want map[string]any
	}{
		{`{"prices":{"multipliers":{"openai/gpt-4o":0.5}}}`, map[string]any{"before/cost": 12.345678, "after/cost": 6.172839, "differences/0/kind": "repriced", "differences/0/requests": 10.0, "differences/0/examples/0/log_id": ids[0], "models/0/after/calls": 10.0}},
		{`{"rate_limits":[{"name":"one an hour","type":"requests","unit":"rpd","value":2,"conditions":[{"key":"metadata.team","value":"*"}],"group_by":[{"key":"metadata.team"}]}]}`,
			map[string]any{"limits/0/name": "one an hour", "limits/0/counted": 10.0, "differences/0/kind": "refused", "differences/0/examples/0/after/stopped_by": "one an hour"}},
		{`{"usage_limits":[{"type":"tokens","credit_limit":100,"conditions":[{"key":"workspace_id","value":"*"}],"group_by":[{"key":"workspace_id"}]}]}`,
			map[string]any{"limits/0/name": "usage_limits[0]", "limits/0/refused": 3.0, "limits/0/first_refused_log_id": ids[7], "after/refused": 3.0}},
		{`{"config":{"provider":"openai","override_params":{"model":"gpt-4o-mini"}}}`, map[string]any{"differences/0/kind": "moved", "differences/0/requests": 10.0, "differences/0/examples/0/after/model": "gpt-4o-mini", "after/cost": 10 * (10*15 + 5*60) / 1e6}},
		{`{"config":{"strategy":{"mode":"conditional","conditions":[{"query":{"params.temperature":1},"then":"b"}],"default":"a"},"targets":[{"name":"a","provider":"openai"},{"name":"b","provider":"anthropic","override_params":{"model":"claude-sonnet-4-5"}}]}}`, map[string]any{"unjudged/0/reason": "parameters", "unjudged/0/requests": 10.0}},
		{`{"read_bodies":true,"config":{"strategy":{"mode":"conditional","conditions":[{"query":{"params.temperature":1},"then":"b"}],"default":"a"},"targets":[{"name":"a"},{"name":"b","provider":"anthropic","override_params":{"model":"claude-sonnet-4-5"}}]}}`, map[string]any{"unjudged/0/reason": nil, "differences/0/requests": 5.0}},
		{`{"input_guardrails":[{"default.contains":{"operator":"none","words":["secret"]},"deny":true}]}`, map[string]any{"guardrails/0/run": 10.0, "guardrails/0/failed": 1.0, "differences/0/kind": "tripped", "differences/1/kind": "denied", "differences/1/examples/0/log_id": ids[3], "after/denied": 1.0}},
	} {
		got := simulate(c.body)
		for path, want := range c.want {
			value := got.At(strings.Split(path, "/")...)
			if a, ok := value.(float64); ok {
				if b, _ := want.(float64); a-b > 1e-9 || b-a > 1e-9 {
					t.Errorf("%s: %s is %v, want %v: %s", c.body, path, value, want, got.Body)
				}
			} else if value != want {
				t.Errorf("%s: %s is %v, want %v: %s", c.body, path, value, want, got.Body)
			}
		}
	}
	// A part at a time, from the oldest on.
	seen, cost, cursor := 0.0, 0.0, ""
	for n := 0; ; n++ {
		got := simulate(fmt.Sprintf(`{"limit":3,"cursor":%s}`, quoted(cursor)))
		seen, cost = seen+got.At("before", "requests").(float64), cost+got.At("after", "cost").(float64)
		if next, ok := got.At("next_cursor").(string); ok && n < 10 {
			cursor = next
			continue
		}
		if got.At("complete") != true || n != 3 {
			t.Errorf("part %d: %s", n, got.Body)
		}
		break
	}
	if seen != 10 || cost < 12.3456 || cost > 12.3457 {
		t.Errorf("%v requests of %v cents in parts", seen, cost)
	}
}

func quoted(s string) string {
	if s == "" {
		return "null"
	}
	return fmt.Sprintf("%q", s)
}

func TestSavedThingsAreSimulated(t *testing.T) {
	in := install(t)
	storeTenEach(t, in)
	sc := store.Scope{Org: admintest.Org, Workspace: in.One}
	rec := resource.Record{Scope: sc, Kind: route.KindConfig, ID: "c-1", Slug: "pc-one", Name: "one", Status: "active", Body: []byte(`{"provider":"openai","override_params":{"model":"gpt-4o-mini"}}`)}
	if err := in.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error { return tx.Create(&rec) }); err != nil {
		t.Fatal(err)
	}
	at := "/simulations?" + lastHour()
	if got := in.Do("POST", at, admintest.WorkspaceA, map[string]any{"config": "pc-one"}).OK(); got.At("differences", "0", "requests") != 10.0 {
		t.Errorf("%s", got.Body)
	}
	missing := in.Do("POST", at, admintest.WorkspaceB, map[string]any{"config": "pc-none"})
	if foreign := in.Do("POST", at, admintest.WorkspaceB, map[string]any{"config": "pc-one"}); foreign.Comparable() != missing.Comparable() {
		t.Errorf("another workspace's config is told from a missing one: %s, %s", foreign.Body, missing.Body)
	}
	missing.RequireFault(400, "AB01", "config")
	in.Do("POST", at, admintest.AdminKey, map[string]any{"config": "pc-one"}).RequireFault(400, "AB01", "config")
	in.Do("POST", at, admintest.WorkspaceA, map[string]any{"input_guardrails": []any{"pg-none"}}).RequireFault(400, "AB01", "input_guardrails[0]")
}

func TestSimulationsRefuseWhatIsWrong(t *testing.T) {
	in := install(t)
	at := "/simulations?" + lastHour()
	for body, field := range map[string]string{
		`{"what":1}`: "what", `{"limit":0}`: "limit", `{"limit":1000001}`: "limit", `{"limit":"x"}`: "limit", `{"cursor":"nonsense"}`: "cursor", `{"config":7}`: "config",
		`{"config":{"targets":[]}}`: "config", `{"config":{"strategy":{"mode":"nope"},"targets":[{}]}}`: "config.strategy.mode",
		`{"prices":{"models":{"gpt":{}}}}`: "prices.models.gpt", `{"prices":{"multipliers":{"*":-1}}}`: "prices.multipliers.*", `{"prices":{"more":1}}`: "prices.more",
		`{"usage_limits":[{}]}`: "usage_limits[0].conditions", `{"usage_limits":{}}`: "usage_limits", `{"rate_limits":[7]}`: "rate_limits[0]",
		`{"rate_limits":[{"type":"requests","unit":"rpy","value":1,"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}]}]}`: "rate_limits[0].unit",
		`{"input_guardrails":[7]}`: "input_guardrails[0]", `{"output_guardrails":"x"}`: "output_guardrails", `{"read_bodies":1}`: "read_bodies",
	} {
		got := in.Do("POST", at, admintest.WorkspaceA, json.RawMessage(body))
		if got.Status != 400 {
			t.Errorf("%s is taken", body)
			continue
		}
		got.RequireFault(400, "AB01", field)
	}
	in.Do("POST", "/simulations", admintest.WorkspaceA, map[string]any{}).RequireFault(400, "AB01", "time_of_generation_min")
	in.Do("POST", "/simulations?time_of_generation_min=2026-03-02&time_of_generation_max=2026-03-01", admintest.WorkspaceA, map[string]any{}).RequireFault(400, "AB01", "time_of_generation_max")
}

func TestSimulationsSeeWhatTheirCallerSees(t *testing.T) {
	in := install(t)
	storeTenEach(t, in)
	got := in.Do("POST", "/simulations?"+lastHour()+"&workspace_slug="+admintest.TwoSlug, admintest.AdminKey, map[string]any{}).OK()
	if got.At("before", "requests") != 10.0 {
		t.Errorf("%s", got.Body)
	}
	got = in.Do("POST", "/simulations?"+lastHour()+"&workspace_slug="+admintest.OneSlug, admintest.OtherAdmin, map[string]any{})
	if got.Status < 400 || got.Status > 499 {
		t.Errorf("a foreign workspace: %d %s", got.Status, got.Body)
	}
}

package main

import (
	"fmt"
	"net/url"
	"reflect"
	"testing"
	"time"

	"gateway/shared/usage"
)

// simulate asks what would have become of records.
func (r *running) simulate(records []usage.Record, body string) map[string]any {
	r.t.Helper()
	q := url.Values{"time_of_generation_min": {records[0].Start.Add(-time.Second).Format(time.RFC3339Nano)}, "time_of_generation_max": {records[len(records)-1].Start.Add(time.Second).Format(time.RFC3339Nano)}}
	return r.admin("POST", "/simulations?"+q.Encode(), fmt.Sprintf(`{"workspace_id":%q,%s}`, r.workspace(), body))
}

// kindsOf are how many requests have each difference.
func kindsOf(answer map[string]any) map[string]float64 {
	out := map[string]float64{}
	for _, d := range answer["differences"].([]any) {
		out[d.(map[string]any)["kind"].(string)] = d.(map[string]any)["requests"].(float64)
	}
	return out
}

func openOf(answer map[string]any) map[string]float64 {
	out := map[string]float64{}
	for _, d := range answer["unjudged"].([]any) {
		out[d.(map[string]any)["reason"].(string)] = d.(map[string]any)["requests"].(float64)
	}
	return out
}

// Requests as clients send them, with a config, a rate, a budget and a guardrail in
// force: with the same of each, the same is decided of every one of them.
func TestSimulationsDecideWhatWasDecided(t *testing.T) {
	t.Parallel()
	r := start(t)
	slug := r.admin("POST", "/configs", fmt.Sprintf(`{"name":"two ways","workspace_id":%q,"config":{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.team":"blue"},"then":"other"}],"default":"shared"},"targets":[
		{"name":"shared","strategy":{"mode":"loadbalance"},"targets":[{"provider":"@mock","weight":1,"override_params":{"model":"gpt-4o-mini"}},{"provider":"@mock","weight":1,"override_params":{"model":"gpt-4o"}}]},
		{"name":"other","strategy":{"mode":"fallback"},"targets":[{"provider":"@mock","override_params":{"model":"gpt-4.1-mini"}},{"provider":"@mock-anthropic","override_params":{"model":"claude-haiku-4-5"}}]}]}}`, r.workspace()))["data"].(map[string]any)["slug"].(string)
	rate := `"conditions":[{"key":"metadata.team","value":"red"}],"group_by":[{"key":"metadata._user"}],"type":"requests","unit":"rpw","value":3`
	budget := `"conditions":[{"key":"metadata.team","value":"green"}],"group_by":[{"key":"metadata.team"}],"type":"requests","credit_limit":2`
	rateID, budgetID := r.policy("rate-limits", rate), r.policy("usage-limits", budget)
	refused := 0
	for i := range 20 {
		team := []string{"red", "blue", "green", "none"}[i%4]
		got := r.call("POST", "/chat/completions", chatBody("gpt-4o", "Hello", `,"max_tokens":5`), "X-Gateway-Config", slug, "X-Gateway-Metadata", fmt.Sprintf(`{"team":%q,"_user":"ada"}`, team))
		if got.status != 200 {
			refused++
		}
	}
	if refused != 2+3 {
		t.Fatalf("%d were refused", refused)
	}
	all := r.records(20)
	for i := range all {
		if f := all[i].Refusal; (f != nil) != (all[i].ClientStatus != 200) || f != nil && (f.Needed != 1 || f.ID != rateID && f.ID != budgetID || f.Subject != "policy") {
			t.Errorf("the refusal of %d is %+v", all[i].ClientStatus, f)
		}
	}
	same := r.simulate(all, fmt.Sprintf(`"config":%q,"rate_limits":[{"replaces":%q,%s}],"usage_limits":[{"replaces":%q,%s}],"prices":{"multipliers":{"*":1}}`, slug, rateID, rate, budgetID, budget))
	if !reflect.DeepEqual(same["before"], same["after"]) || len(kindsOf(same)) > 0 || same["complete"] != true || same["before"].(map[string]any)["refused"] != 5.0 {
		t.Errorf("with nothing changed: %v", same)
	}
	if open := openOf(same); len(open) != 1 || open["not_routed"] != 2 { // rejected before there was a target
		t.Errorf("not judged: %v", open)
	}
	// What is changed shows, and nothing else.
	got := r.simulate(all, fmt.Sprintf(`"rate_limits":[{"replaces":%q,%s}]`, rateID, `"conditions":[{"key":"metadata.team","value":"red"}],"group_by":[{"key":"metadata._user"}],"type":"requests","unit":"rpw","value":4`))
	if kinds := kindsOf(got); kinds["released"] != 1 || len(kinds) != 1 {
		t.Errorf("a higher limit: %v", got)
	}
	got = r.simulate(all, `"config":{"provider":"@mock-anthropic","override_params":{"model":"claude-haiku-4-5"}}`)
	if kinds := kindsOf(got); kinds["moved"] != 18 || got["after"].(map[string]any)["cost"] == got["before"].(map[string]any)["cost"] {
		t.Errorf("another target: %v", got)
	}
	got = r.simulate(all, `"prices":{"multipliers":{"openai/*":2}}`)
	if a, b := got["after"].(map[string]any)["cost"].(float64), got["before"].(map[string]any)["cost"].(float64); a < 1.999*b || a > 2.001*b || kindsOf(got)["repriced"] != 15 {
		t.Errorf("dearer: %v", got)
	}
}

// Guardrails judge the bodies that were kept as they judged the requests.
func TestSimulatedGuardrailsTripAsTheyDid(t *testing.T) {
	t.Parallel()
	r := start(t)
	const check = `{"default.contains":{"operator":"none","words":["forbidden"]},"deny":true}`
	denied := 0.0
	for i := range 6 {
		text := "Hello"
		if i%3 == 0 {
			text = "a forbidden word"
		}
		if got := r.call("POST", "/chat/completions", chatBody("gpt-4o", text, ""), "X-Gateway-Config", `{"provider":"@mock","input_guardrails":[`+check+`]}`); got.status == 446 {
			denied++
		}
	}
	all := r.records(6)
	got := r.simulate(all, `"input_guardrails":[`+check+`]`)
	if denied != 2 || kindsOf(got)["denied"] != denied || got["after"].(map[string]any)["denied"] != denied || !reflect.DeepEqual(got["before"], got["after"]) || len(openOf(got)) > 0 {
		t.Errorf("%v were denied: %v", denied, got)
	}
	got = r.simulate(all, `"input_guardrails":[{"default.wordCount":{"maxWords":1},"deny":false}]`)
	if kinds := kindsOf(got); kinds["tripped"] != 2 || len(kinds) != 1 {
		t.Errorf("another check: %v", got)
	}
	if got := r.call("POST", "/simulations", `{}`, "X-Gateway-Api-Key", adminKey); got.status != 400 {
		t.Errorf("without a time: %d %s", got.status, got.body)
	}
}

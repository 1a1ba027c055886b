package main

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// policy makes a policy of the default workspace and gives its id.
func (r *running) policy(kind, fields string) string {
	r.t.Helper()
	return r.admin("POST", "/policies/"+kind, fmt.Sprintf(`{"workspace_id":%q,%s}`, r.workspace(), fields))["id"].(string)
}

// counters are what a policy has counted, by value keys.
func (r *running) counters(kind, id string) map[string]float64 {
	r.t.Helper()
	out := map[string]float64{}
	for _, e := range r.admin("GET", "/policies/"+kind+"/"+id+"/entities?"+url.Values{"workspace_id": {r.workspace()}}.Encode(), "")["data"].([]any) {
		entity := e.(map[string]any)
		out[entity["value_key"].(string)] = entity["current_usage"].(float64)
	}
	return out
}

const miniChat = `{"model":"@mock/gpt-4o-mini","max_tokens":5,"messages":[{"role":"user","content":"Hello"}]}`

// asWho sends a chat of a user of a team.
func (r *running) asWho(team, user string) reply {
	return r.call("POST", "/chat/completions", miniChat, "X-Gateway-Metadata", fmt.Sprintf(`{"team":%q,"_user":%q}`, team, user))
}

func TestARatePolicyCountsByItsGroups(t *testing.T) {
	t.Parallel()
	r := start(t)
	id := r.policy("rate-limits", `"name":"two each","conditions":[{"key":"metadata.team","value":["red","blue"],"excludes":"blue"}],"group_by":[{"key":"metadata._user"}],"type":"requests","unit":"rpd","value":2`)
	for _, c := range []struct {
		team, user string
		want       int
	}{{"red", "ada", 200}, {"red", "ada", 200}, {"red", "ada", 429}, {"red", "bob", 200}, {"blue", "ada", 200}, {"green", "ada", 200}} {
		got := r.asWho(c.team, c.user)
		if got.status != c.want {
			t.Errorf("%s of %s: %d %s", c.user, c.team, got.status, got.body)
		}
		if got.status == 429 && (got.header.Get("Retry-After") == "" || got.header.Get("X-Ratelimit-Limit-Requests") != "2" || got.header.Get("X-Ratelimit-Remaining-Requests") != "0" || !strings.Contains(got.body, "two each") || !strings.Contains(got.body, "2 requests per day")) {
			t.Errorf("a refusal of %v %s", got.header, got.body)
		}
	}
	if got := r.call("POST", "/chat/completions", miniChat, "X-Gateway-Metadata", `{"team":"red"}`); got.status != 200 {
		t.Errorf("a request without a user: %d", got.status) // it is not counted
	}
	if got := r.counters("rate-limits", id); len(got) != 2 || got["metadata._user:ada"] != 2 || got["metadata._user:bob"] != 1 {
		t.Errorf("counters %v", got)
	}
}

func TestARatePolicyOfOneKindOfRequest(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.policy("rate-limits", `"conditions":[{"key":"endpoint_type","value":"embed"}],"group_by":[{"key":"workspace_id"}],"type":"requests","unit":"rpd","value":1`)
	embed := func() int {
		return r.call("POST", "/embeddings", `{"model":"@mock/text-embedding-3-small","input":"a"}`).status
	}
	if a, b, c := embed(), embed(), r.asWho("x", "y").status; a != 200 || b != 429 || c != 200 {
		t.Errorf("%d %d %d", a, b, c)
	}
}

// What names a target is counted by each target that a request comes to.
func TestAUsagePolicyOfModels(t *testing.T) {
	t.Parallel()
	r := start(t)
	id := r.policy("usage-limits", `"conditions":[{"key":"model","value":"@mock/*","excludes":"@mock/gpt-4o"}],"group_by":[{"key":"model"}],"type":"requests","credit_limit":2`)
	send := func(model string) reply { return r.call("POST", "/chat/completions", chatBody(model, "Hello", "")) }
	for _, c := range []struct {
		model string
		want  int
	}{{"@mock/gpt-4o-mini", 200}, {"@mock/gpt-4o-mini", 200}, {"@mock/gpt-4o-mini", 412}, {"@mock/gpt-4o", 200}, {"@mock/gpt-4o", 200}, {"@mock/gpt-4o", 200}, {"@mock/gpt-4.1-mini", 200}, {"@mock-anthropic/claude-haiku-4-5", 200}} {
		if got := send(c.model); got.status != c.want {
			t.Errorf("%s: %d %s", c.model, got.status, got.body)
		}
	}
	if got := r.counters("usage-limits", id); len(got) != 2 || got["model:@mock/gpt-4o-mini"] != 2 || got["model:@mock/gpt-4.1-mini"] != 1 {
		t.Errorf("counters %v", got)
	}
	// Raising the limit lets the counter continue at once.
	in := "?workspace_id=" + r.workspace()
	r.admin("PUT", "/policies/usage-limits/"+id+in, `{"credit_limit":3}`)
	if a, b := send("@mock/gpt-4o-mini").status, send("@mock/gpt-4o-mini").status; a != 200 || b != 412 {
		t.Errorf("after raising: %d %d", a, b)
	}
	// A fallback continues to a target that the policy does not count.
	config := `{"strategy":{"mode":"fallback"},"targets":[{"provider":"@mock","override_params":{"model":"gpt-4o-mini"}},{"provider":"@mock-anthropic","override_params":{"model":"claude-haiku-4-5"}}]}`
	if got := r.call("POST", "/chat/completions", `{"model":"gpt-4o-mini","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}`, "X-Gateway-Config", config); got.status != 200 {
		t.Errorf("a fallback: %d %s", got.status, got.body)
	}
	r.admin("DELETE", "/policies/usage-limits/"+id+in, "")
	if got := send("@mock/gpt-4o-mini"); got.status != 200 {
		t.Errorf("under an archived policy: %d %s", got.status, got.body)
	}
}

// What a policy of money has counted is what its requests cost, and a policy that is
// spent rejects with 412 and what is left.
func TestAUsagePolicyOfMoney(t *testing.T) {
	t.Parallel()
	r := start(t)
	id := r.policy("usage-limits", `"name":"by key","conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"},{"key":"metadata.team"}],"type":"cost","credit_limit":1`)
	r.mock.Reset()
	const n = 5
	for range n {
		if got := r.asWho("red", "ada"); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	if got := r.call("POST", "/chat/completions", miniChat); got.status != 200 { // of no team: not counted
		t.Fatalf("%d %s", got.status, got.body)
	}
	r.records(n + 1)
	got := r.counters("usage-limits", id)
	if len(got) != 1 {
		t.Fatalf("counters %v", got)
	}
	bill := r.mock.Bill()
	for key, spent := range got {
		if want := float64(bill.Total.NanoDollars-bill.Rows[n].NanoDollars) / 1e9; !strings.HasSuffix(key, ",metadata.team:red") || spent-want > 1e-12 || want-spent > 1e-12 {
			t.Errorf("%s spent %v of a bill of %v", key, spent, want)
		}
	}
	// A model without a price is rejected under it.
	if got := r.call("POST", "/chat/completions", chatBody("@mock/mock-echo", "Hello", ""), "X-Gateway-Metadata", `{"team":"red"}`); got.status != 412 && got.status != 400 && got.status != 403 {
		t.Errorf("an unpriced model: %d %s", got.status, got.body)
	}
}

// A response of the cache counts by budgets of requests, and costs nothing.
func TestAnAnswerOfTheCacheCountsByRequests(t *testing.T) {
	t.Parallel()
	r := start(t)
	id := r.policy("usage-limits", `"conditions":[{"key":"workspace_id","value":"*"}],"group_by":[{"key":"workspace_id"}],"type":"requests","credit_limit":2`)
	config := `{"cache":{"mode":"simple"},"targets":[{"provider":"@mock"}]}`
	send := func() reply {
		return r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "Hello", ""), "X-Gateway-Config", config)
	}
	if first := send(); first.status != 200 {
		t.Fatalf("%d %s", first.status, first.body)
	}
	r.records(1)
	if hit := send(); hit.status != 200 || hit.header.Get("X-Gateway-Cache-Status") != "HIT" {
		t.Errorf("%d %v", hit.status, hit.header)
	}
	if got := send(); got.status != 412 {
		t.Errorf("the third: %d %s", got.status, got.body)
	}
	for key, n := range r.counters("usage-limits", id) {
		if n != 2 {
			t.Errorf("%s counted %v", key, n)
		}
	}
}

// Another workspace's policies say nothing of a request.
func TestPoliciesHoldInTheirWorkspace(t *testing.T) {
	t.Parallel()
	r := start(t)
	other := r.admin("POST", "/admin/workspaces", `{"name":"Other"}`)["id"].(string)
	r.admin("POST", "/policies/rate-limits", fmt.Sprintf(`{"workspace_id":%q,"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}],"type":"requests","unit":"rpd","value":1}`, other))
	for range 3 {
		if got := r.asWho("a", "b"); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
}

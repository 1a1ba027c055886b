package main

import (
	"fmt"
	"strings"
	"testing"
)

// thrifty makes a key whose dollar is spent with a cheaper model when it is short.
func (r *running) thrifty(model string) string {
	r.t.Helper()
	return r.newKey(fmt.Sprintf(`"usage_limits":{"type":"cost","credit_limit":1,"on_exceeded":"fallback","fallback_model":%q}`, model))
}

const expensiveChat = `{"model":"@mock/gpt-4o","max_tokens":120000,"messages":[{"role":"user","content":"Hello"}]}`

// The model that a budget names is a target like any other: its own limits may reject it,
// and then the request is not sent on.
func TestWhatABudgetSendsAwayMeetsTheLimitsThere(t *testing.T) {
	t.Parallel()
	r := start(t)
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	poor := func(slug, limits string) string {
		r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":%q,"slug":%q,"provider":"anthropic","key":"mock-key","custom_host":%q,"workspace_id":%q,%s}`, slug, slug, host, r.workspace(), limits))
		return "@" + slug + "/claude-haiku-4-5"
	}
	for _, c := range []struct {
		name, model string
		want        int
		message     string
	}{
		{"itself in funds", poor("rich", `"usage_limits":{"type":"cost","credit_limit":50}`), 200, ""},
		{"a budget of its own", poor("spent", `"usage_limits":{"type":"tokens","credit_limit":100}`), 412, "spent"},
		{"a budget that names a third", poor("third", `"usage_limits":{"type":"tokens","credit_limit":100,"on_exceeded":"fallback","fallback_model":"@mock/gpt-4o-mini"}`), 412, "third"},
		{"two that name each other", poor("circle", `"usage_limits":{"type":"tokens","credit_limit":100,"on_exceeded":"fallback","fallback_model":"@circle/claude-haiku-4-5"}`), 200, ""},
		{"a rate of its own", poor("slow", `"rate_limits":[{"type":"tokens","unit":"rpd","value":0}]`), 429, "slow"},
		{"no such model", "@mock-anthropic/nobody-knows-this-model", 412, "unpriced"},
	} {
		got := r.call("POST", "/chat/completions", expensiveChat, "X-Gateway-Api-Key", r.thrifty(c.model))
		if got.status != c.want || !strings.Contains(got.body, c.message) {
			t.Errorf("%s: %d %s", c.name, got.status, got.body)
		}
	}
}

// When the cheaper model has failed, the next target must be paid for: a budget that was
// too small for the first target is too small for it.
func TestAFailedFallbackOpensNoBudget(t *testing.T) {
	t.Parallel()
	r := start(t)
	config := r.saveConfig(fallbackOf(`{"provider":"@mock","override_params":{"model":"gpt-4o"}}`, `{"provider":"@mock","override_params":{"model":"gpt-4.1"}}`))
	key := r.newKey(`"usage_limits":{"type":"tokens","credit_limit":1000,"on_exceeded":"fallback","fallback_model":"@mock/gpt-4o-mini?status=503"}`)
	got := r.call("POST", "/chat/completions", expensiveChat, "X-Gateway-Api-Key", key, "X-Gateway-Config", config)
	if got.status != 412 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if bill := billed(r); bill.nanoDollars != 0 {
		t.Errorf("the bill is %+v", bill)
	}
}

// A request that is passed through says itself what it calls: no other model is put
// into it.
func TestPassThroughIsNotSentElsewhere(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.thrifty("@mock/gpt-4o-mini")
	got := r.call("POST", "/proxy/chat/completions", strings.Replace(expensiveChat, "@mock/", "", 1), "X-Gateway-Api-Key", key, "X-Gateway-Provider", "@mock")
	if got.status != 412 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A saved provider that is not there is rejected when it is named, wherever a budget may name
// one; a model that nobody has heard of is not, nor is the provider itself whose budget it is.
func TestAFallbackThatNamesNothingIsNotSaved(t *testing.T) {
	t.Parallel()
	r := start(t)
	try := func(method, path, body string) reply {
		t.Helper()
		return r.call(method, path, body, "X-Gateway-Api-Key", adminKey)
	}
	budget := func(model string) string {
		return fmt.Sprintf(`{"type":"cost","credit_limit":5,"on_exceeded":"fallback","fallback_model":%q}`, model)
	}
	ws := r.workspace()
	host := strings.TrimSuffix(r.mockBase(), "/v1")
	bodies := map[string]struct{ path, body, field string }{
		"a key":      {"/api-keys/workspace/service", `{"name":"k","workspace_id":"` + ws + `","scopes":["completions.write"],"usage_limits":%s}`, "usage_limits.fallback_model"},
		"a provider": {"/virtual-keys", `{"name":"p","slug":"selves","provider":"anthropic","key":"k","custom_host":"` + host + `","workspace_id":"` + ws + `","usage_limits":%s}`, "usage_limits.fallback_model"},
		"a policy":   {"/policies/usage-limits", `{"name":"l","workspace_id":"` + ws + `","conditions":[{"key":"virtual_key","value":"mock"}],"group_by":[{"key":"api_key"}],%s`, "fallback_model"},
	}
	for name, c := range bodies {
		body := func(model string) string {
			b := budget(model)
			if c.field == "fallback_model" {
				b = strings.TrimPrefix(b, "{")
			}
			return fmt.Sprintf(c.body, b)
		}
		if got := try("POST", c.path, body("@nobody/gpt-4o-mini")); got.status != 400 || !strings.Contains(got.body, `"`+c.field+`"`) && !strings.Contains(got.body, `[0].fallback_model"`) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		if got := try("POST", c.path, body("@mock/a-model-of-tomorrow")); got.status >= 300 {
			t.Errorf("%s, an unknown model: %d %s", name, got.status, got.body)
		}
	}
	self := strings.Replace(fmt.Sprintf(bodies["a provider"].body, budget("@narcissus/claude-haiku-4-5")), "selves", "narcissus", 1)
	if got := try("POST", "/virtual-keys", self); got.status >= 300 {
		t.Errorf("itself: %d %s", got.status, got.body)
	}
	id := r.keyID("k")
	if got := try("PUT", "/api-keys/"+id, `{"usage_limits":`+budget("@nobody/x")+`}`); got.status != 400 {
		t.Errorf("a change: %d %s", got.status, got.body)
	}
}

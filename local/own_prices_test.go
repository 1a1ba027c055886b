package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"gateway/shared/pricing"
)

// Requests are reserved, settled and recorded at the organization's own price of a model,
// with its multipliers, before the list's price; an integration's own price comes before
// both.
func TestAnOrganisationsOwnPrices(t *testing.T) {
	t.Parallel()
	r := start(t)
	set := func(pricing string) {
		r.admin("PUT", "/admin/organisation/settings", `{"pricing_settings":`+pricing+`}`)
	}
	r.save("dear", fmt.Sprintf(`"ai_provider_id":"openai","key":"mock-own","configurations":{"custom_host":%q},"pricing_adjustments":{"multiplier":{"default":3}}`, r.mockBase()))
	const own = `"models":{"openai/gpt-4o-mini":{"pay_as_you_go":{"request_token":{"price":0.001},"response_token":{"price":0.002}}},"openai/nobody-knows-this-model":{"pay_as_you_go":{"request_token":{"price":0.01},"response_token":{"price":0.01}}}}`
	// Nano-dollars: 0.001 cents are 10,000.
	for i, c := range []struct {
		pricing, model string
		in, out        int64
		line           string
	}{
		{`{}`, "@mock/gpt-4o-mini", 150, 600, "openai/gpt-4o-mini standard"},
		{`{` + own + `}`, "@mock/gpt-4o-mini", 10_000, 20_000, "organisation openai/gpt-4o-mini"},
		{`{` + own + `,"multiplier":{"default":0.5,"response_token":2}}`, "@mock/gpt-4o-mini", 5_000, 40_000, "organisation openai/gpt-4o-mini (adjusted)"},
		{`{}`, "@mock/gpt-4o", 1_250, 20_000, "openai/gpt-4o standard (adjusted)"},
		{`{}`, "@dear/gpt-4o-mini", 30_000, 60_000, "organisation openai/gpt-4o-mini (adjusted)"},
		{`{}`, "@mock/nobody-knows-this-model", 50_000, 200_000, "organisation openai/nobody-knows-this-model (adjusted)"},
		{`{"models":null}`, "@mock/gpt-4o-mini", 75, 1_200, "openai/gpt-4o-mini standard (adjusted)"},
		{`{"multiplier":null}`, "@mock/gpt-4o-mini", 150, 600, "openai/gpt-4o-mini standard"},
	} {
		if c.pricing != `{}` {
			set(c.pricing)
		}
		made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"],"usage_limits":{"type":"cost","credit_limit":100}}`, r.workspace()))
		got := r.call("POST", "/chat/completions", chatBody(c.model, "Hello", `,"max_tokens":9`), "X-Gateway-Api-Key", made["key"].(string))
		if got.status != 200 {
			t.Fatalf("%s: %d %s", c.model, got.status, got.body)
		}
		rec := r.records(i + 1)[i]
		used := got.json(t)["usage"].(map[string]any)
		want := int64(used["prompt_tokens"].(float64))*c.in + int64(used["completion_tokens"].(float64))*c.out
		if int64(rec.Cost) != want || !rec.Priced || rec.Tariff != c.line {
			t.Errorf("%s with %s: %d by %q, want %d by %q", c.model, c.pricing, rec.Cost, rec.Tariff, want, c.line)
		}
		r.hasPrice(c.model, made["key"].(string), c.in, c.out, c.line)
		limits := r.admin("GET", "/api-keys/"+made["id"].(string), "")["usage_limits"].(map[string]any)
		if fmt.Sprint(limits["current_usage"]) != fmt.Sprint(float64(want)/1e9) {
			t.Errorf("%s: the budget says %v, the record %d", c.model, limits["current_usage"], want)
		}
	}
}

// hasPrice checks what the gateway says a model costs for the holder of a key: nano-dollars
// for each token in and out, with the same line of prices that records name.
func (r *running) hasPrice(model, key string, in, out int64, line string) {
	r.t.Helper()
	provider, name, _ := strings.Cut(model, "/")
	got := r.call("GET", "/model-configs/pricing/"+provider+"/"+name, "", "X-Gateway-Api-Key", key)
	var prices struct {
		PayAsYouGo struct {
			In  struct{ Price float64 } `json:"request_token"`
			Out struct{ Price float64 } `json:"response_token"`
		} `json:"pay_as_you_go"`
		Tariff, Book string
	}
	if err := json.Unmarshal([]byte(got.body), &prices); err != nil || got.status != 200 {
		r.t.Fatalf("%s: %d %s", model, got.status, got.body)
	}
	near := func(cents float64, nanos int64) bool { return math.Abs(cents*1e7-float64(nanos)) < 1e-3 }
	if !near(prices.PayAsYouGo.In.Price, in) || !near(prices.PayAsYouGo.Out.Price, out) || prices.Tariff != line || prices.Book != pricing.Default().Version() {
		r.t.Errorf("%s costs %d and %d by %q and is told as %s", model, in, out, line, got.body)
	}
}

// The price of a model for somebody is told to those who may call it, and to nobody else;
// bad questions are rejected, whatever they ask about.
func TestEffectivePricesAreTheCallersOwn(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("PUT", "/admin/organisation/settings", `{"pricing_settings":{"multiplier":{"default":2}}}`)
	other := r.admin("POST", "/admin/workspaces", `{"name":"Other"}`)["id"].(string)
	mine := r.newKey("")
	made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, other))
	unscoped := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"n","workspace_id":%q,"scopes":["logs.list"]}`, r.workspace()))
	theirs, none := made["key"].(string), unscoped["key"].(string)
	const missing = `{"error":"Model not found"}`
	for _, c := range []struct {
		path, key string
		status    int
		has       string
	}{
		{"openai/gpt-4o-mini", mine, 200, `"tariff":"openai/gpt-4o-mini standard (adjusted)"`},
		{"openai/gpt-4o-mini", theirs, 200, `standard (adjusted)`},
		{"openai/gpt-4o-mini", none, 200, `"tariff":"openai/gpt-4o-mini standard"`},
		{"openai/gpt-4o-mini", "", 200, `"tariff":"openai/gpt-4o-mini standard"`},
		{"openai/gpt-4o-mini", "no-key", 200, `"tariff":"openai/gpt-4o-mini standard"`},
		{"@mock/gpt-4o-mini", mine, 200, `standard (adjusted)`},
		{"@mock/gpt-4o-mini?mode=batch", mine, 200, `gpt-4o-mini batch (adjusted)`},
		{"@mock/gpt-4o-mini?workspace_id=" + r.workspace(), adminKey, 200, `standard (adjusted)`},
		{"@mock/gpt-4o-mini", theirs, 404, missing},
		{"@mock/gpt-4o-mini", none, 404, missing},
		{"@mock/gpt-4o-mini", "", 404, missing},
		{"@mock/gpt-4o-mini?workspace_id=" + r.workspace(), theirs, 404, missing},
		{"@nobody/gpt-4o-mini", mine, 404, missing},
		{"@mock/nobody-knows-this-model", mine, 404, missing},
		{"@mock/gpt-4o-mini?workspace_id=nowhere", adminKey, 404, missing},
		{"@mock/gpt-4o-mini", adminKey, 200, `standard (adjusted)`}, // its only workspace
		{"openai/gpt-4o-mini?mode=fastest", "", 400, "mode"},
		{"openai/gpt-4o-mini?input_tokens=-1", "", 400, "input_tokens"},
		{"openai/gpt-4o-mini?input_tokens=many", mine, 400, "input_tokens"},
		{"openai/gpt-4o-mini?input_tokens=1.5&mode=x", mine, 400, "mode must be one of standard, batch, flex, priority, fast; input_tokens must"},
		{"openai/gpt-4o-mini?region=" + strings.Repeat("a", 101), mine, 400, "region"},
	} {
		got := r.call("GET", "/model-configs/pricing/"+c.path, "", "X-Gateway-Api-Key", c.key)
		if got.status != c.status || !strings.Contains(got.body, c.has) {
			t.Errorf("%s with %.12s: %d %s", c.path, c.key, got.status, got.body)
		}
	}
}

// A budget is reserved at the organization's price: what the list calls cheap may be
// too dear for it.
func TestAnOrganisationsPriceIsReserved(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.admin("PUT", "/admin/organisation/settings", `{"pricing_settings":{"multiplier":{"default":1000}}}`)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":1}`)
	if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", `,"max_tokens":9000`), "X-Gateway-Api-Key", key); got.status != 412 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestPricesThatAreRefused(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ pricing, field string }{
		{`{"models":5}`, "pricing_settings.models"},
		{`{"models":{"gpt-4o":{"pay_as_you_go":{"request_token":{"price":1}}}}}`, "pricing_settings.models.gpt-4o"},
		{`{"models":{"openai/gpt-4o":{}}}`, "pricing_settings.models.openai/gpt-4o.pay_as_you_go"},
		{`{"models":{"openai/gpt-4o":{"pay_as_you_go":{"request_token":{"price":-1}}}}}`, "pricing_settings.models.openai/gpt-4o.pay_as_you_go.request_token.price"},
		{`{"models":{"openai/gpt-4o":{"pay_as_you_go":{"nonsense":{"price":1}}}}}`, "pricing_settings.models.openai/gpt-4o.pay_as_you_go.nonsense"},
		{`{"multiplier":{"default":-1}}`, "pricing_settings.multiplier.default"},
		{`{"multiplier":{"default":"1"}}`, "pricing_settings.multiplier.default"},
		{`{"multiplier":[1]}`, "pricing_settings.multiplier"},
	} {
		got := r.call("PUT", "/admin/organisation/settings", `{"pricing_settings":`+c.pricing+`}`, "X-Gateway-Api-Key", adminKey)
		if got.status != 400 || !strings.Contains(got.body, `"`+c.field+`"`) {
			t.Errorf("%s: %d %s", c.pricing, got.status, got.body)
		}
	}
}

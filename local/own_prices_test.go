package main

import (
	"fmt"
	"strings"
	"testing"
)

// What an organisation pays itself is what its requests are reserved, settled and
// recorded at: its own price of a model before the list's, with its multipliers, unless
// an integration has its own.
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
		limits := r.admin("GET", "/api-keys/"+made["id"].(string), "")["usage_limits"].(map[string]any)
		if fmt.Sprint(limits["current_usage"]) != fmt.Sprint(float64(want)/1e9) {
			t.Errorf("%s: the budget says %v, the record %d", c.model, limits["current_usage"], want)
		}
	}
}

// A budget is reserved at the organisation's price: what the list calls cheap may be
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

package pricing

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCustomPriceReplacesTheBook(t *testing.T) {
	c, errs := ParseCustom([]byte(`{"type":"static","pay_as_you_go":{
		"request_token":{"price":0.0003},"response_token":{"price":0.0015},"cache_read_input_token":{"price":0},
		"image":{"default":{"default":{"price":4}},"hd":{"1024x1024":{"price":8}}},
		"additional_units":{"web_search":{"price":1},"web_search_high_context":{"price":2}}},
		"fixed_cost":{"request":{"price":0.1},"response":{"price":0.2}}}`), "pricing_config")
	if errs != nil {
		t.Fatal(errs)
	}
	p := c.Price(Options{Quality: "hd", Size: "1024x1024", SearchContext: "high"})
	var u Usage
	u.Set(Input, 1000)
	u.Set(CacheRead, 1000)
	u.Set(CacheWrite5m, 1000) // not named: as input
	u.Set(Output, 100)
	u.Set(Images, 1)
	u.Set(WebSearches, 1)
	u.Set(Requests, 1)
	const want = 3_000_000 + 0 + 3_000_000 + 1_500_000 + 80_000_000 + 20_000_000 + 3_000_000
	if got := p.Cost(u); got != want {
		t.Errorf("%d, want %d", got, want)
	}
	q := c.Price(Options{})
	if got, _ := q.Rate(Images); got != 4e13 {
		t.Errorf("default image: %d", got)
	}
}

func TestBadCustomPricesNameTheField(t *testing.T) {
	for body, field := range map[string]string{
		`[]`: "f", `null`: "f", `{`: "f", `{}`: "f.pay_as_you_go",
		`{"pay_as_you_go":{}}`:                                                                               "f.pay_as_you_go",
		`{"pay_as_you_go":{"request_token":3}}`:                                                              "f.pay_as_you_go.request_token",
		`{"pay_as_you_go":{"request_token":{}}}`:                                                             "f.pay_as_you_go.request_token.price",
		`{"pay_as_you_go":{"request_token":{"price":-1}}}`:                                                   "f.pay_as_you_go.request_token.price",
		`{"pay_as_you_go":{"request_token":{"price":"1"}}}`:                                                  "f.pay_as_you_go.request_token.price",
		`{"pay_as_you_go":{"tokens":{"price":1}}}`:                                                           "f.pay_as_you_go.tokens",
		`{"type":"dynamic","pay_as_you_go":{"request_token":{"price":1}}}`:                                   "f.type",
		`{"x":1,"pay_as_you_go":{"request_token":{"price":1}}}`:                                              "f.x",
		`{"pay_as_you_go":{"request_token":{"price":1,"y":1}}}`:                                              "f.pay_as_you_go.request_token.y",
		`{"pay_as_you_go":{"request_token":{"price":1},"additional_units":{"bogus":{"price":1}}}}`:           "f.pay_as_you_go.additional_units.bogus",
		`{"pay_as_you_go":{"request_token":{"price":1},"image":{"hd":{"default":{"price":` + "1e9" + `}}}}}`: "f.pay_as_you_go.image.hd.default.price",
	} {
		c, errs := ParseCustom([]byte(body), "f")
		if c != nil || len(errs) == 0 || errs[0].Field != field {
			t.Errorf("%s: %v", body, errs)
		}
	}
}

func TestMultipliersScaleEachClass(t *testing.T) {
	a, errs := ParseAdjustments([]byte(`{"multiplier":{"default":0.5,"request_token":0.8,"cache_read_input_token":null,
		"image":{"default":2},"additional_units":{"web_search":0}}}`), "pricing_adjustments")
	if errs != nil {
		t.Fatal(errs)
	}
	list := lookup(t, "openai", "gpt-4o", Options{})
	p := a.Apply(list)
	for class, want := range map[Class]int64{Input: 2000, CacheRead: 625, Output: 5000, Reasoning: 5000, AudioIn: 2000, WebSearches: 0, FileSearches: 1_250_000} {
		if got := perMillion(t, p, class); got != want*milli {
			t.Errorf("%s: %d, want %d", class, got/milli, want)
		}
	}
	if perMillion(t, list, Input) != 2500*milli {
		t.Error("the list price changed")
	}
	if (*Adjustments)(nil).Apply(list) != list {
		t.Error("no adjustments change the price")
	}
	whisper := a.Apply(lookup(t, "openai", "whisper-1", Options{}))
	if got, _ := whisper.PerMinute(); got != 3e12 {
		t.Errorf("per minute: %d", got)
	}
}

func TestReasoningFollowsOutputUnlessItIsPricedApart(t *testing.T) {
	a, errs := ParseAdjustments([]byte(`{"multiplier":{"response_token":0.5}}`), "f")
	if errs != nil {
		t.Fatal(errs)
	}
	p := a.Apply(lookup(t, "openai", "o3", Options{}))
	if got := perMillion(t, p, Reasoning); got != 4000*milli {
		t.Errorf("as output: %d", got)
	}
	p = a.Apply(lookup(t, "dashscope", "qwen3-32b", Options{}))
	if got := perMillion(t, p, Reasoning); got != 8400*milli {
		t.Errorf("apart: %d", got)
	}
}

func TestBadMultipliersNameTheField(t *testing.T) {
	for body, field := range map[string]string{
		`7`: "f", `{}`: "f.multiplier", `{"multiplier":[]}`: "f.multiplier", `{"multiplier":{"default":-1}}`: "f.multiplier.default",
		`{"multiplier":{"default":"1"}}`: "f.multiplier.default", `{"multiplier":{"tokens":1}}`: "f.multiplier.tokens",
		`{"multiplier":{"image":{"hd":1}}}`: "f.multiplier.image.hd", `{"multiplier":{"additional_units":{"x":1}}}`: "f.multiplier.additional_units.x",
		`{"multiplier":{},"y":1}`: "f.y", `{"multiplier":{"default":1e99}}`: "f.multiplier.default",
	} {
		a, errs := ParseAdjustments([]byte(body), "f")
		if a != nil || len(errs) == 0 || !strings.HasPrefix(errs[0].Field, field) {
			t.Errorf("%s: %v", body, errs)
		}
	}
}

// TestTheLargestPricesStayPositive: prices that are allowed one by one give no negative price
// together, by which a budget would grow.
func TestTheLargestPricesStayPositive(t *testing.T) {
	t.Parallel()
	const most = `{"price":900000}`
	all := map[string]json.RawMessage{}
	for _, w := range wireClass {
		all[w.key] = json.RawMessage(most)
	}
	units := map[string]json.RawMessage{}
	for name := range wireUnit {
		units[name] = json.RawMessage(most)
	}
	more, err := json.Marshal(units)
	if err != nil {
		t.Fatal(err)
	}
	all["additional_units"] = more
	all["image"] = json.RawMessage(`{"default":{"default":` + most + `}}`)
	pay, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	c, bad := ParseCustom([]byte(`{"pay_as_you_go":`+string(pay)+`,"fixed_cost":{"request":`+most+`,"response":`+most+`}}`), "p")
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	a, bad := ParseAdjustments([]byte(`{"multiplier":{"default":1000000}}`), "a")
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	for _, p := range []Price{c.Price(Options{}), a.Apply(c.Price(Options{}))} {
		for class, rate := range p.rate {
			var u Usage
			u.Set(Class(class), MaxUnits)
			u.Set(Requests, MaxUnits)
			if rate < 0 || p.Cost(u) < 0 {
				t.Errorf("%v: %d, cost %d", Class(class), rate, p.Cost(u))
			}
		}
		if p.rate[Requests] <= 0 || p.minute < 0 {
			t.Errorf("%d for a request, %d for a minute", p.rate[Requests], p.minute)
		}
	}
}

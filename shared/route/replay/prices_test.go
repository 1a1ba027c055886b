package replay

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"gateway/shared/pricing"
)

// The price that a request was charged by charges the same again, whatever was used.
func TestTheSamePriceChargesTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		config := fmt.Sprintf(`{"pay_as_you_go":{"request_token":{"price":0.%06d},"response_token":{"price":%d.%09d},"cache_read_input_token":{"price":0.%08d},"reasoning_token":{"price":%d}},"fixed_cost":{"request":{"price":0.%03d}}}`,
			rnd.IntN(1e6), rnd.IntN(10), rnd.IntN(1e9), rnd.IntN(1e8), rnd.IntN(3), rnd.IntN(1000))
		own, bad := pricing.ParseCustom([]byte(config), "")
		p, wrong := ParsePrices(json.RawMessage(`{"openai/gpt":`+config+`}`), json.RawMessage(`{"openai/other":2}`))
		if len(bad)+len(wrong) > 0 {
			t.Fatal(bad, wrong)
		}
		run := New(Changes{Prices: p}, installation{})
		for n := range 20 {
			rec := plain(n)
			rec.Cost, rec.Usage = 0, pricing.Usage{}
			rec.Attempts = append(rec.Attempts, rec.Attempts[0])
			for i := range rec.Attempts {
				a := &rec.Attempts[i]
				for range 4 {
					a.Usage.Set([]pricing.Class{pricing.Input, pricing.CacheRead, pricing.Output, pricing.Reasoning, pricing.Requests}[rnd.IntN(5)], rnd.Int64N(1<<rnd.IntN(24)))
				}
				a.Cost = own.Price(pricing.Options{}).Cost(a.Usage)
				rec.Cost, rec.Usage = rec.Cost+a.Cost, rec.Usage.Sum(a.Usage)
			}
			if err := run.Simulate(t.Context(), rec, Bodies{}); err != nil {
				t.Fatal(err)
			}
		}
		if got := run.Result(); got.Before != got.After || len(got.Differences)+len(got.Unjudged) > 0 {
			t.Fatalf("%s: %+v", config, got)
		}
	}
}

func TestOtherPrices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		models, multipliers string
		cents               float64
		unjudged            string
	}{
		"nothing":             {``, ``, 30e-6, ""},
		"a multiplier":        {``, `{"openai/gpt":1.5,"openai/*":9,"*":9}`, 45e-6, ""},
		"of the provider":     {``, `{"openai/*":0,"*":9}`, 0, ""},
		"of all":              {``, `{"*":1.1}`, 33e-6, ""},
		"of another":          {``, `{"anthropic/*":9}`, 30e-6, ""},
		"a price":             {`{"openai/gpt":{"pay_as_you_go":{"request_token":{"price":1},"response_token":{"price":2}}}}`, ``, 200, ""},
		"both":                {`{"openai/gpt":{"pay_as_you_go":{"request_token":{"price":1},"response_token":{"price":2}}}}`, `{"*":0.5}`, 100, ""},
		"by size":             {`{"openai/gpt":{"pay_as_you_go":{"image":{"hd":{"1x1":{"price":1}}}}}}`, ``, 30e-6, "price_facts 10"},
		"more than all money": {``, `{"*":1000000}`, 30, ""},
	} {
		p, bad := ParsePrices(json.RawMessage(c.models), json.RawMessage(c.multipliers))
		if len(bad) > 0 {
			t.Fatal(name, bad)
		}
		records := many(10)
		for _, rec := range records {
			if name == "by size" {
				rec.Attempts[0].Usage.Set(pricing.Images, 1)
			}
		}
		got := take(t, Changes{Prices: p}, installation{}, records...)
		if d := got.After.Cost - c.cents; d > 1e-9 || d < -1e-9 || got.unjudged() != c.unjudged || (got.requests("repriced") == 10) != (got.After.Cost != got.Before.Cost) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, c := range [][2]string{{`[]`, ``}, {`{"gpt":{}}`, ``}, {``, `[]`}, {``, `{"a":1}`}, {``, `{"*":-1}`}, {``, `{"*":"1"}`}, {``, `{"*":1000001}`}, {``, `{"/m":1}`}} {
		if _, bad := ParsePrices(json.RawMessage(c[0]), json.RawMessage(c[1])); len(bad) == 0 {
			t.Errorf("%v is taken", c)
		}
	}
}

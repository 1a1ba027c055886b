package pricing

import (
	"encoding/json"
	"testing"
)

func TestDocumentsShowPricesInCents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ provider, model, want string }{
		{"openai", "gpt-4o", `"request_token":{"price":0.00025,"price_usd":0.0000025},"response_token":{"price":0.001,"price_usd":0.00001}`},
		{"anthropic", "claude-sonnet-4-5", `"request_token":{"price":0.0003,"price_usd":0.000003},"response_token":{"price":0.0015,"price_usd":0.000015}`},
	} {
		d, ok := Default().Document(c.provider, c.model)
		if !ok {
			t.Errorf("%s has no price", c.model)
			continue
		}
		raw, err := json.Marshal(map[string]any{"request_token": d.PayAsYouGo["request_token"], "response_token": d.PayAsYouGo["response_token"]})
		if err != nil || string(raw) != "{"+c.want+"}" {
			t.Errorf("%s: %s", c.model, raw)
		}
	}
	if _, ok := Default().Document("openai", "no-such-model"); ok {
		t.Error("a model that is not there has a price")
	}
	for femtos, want := range map[int64]json.Number{0: "0", 1: "0.0000000000001", 10_000_000_000_000: "1", 25_000_000_000_000: "2.5", 250_000_000: "0.000025"} {
		if got := decimal(femtos, centsPlaces); got != want {
			t.Errorf("%d: %s, want %s", femtos, got, want)
		}
	}
}

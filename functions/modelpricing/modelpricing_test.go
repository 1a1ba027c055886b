package modelpricing

import (
	"testing"

	"gateway/shared/admin/admintest"
	"gateway/shared/pricing"
)

func TestPricesAreReadByAnybody(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, New(pricing.Default()))
	for _, key := range []string{"", admintest.UnknownKey, admintest.WorkspaceA} {
		got := h.Do("GET", "/model-configs/pricing/openai/gpt-4o", key, nil).OK()
		if got.At("pay_as_you_go", "request_token", "price") != 0.00025 || got.Text("currency") != "USD" {
			t.Errorf("%s", got.Body)
		}
	}
	all := h.Do("GET", "/pricing/openai.json", "", nil).OK()
	if all.At("gpt-4o", "pricing_config", "pay_as_you_go", "response_token", "price") != 0.001 {
		t.Errorf("%.200s", all.Body)
	}
	for _, path := range []string{"/model-configs/pricing/openai/nothing", "/model-configs/pricing/nobody/gpt-4o", "/pricing/nobody.json", "/pricing/openai", "/model-configs/pricing/a%2Fb/c%2Fd"} {
		if got := h.Do("GET", path, "", nil); got.Status != 404 || string(got.Body) != `{"error":"Model not found"}` {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
}

// Every price of the book has a document that fits its schema.
func TestEveryProviderHasItsFile(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, New(pricing.Default()))
	for _, provider := range []string{"anthropic", "azure-openai", "bedrock", "google", "vertex-ai", "deepgram", "fal-ai", "openrouter", "stability-ai"} {
		h.Do("GET", "/pricing/"+provider+".json", "", nil).OK()
	}
}

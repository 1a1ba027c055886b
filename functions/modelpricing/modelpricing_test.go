package modelpricing

import (
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/testkit/admintest"
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

func TestParametersAreReadByAnybody(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, New(pricing.Default()))
	keys := func(a admintest.Response) map[string]map[string]any {
		out := map[string]map[string]any{}
		for _, p := range a.At("params").([]any) {
			p := p.(map[string]any)
			key := p["key"].(string)
			if out[key] != nil {
				t.Errorf("%s is listed twice: %s", key, a.Body)
			}
			out[key] = p
		}
		return out
	}
	mini := h.Do("GET", "/model-configs/general/openai/gpt-4o", "", nil).OK()
	params := keys(mini)
	if params["max_tokens"]["maxValue"] != 16384.0 || params["temperature"]["maxValue"] != 2.0 || params["response_format"] == nil || mini.Text("type", "primary") != "chat" || mini.At("disablePlayground") != false {
		t.Errorf("%s", mini.Body)
	}
	if thinks := keys(h.Do("GET", "/model-configs/general/openai/gpt-5", admintest.WorkspaceA, nil).OK()); thinks["temperature"] != nil || thinks["max_tokens"] != nil || thinks["max_completion_tokens"] == nil {
		t.Errorf("%v", thinks)
	}
	if vectors := h.Do("GET", "/model-configs/general/openai/text-embedding-3-small", "", nil).OK(); len(keys(vectors)) != 0 || vectors.At("disablePlayground") != true {
		t.Errorf("%s", vectors.Body)
	}
	if first := h.Do("GET", "/model-configs/general/openai/gpt-4.1", "", nil).OK(); first.At("isDefault") != true {
		t.Errorf("%s", first.Body)
	}
	for _, path := range []string{"/model-configs/general/openai/nothing", "/model-configs/general/nobody/gpt-4o", "/model-configs/general/..%2Fmodels%2Fopenai/gpt-4o", "/general/nobody.json", "/general/openai", "/general/.json"} {
		if got := h.Do("GET", path, "", nil); got.Status != 404 || string(got.Body) != `{"error":"Model not found"}` {
			t.Errorf("%s: %d %s", path, got.Status, got.Body)
		}
	}
}

// TestEveryFileOfParametersIsServed holds that each file fits the schema, by the
// check of all responses against the document.
func TestEveryFileOfParametersIsServed(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, New(pricing.Default()))
	list, err := files.ReadDir("models")
	if err != nil || len(list) < 50 {
		t.Fatalf("%d files: %v", len(list), err)
	}
	for _, f := range list {
		h.Do("GET", "/general/"+f.Name(), "", nil).OK()
	}
}

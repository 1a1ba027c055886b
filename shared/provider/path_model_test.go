package provider

import (
	"strings"
	"testing"
)

func TestPathsOfProvidersNameTheirModels(t *testing.T) {
	vertex := "/v1/projects/p/locations/us-central1/"
	for _, c := range []struct{ provider, path, want string }{
		{"google", "/v1beta/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash"},
		{"google", "/models/gemini-2.5-flash:streamGenerateContent", "gemini-2.5-flash"},
		{"google", "/v1/models/gemini-2.5-flash%3AgenerateContent", "gemini-2.5-flash"},
		{"google", "//v1beta/./models//gemini-2.5-flash:countTokens", "gemini-2.5-flash"},
		{"google", "/v1beta/models/other/../gemini-2.5-pro:generateContent", "gemini-2.5-pro"},
		{"google", "/v1beta/models%2Fgemini-2.5-pro:generateContent", "gemini-2.5-pro"},
		{"google", "/v1beta/%6dodels/gemini-2.5-pro:generateContent", "gemini-2.5-pro"},
		{"google", "/v1beta/tunedModels/mine:generateContent", "tunedModels/mine"},
		{"google", "/v1beta/models", ""}, {"google", "/v1beta/models/gemini-2.5-pro", ""}, {"google", "/v1beta/files/a", ""}, {"google", "", ""},
		{"vertex-ai", vertex + "publishers/google/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash"},
		{"vertex-ai", vertex + "publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", "anthropic.claude-sonnet-4-5@20250929"},
		{"vertex-ai", vertex + "publishers/mistralai/models/mistral-medium-3:rawPredict", "mistralai.mistral-medium-3"},
		{"vertex-ai", vertex + "endpoints/12345:predict", "endpoints.12345"},
		{"vertex-ai", vertex + "endpoints/12345/chat/completions", "endpoints.12345"},
		{"vertex-ai", vertex + "endpoints/openapi/chat/completions", ""}, // the body names it
		{"vertex-ai", "/v1/publishers/google/models/gemini-2.5-flash:generateContent", "gemini-2.5-flash"},
		{"vertex-ai", vertex + "batchPredictionJobs", ""},
		{"azure-openai", "/deployments/my-gpt/chat/completions", "my-gpt"},
		{"azure-openai", "/openai/deployments/my%20gpt/embeddings", "my gpt"},
		{"azure-openai", "/res.openai.azure.com/openai/deployments/my-gpt/chat/completions", "my-gpt"},
		{"azure-openai", "/deployments/a/../b/chat/completions", "b"},
		{"azure-openai", "/deployments/my-gpt", ""}, {"azure-openai", "/files", ""},
		{"azure-ai", "/openai/deployments/d/chat/completions", "d"},
		{"predibase", "/tenant/deployments/v2/llms/mistral-7b/v1/chat/completions", "mistral-7b"},
		{"predibase", "/tenant/deployments/v2/llms/mistral-7b/generate", "mistral-7b"},
		{"workers-ai", "/@cf/meta/llama-3.1-8b-instruct", "@cf/meta/llama-3.1-8b-instruct"},
		{"workers-ai", "/%40cf%2Fmeta/llama-3.1-8b-instruct/", "@cf/meta/llama-3.1-8b-instruct"},
		{"workers-ai", "/run/@hf/thebloke/zephyr", "@hf/thebloke/zephyr"}, {"workers-ai", "/v1/chat/completions", ""},
		{"palm", "/models/text-bison-001:generateText", "text-bison-001"},
		{"ai21", "/j2-ultra/complete", "j2-ultra"}, {"ai21", "/chat/completions", ""}, {"ai21", "/complete", ""},
		{"bytez", "/models/v2/openai-community/gpt2", "openai-community/gpt2"},
		{"openai", "/models/gpt-4o:x", ""}, {"cohere", "/deployments/a/b/c", ""},
	} {
		if got := row(t, c.provider).PathModel(c.path); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.provider, c.path, got, c.want)
		}
	}
}

// What the gateway itself sends to a model that a path names reads back as the
// model.
func TestPathModelReadsWhatURLWrites(t *testing.T) {
	for _, c := range []struct{ provider, fields, model string }{
		{"google", "", "gemini-2.5-flash"}, {"bedrock", "", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}, {"azure-openai", "azure_resource_name=res", "my-gpt"},
		{"vertex-ai", "vertex_project_id=p,vertex_region=us-central1", "anthropic.claude-sonnet-4-5"}, {"vertex-ai", "vertex_project_id=p,vertex_region=us-central1", "gemini-2.5-flash"},
		{"predibase", "predibase_tenant_id=t", "mistral-7b"},
	} {
		target := &Target{Provider: row(t, c.provider)}
		target.Credential.Fields = map[string]string{"aws_region": "us-east-1"}
		for pair := range strings.SplitSeq(c.fields, ",") {
			name, value, _ := strings.Cut(pair, "=")
			target.Credential.Fields[name] = value
		}
		raw, err := target.URL(Chat, c.model, false)
		if err != nil {
			t.Errorf("%s: %v", c.provider, err)
			continue
		}
		_, path, _ := strings.Cut(raw, "://")
		path, _, _ = strings.Cut(path[strings.IndexByte(path, '/'):], "?")
		if got := row(t, c.provider).PathModel(path); got != c.model {
			t.Errorf("%s: %s names %q, not %q", c.provider, path, got, c.model)
		}
	}
}

func FuzzPathModel(f *testing.F) {
	f.Add("/v1beta/models/gemini-2.5-flash:generateContent")
	f.Add("/../deployments/%2e%2e/%zz//x/%40cf/a")
	f.Fuzz(func(t *testing.T, path string) {
		for i := range catalog {
			named := catalog[i].PathModel(path)
			if again := catalog[i].PathModel("/./" + path); again != named {
				t.Fatalf("%s %q: %q and %q", catalog[i].ID, path, named, again)
			}
		}
	})
}

func TestPathsThatOnlyCount(t *testing.T) {
	for _, c := range []struct {
		provider, path string
		counts         bool
		model          string
	}{
		{"google", "/v1beta/models/m:countTokens", true, "m"},
		{"vertex-ai", "/v1/projects/p/locations/l/publishers/google/models/m:computeTokens", true, "m"},
		{"vertex-ai", "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", true, ""},
		{"vertex-ai", "/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:streamRawPredict", false, "anthropic.count-tokens"},
		{"bedrock", "/model/m:0/count-tokens", true, "m:0"},
		{"bedrock", "/model/arn%3Aaws%2Fm/count-tokens", true, "arn:aws/m"},
		{"anthropic", "/v1/messages/count_tokens", true, ""},
		{"openai", "/v1/messages/count_tokens", false, ""},
		{"google", "/v1beta/models/m:generateContent", false, "m"},
		{"google", "/v1beta/models/m:generateContent:countTokens", false, "m"},
		{"google", "/v1beta/models/m:generateContent;:countTokens", false, "m"},
		{"google", "/v1beta/models/m:generateContent%3F:countTokens", false, "m"},
		{"google", "/v1beta/models/x/../m:countTokens", false, "m"},
		{"bedrock", "/model/m/converse%2F..%2Fcount-tokens", false, "m"},
		{"bedrock", "/model/m/converse/count-tokens", false, "m"},
		{"bedrock", "/model/m/converse%3F/count-tokens", false, "m"},
		{"anthropic", "/v1/messages//count_tokens", false, ""},
	} {
		p, _ := ByID(c.provider)
		if got := p.CountsTokens(c.path); got != c.counts {
			t.Errorf("%s %s: %v", c.provider, c.path, got)
		}
		if got := p.PathModel(c.path); got != c.model {
			t.Errorf("%s %s: model %q", c.provider, c.path, got)
		}
	}
}

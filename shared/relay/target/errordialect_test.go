package target

import (
	"net/http"
	"testing"

	"gateway/shared/provider"
)

// TestErrorDialectIsThatOfTheSDK lists the shape of errors by path, and by provider where
// that is known. Without a provider the request was rejected before one was chosen.
func TestErrorDialectIsThatOfTheSDK(t *testing.T) {
	t.Parallel()
	version := http.Header{"Anthropic-Version": {"2023-06-01"}}
	for _, c := range []struct {
		provider, path string
		header         http.Header
		want           string
	}{
		{"openai", "/vector_stores/vs_1", nil, ""},
		{"azure-openai", "/openai/v1/responses/resp_1", nil, ""},
		{"anthropic", "/messages/batches/msgbatch_1", version, provider.AnthropicMessages},
		{"anthropic", "/v1/files/file_1", nil, provider.AnthropicMessages},
		{"anthropic", "/v1/skills/skill_1/versions/1", version, provider.AnthropicMessages},
		{"anthropic", "/v1/chat/completions", nil, ""},
		{"google", "/v1beta/cachedContents/abc", nil, provider.Gemini},
		{"google", "/v1beta/files/abc", nil, provider.Gemini},
		{"google", "/v1beta/fileSearchStores/abc/documents/x", nil, provider.Gemini},
		{"google", "/v1beta/openai/batches/abc", nil, ""},
		{"vertex-ai", "/v1beta1/projects/p/locations/l/endpoints/openapi/chat/completions", nil, ""},
		{"cohere", "/v1/datasets/d", nil, provider.Cohere},
		{"cohere", "/v2/batches/b", nil, provider.Cohere},
		{"cohere", "/compatibility/v1/files/f", nil, ""},
		{"bedrock", "/async-invoke/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aasync-invoke%2Fa", nil, provider.Converse},
		{"openai", "/v1beta/models/gpt-4o:countTokens", nil, provider.Gemini},
		{"", "/v1beta/models", nil, provider.Gemini},
		{"", "/v1beta/models/x:embedContent", nil, provider.Gemini},
		{"", "/upload/v1beta/files", nil, provider.Gemini},
		{"", "/model/m/invoke", nil, provider.Converse},
		{"", "/model", nil, ""},
		{"", "/v2/embed", nil, provider.Cohere},
		{"", "/v2/rerank", nil, provider.Cohere},
		{"", "/models/claude", version, provider.AnthropicMessages},
		{"", "/anything", nil, ""},
	} {
		p, ok := provider.ByID(c.provider)
		if !ok && c.provider != "" {
			t.Fatal(c.provider)
		}
		if got := sdkDialect(p, c.header, c.path); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.provider, c.path, got, c.want)
		}
	}
}

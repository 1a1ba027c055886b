package chosen

import (
	"net/http"
	"testing"

	"gateway/shared/provider"
)

// TestMissingObjectsHaveTheFormOfTheirSDK lists the shape of a missing object by provider and path.
func TestMissingObjectsHaveTheFormOfTheirSDK(t *testing.T) {
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
		{"cohere", "/v1/datasets/d", nil, provider.Cohere},
		{"cohere", "/v2/batches/b", nil, provider.Cohere},
		{"cohere", "/compatibility/v1/files/f", nil, ""},
		{"bedrock", "/async-invoke/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aasync-invoke%2Fa", nil, provider.Converse},
	} {
		p, ok := provider.ByID(c.provider)
		if !ok {
			t.Fatal(c.provider)
		}
		if got := sdkDialect(p, c.header, c.path); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.provider, c.path, got, c.want)
		}
	}
}

package chosen

import (
	"testing"

	"gateway/shared/provider"
)

// TestWhatOnlyConverseCarriesStaysThere holds the one rule of what keeps a conversation
// from the native route of its shape.
func TestWhatOnlyConverseCarriesStaysThere(t *testing.T) {
	t.Parallel()
	const chat, responses, messages = provider.OpenAIChat, provider.OpenAIResponses, provider.AnthropicMessages
	const tool = `"tools":[{"type":"function","function":{"name":"f"}}]`
	for _, c := range []struct {
		shape, model, body string
		stays              bool
	}{
		{chat, "openai.gpt-5.6-sol", `{"messages":[],"reasoning_effort":"high","response_format":{"type":"json_object"},"unknown":1}`, false},
		{chat, "openai.gpt-5.6-sol", `{"messages":[],"guardrailConfig":null}`, false},
		{chat, "us.openai.gpt-5.6-sol", `{` + tool + `}`, true},
		{chat, "us.openai.gpt-5.6-sol", `{` + tool + `,"reasoning_effort":"none"}`, false},
		{chat, "xai.grok-4.6", `{` + tool + `}`, false},
		{chat, "m", `{"guardrailConfig":{}}`, true},
		{chat, "m", `{"guardrail_config":{}}`, true},
		{chat, "m", `{"performanceConfig":{}}`, true},
		{chat, "m", `{"performance_config":{}}`, true},
		{chat, "m", `{"requestMetadata":{}}`, true},
		{chat, "m", `{"metadata":{"a":"b"}}`, true},
		{responses, "m", `{"metadata":{"a":"b"}}`, true},
		{messages, "m", `{"metadata":{"user_id":"u"}}`, false},
		{messages, "m", `{"additionalModelRequestFields":{}}`, true},
		{responses, "m", `{"additional_model_request_fields":{}}`, true},
		{chat, "m", `{"additionalModelResponseFieldPaths":[]}`, true},
		{chat, "m", `{"additional_model_response_field_paths":[]}`, true},
		{chat, "m", `{"thinking":{"type":"enabled"}}`, true},
		{messages, "m", `{"thinking":{"type":"adaptive"},"context_management":{},"mcp_servers":[],"cache_control":{"type":"ephemeral"},"top_k":1}`, false},
		{messages, "m", `{"anthropic_beta":["a"]}`, true},
		{messages, "m", `{"anthropic_version":"bedrock-2023-05-31"}`, true},
		{messages, "m", `{"service_tier":"auto"}`, true},
		{messages, "m", `{"output_config":{"effort":"low"}}`, false},
		{messages, "m", `{"output_config":{"format":{}}}`, true},
		{messages, "m", `{"output_format":{}}`, true},
		{messages, "m", `{"tools":[{"name":"a"},{"name":"b","strict":true}]}`, true},
		{messages, "m", `{"tools":[{"name":"a","input_schema":{"properties":{"strict":{}}}}]}`, false},
		{messages, "m", `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, false},
		{chat, "m", `{"messages":[{"content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`, true},
		{chat, "m", `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"s3://b/k"}}]}]}`, true},
		{messages, "m", `{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"s3://b/k"}}]}]}`, true},
		{messages, "m", `{"messages":[{"content":[{"cachePoint":{"type":"default"}}]}]}`, true},
		{provider.OpenAICompletions, "m", `{}`, true},
	} {
		if got := staysWithOwn([]byte(c.body), c.shape, c.model); got != c.stays {
			t.Errorf("%s of %s %s: stays %v", c.shape, c.model, c.body, got)
		}
	}
}

package target

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
)

// TestWhatOnlyConverseCarriesStaysThere checks the one rule for conversations that cannot use
// the native route of their dialect.
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
		{messages, "m", `{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"s3:\/\/b/k"}}]}]}`, true},
		{responses, "m", `{"tools":[{"type":"function","name":"f"},{"type":"custom","name":"g"}]}`, false},
		{responses, "m", `{"tools":[{"type":"function","name":"f"},{"type":"web_search"}]}`, true},
		{provider.OpenAICompletions, "m", `{}`, true},
	} {
		if got := staysWithOwn([]byte(c.body), c.shape, c.model); got != c.stays {
			t.Errorf("%s of %s %s: stays %v", c.shape, c.model, c.body, got)
		}
	}
}

// atNative returns a target that is called in its client's dialect.
func atNative() *Target {
	c := newTarget(&Deps{})
	c.Choice.Target.Provider, _ = provider.ByID("bedrock")
	c.Req.Route = &routes.Route{BodyMode: routes.Unified, Client: anthropic.Messages{}}
	c.Choice.Dialect = anthropic.Messages{}
	c.Choice.Op, c.Choice.Model = provider.NativeMessages, "anthropic.claude-opus-5"
	return c
}

// TestAPathIsUnknownByAWSsOwnWords checks that a response that only mentions the error is a
// normal one.
func TestAPathIsUnknownByAWSsOwnWords(t *testing.T) {
	t.Parallel()
	const none = `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`
	for _, c := range []struct {
		status int
		body   string
		want   int
	}{
		{200, none, unknownStatus}, {404, none, unknownStatus}, {500, none, 500}, {400, none, 400},
		{200, `{"type":"message","content":[{"type":"text","text":"UnknownOperationException"}],"usage":{}}`, 200},
		{200, `{"content":[{"text":"\"__type\":\"a#UnknownOperationException\""}],"usage":{}}`, 200},
		{404, `{"error":{"message":"no such item"}}`, 404},
		{200, none + strings.Repeat(" ", maxUnknown), 200},
	} {
		resp := &http.Response{StatusCode: c.status, ContentLength: int64(len(c.body)), Body: io.NopCloser(strings.NewReader(c.body))}
		got := atNative().Choice.Unrouted(resp)
		rest, err := io.ReadAll(got.Body)
		if got.StatusCode != c.want || string(rest) != c.body || err != nil {
			t.Errorf("%d %.80s: %d %q %v", c.status, c.body, got.StatusCode, rest, err)
		}
	}
}

// TestWhyANativeRouteIsLeft: permanently if the host does not have it, for this request only if
// Converse accepts content that the route does not, and not for errors of the client.
func TestWhyANativeRouteIsLeft(t *testing.T) {
	t.Parallel()
	refusal := func(status int, message, code string) *fault.Fault {
		f := fault.New(fault.ProviderError, "", "refused").WithCause(&chat.ProviderError{Status: status, Message: message, Code: code})
		f.Source, f.StatusCode = fault.SourceProvider, status
		return f
	}
	const once = addedNative | ofThisRequest
	now := time.Now()
	for _, c := range []struct {
		f    *fault.Fault
		want added
	}{
		{refusal(405, "", ""), addedNative},
		{refusal(400, "model 'm' isn't supported on this route", ""), addedNative},
		{refusal(404, "The model doesn't exist or doesn't support this API", ""), addedNative},
		{refusal(404, "The model 'm' does not exist", "model_not_found"), once},
		{refusal(404, "", ""), once},
		{refusal(404, "Item with id 'rs_1' not found. Items are not persisted when store is set to false.", ""), 0},
		{refusal(400, "invalid beta flag", ""), once},
		{refusal(400, "tools.0.custom.defer_loading: Extra inputs are not permitted", ""), once},
		{refusal(400, "Unsupported parameter: 'stop' is not supported with this model.", ""), once},
		{refusal(400, "prompt is too long", ""), 0},
		{refusal(429, "Extra inputs are not permitted", ""), 0},
		{refusal(403, "not authorized", ""), 0},
	} {
		call := atNative()
		if got := call.RejectedFields(c.f); got != c.want {
			t.Errorf("%d %q: %b, want %b", c.f.StatusCode, c.f.Message, got, c.want)
			continue
		}
		if lasting := c.want.lasting(); lasting != 0 {
			call.Deps.plainer.learn(call.Choice.hostModel(), lasting, now)
		}
		for after, want := range map[time.Duration]bool{0: c.want == addedNative, learned - 1: c.want == addedNative, learned: false} {
			later := atNative()
			later.Deps = call.Deps
			later.Deps.plainer.apply(later, func() time.Time { return now.Add(after) })
			if got := later.Choice.leaves&addedNative != 0; got != want {
				t.Errorf("%d %v: remembered %v after %v", c.f.StatusCode, chat.ProviderErrorOf(c.f).Message, got, after)
			}
		}
	}
}

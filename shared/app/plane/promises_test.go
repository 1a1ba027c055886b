package plane

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// families are models of each kind that a conversation can be translated for.
var families = []struct{ provider, model string }{
	{"anthropic", "claude-2.1"}, {"anthropic", "claude-3-5-haiku-20241022"}, {"anthropic", "claude-sonnet-4-5"}, {"anthropic", "claude-opus-4-8"},
	{"bedrock", "anthropic.claude-3-haiku-20240307-v1:0"}, {"bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"}, {"bedrock", "amazon.nova-pro-v1:0"}, {"bedrock", "meta.llama3-70b-instruct-v1:0"},
	{"bedrock", "mistral.mistral-large-2402-v1:0"}, {"bedrock", "cohere.command-r-v1:0"}, {"bedrock", "ai21.jamba-1-5-large-v1:0"}, {"bedrock", "openai.gpt-oss-120b-1:0"}, {"bedrock", "unknown.model"},
	{"google", "gemini-1.5-pro"}, {"google", "gemini-2.0-flash"}, {"google", "gemini-2.5-flash"}, {"google", "gemini-3-pro-preview"}, {"google", "gemma-3-27b-it"},
	{"vertex-ai", "gemini-2.5-pro"}, {"vertex-ai", "anthropic.claude-3-7-sonnet"}, {"vertex-ai", "meta.llama-4-scout"}, {"vertex-ai", "mistralai.mistral-medium-3"},
	{"cohere", "command-r-plus"}, {"cohere", "command-a-03-2025"}, {"cohere", "command-a-reasoning-08-2025"},
	{"openai", "gpt-4o"}, {"openai", "gpt-5"}, {"openai", "o3"}, {"azure-openai", "gpt-4o"}, {"mistral-ai", "mistral-large-latest"}, {"groq", "llama-3.3-70b"},
	{"oracle", "cohere.command-r-plus"}, {"oracle", "meta.llama-3.3-70b-instruct"}, {"oracle", "xai.grok-4"}, {"reka-ai", "reka-core"}, {"palm", "chat-bison-001"}, {"bytez", "openai-community/gpt2"}, {"ollama", "llava"},
}

// promise is a body of a client that asks for what must not be left out silently.
type promise struct {
	name, client, body, field string
	code                      fault.Code
	carried                   []string // any of these in the body for the provider carries it
}

const zebra = `{"type":"object","properties":{"zebra":{"type":"integer"}},"required":["zebra"],"additionalProperties":false}`

var promises = []promise{
	{"json_schema", provider.OpenAIChat, `{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":` + zebra + `}}}`, "response_format", fault.UnsupportedResponse, []string{"zebra"}},
	{"strict json_schema", provider.OpenAIChat, `{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":` + zebra + `}}}`, "response_format", fault.UnsupportedResponse, []string{"zebra"}},
	{"json_schema and tools", provider.OpenAIChat, `{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}],"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":` + zebra + `}}}`, "response_format", fault.UnsupportedResponse, []string{"zebra"}},
	{"json_schema and thinking", provider.OpenAIChat, `{"model":"m","max_tokens":9000,"messages":[{"role":"user","content":"x"}],"thinking":{"type":"enabled","budget_tokens":1024},"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":` + zebra + `}}}`, "response_format", fault.UnsupportedResponse, []string{"zebra"}},
	{"json_object", provider.OpenAIChat, `{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":"x in JSON"}],"response_format":{"type":"json_object"}}`, "response_format", fault.UnsupportedResponse, jsonModes},
	{"messages format", provider.AnthropicMessages, `{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":"x"}],"output_config":{"format":{"type":"json_schema","schema":` + zebra + `}}}`, "output_config.format", fault.UnsupportedResponse, []string{"zebra"}},
	{"text.format", provider.OpenAIResponses, `{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"a","schema":` + zebra + `}}}`, "text.format", fault.UnsupportedResponse, []string{"zebra"}},
	{"text.format json_object", provider.OpenAIResponses, `{"model":"m","input":"x in JSON","text":{"format":{"type":"json_object"}}}`, "text.format", fault.UnsupportedResponse, jsonModes},
	{"several answers", provider.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"x"}],"n":2}`, "n", fault.InvalidRequest, several},
	{"several completions", provider.OpenAICompletions, `{"model":"m","prompt":"x","n":2}`, "n", fault.InvalidRequest, several},
}

var (
	// Models without a mode for it are told so in their system prompt.
	jsonModes = []string{`Answer with one JSON object`, `"json_object"`, `"JSON_OBJECT"`, `"responseMimeType":"application/json"`, `"tool_choice"`, `"toolChoice"`}
	several   = []string{`"n":2`, `"candidateCount":2`, `"numGenerations":2`, `"num_generations":2`}
)

// TestPromisesAreForwardedOrRejected: a member that shapes the response reaches the provider in the
// provider's own form or by a hidden tool, or the request is rejected and the field named.
// The member is never left out, because the response would look correct.
func TestPromisesAreForwardedOrRejected(t *testing.T) {
	dialects := map[string]chat.Provider{}
	for _, d := range Dialects() {
		dialects[d.Name()] = d
	}
	forwarded, refused := map[string]int{}, map[string]int{}
	for _, f := range families {
		p, ok := provider.ByID(f.provider)
		if !ok {
			t.Fatal(f.provider)
		}
		target := provider.Target{Provider: p}
		for _, c := range promises {
			name, op, ok := target.UpstreamDialect(operationOf[c.client], c.client, f.model)
			if !ok || name == c.client && op == operationOf[c.client] {
				continue // not served, or forwarded as it is
			}
			at := fmt.Sprintf("%s %s: %s by %s", f.provider, f.model, c.name, name)
			client := dialects[c.client].(chat.Client)
			r, err := client.DecodeRequest([]byte(c.body))
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			r.Model = f.model
			traits := target.TraitsFor(context.Background(), f.model)
			var loss chat.Loss
			sent, err := chat.Translate(nil, client, dialects[name], r, &traits, &loss)
			switch fa := fault.From(err); {
			case err == nil && containsAny(string(sent), c.carried):
				forwarded[c.name]++
			case err == nil:
				t.Errorf("%s: left out: %s", at, sent)
			case fa.Status() != 400:
				t.Errorf("%s: %v", at, err)
			case fa.Code == c.code && fa.Field == c.field, fa.Code == fault.UnsupportedOperation:
				refused[c.name]++
			default:
				t.Errorf("%s: refused with %s %q: %v", at, fa.Code, fa.Field, err)
			}
		}
	}
	for _, c := range promises {
		if forwarded[c.name] == 0 && c.client == provider.OpenAIChat {
			t.Errorf("%s is kept by nobody", c.name)
		}
	}
	t.Logf("kept %v, refused %v", forwarded, refused)
}

var operationOf = map[string]provider.Operation{
	provider.OpenAIChat: provider.Chat, provider.OpenAICompletions: provider.Completions,
	provider.AnthropicMessages: provider.Messages, provider.OpenAIResponses: provider.ResponsesCreate,
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

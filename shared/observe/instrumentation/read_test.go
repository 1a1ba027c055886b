package instrumentation

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/observe/otlp"
	"gateway/shared/pricing"
)

// TestUsageOfSpans holds both eras of names, and what senders make of them.
func TestUsageOfSpans(t *testing.T) {
	t.Parallel()
	type counts = map[pricing.Class]int64
	for name, c := range map[string]struct {
		attrs    map[string]any
		want     counts
		endpoint string
		provider string
		model    string
	}{
		"today's names": {map[string]any{"gen_ai.operation.name": "chat", "gen_ai.system": "openai", "gen_ai.provider.name": "openai", "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": int64(10),
			"gen_ai.usage.output_tokens": int64(5), "gen_ai.usage.cache_read.input_tokens": int64(4), "gen_ai.usage.cache_creation.input_tokens": int64(3)},
			counts{pricing.Input: 3, pricing.CacheRead: 4, pricing.CacheWrite5m: 3, pricing.Output: 5}, "chatComplete", "openai", "m"},
		"newer names": {map[string]any{"gen_ai.operation.name": "generate_content", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": int64(20), "gen_ai.usage.output_tokens": int64(9),
			"gen_ai.usage.cache_write.input_tokens": int64(2), "gen_ai.usage.cache_creation.input_tokens": int64(7), "gen_ai.usage.reasoning.output_tokens": int64(4), "gen_ai.usage.audio.input_tokens": int64(5), "gen_ai.usage.text.input_tokens": int64(13)},
			counts{pricing.Input: 13, pricing.CacheWrite5m: 2, pricing.AudioIn: 5, pricing.Output: 5, pricing.Reasoning: 4}, "chatComplete", "google", ""},
		"before the conventions": {map[string]any{"gen_ai.system": "Anthropic", "gen_ai.request.model": "m", "gen_ai.usage.prompt_tokens": "7", "gen_ai.usage.completion_tokens": 2.0},
			counts{pricing.Input: 7, pricing.Output: 2}, "chatComplete", "anthropic", ""},
		"names of an instrumentation": {map[string]any{"gen_ai.system": "anthropic", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.cache_read_input_tokens": int64(600),
			"gen_ai.usage.cache_creation_input_tokens": int64(300), "gen_ai.usage.output_tokens": int64(100)},
			counts{pricing.Input: 100, pricing.CacheRead: 600, pricing.CacheWrite5m: 300, pricing.Output: 100}, "chatComplete", "anthropic", ""},
		"both names of the cache": {map[string]any{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(10), "gen_ai.usage.cache_read_input_tokens": int64(6), "gen_ai.usage.cache_read.input_tokens": int64(6),
			"gen_ai.usage.cache_creation_input_tokens": int64(3), "gen_ai.usage.cache_creation.input_tokens": int64(3)},
			counts{pricing.Input: 1, pricing.CacheRead: 6, pricing.CacheWrite5m: 3, pricing.Output: 0}, "chatComplete", "", ""},
		"embeddings":         {map[string]any{"gen_ai.operation.name": "embeddings", "gen_ai.system": "az.ai.openai", "gen_ai.usage.input_tokens": int64(3)}, counts{pricing.Input: 3, pricing.Output: 0}, "embed", "azure-openai", ""},
		"an agent's run":     {map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": int64(100)}, counts{pricing.Input: 100, pricing.Output: 0}, "chatComplete", "", ""},
		"a tool":             {map[string]any{"gen_ai.operation.name": "execute_tool"}, counts{}, "", "", ""},
		"something else":     {map[string]any{"http.request.method": "GET"}, counts{}, "", "", ""},
		"absurd":             {map[string]any{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(-4), "gen_ai.usage.output_tokens": int64(math.MaxInt64), "gen_ai.usage.cache_read.input_tokens": "x"}, counts{}, "chatComplete", "", ""},
		"parts beyond whole": {map[string]any{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(4), "gen_ai.usage.cache_read.input_tokens": int64(9)}, counts{pricing.Input: 4, pricing.CacheRead: 9, pricing.Output: 0}, "chatComplete", "", ""},
	} {
		s := Read(&otlp.ReceivedSpan{Attrs: attrs(c.attrs)})
		got := counts{}
		for class := range pricing.NumClasses {
			if n, ok := s.Usage.Get(class); ok {
				got[class] = n
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || s.Endpoint != c.endpoint || s.Provider != c.provider || s.Model != c.model {
			t.Errorf("%s: %q %q %q\n%s", name, s.Endpoint, s.Provider, s.Model, diff)
		}
	}
}

// attrs are attributes in the order of their names.
func attrs(of map[string]any) (out []otlp.Attr) {
	for _, key := range sortedKeys(of) {
		out = append(out, otlp.Attr{Key: key, Value: of[key]})
	}
	return out
}

// Senders add the kind of model to the name of a provider, or have names of their own.
func TestProviderNamesOfSenders(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"openai": "openai", "openai.chat": "openai", "openai.responses": "openai", "openai.completion": "openai", "openai.embedding": "openai", "OpenAI.Chat": "openai",
		"anthropic": "anthropic", "anthropic.messages": "anthropic", "groq": "groq", "groq.chat": "groq", "xai.chat": "x-ai", "xai.responses": "x-ai", "x_ai": "x-ai",
		"mistral.chat": "mistral-ai", "mistral.embedding": "mistral-ai", "cohere.chat": "cohere", "cohere.textEmbedding": "cohere", "deepseek.chat": "deepseek", "perplexity": "perplexity-ai",
		"togetherai.chat": "together-ai", "fireworks.chat": "fireworks-ai", "moonshotai.chat": "moonshot", "cerebras.chat": "cerebras",
		"azure.chat": "azure-openai", "azure.responses": "azure-openai", "azure-openai.chat": "azure-openai", "azure.ai.openai": "azure-openai", "az.ai.openai": "azure-openai",
		"google.generative-ai": "google", "gcp.gemini": "google", "google.vertex.chat": "vertex-ai", "gcp.vertex_ai": "vertex-ai", "vertex.anthropic.messages": "vertex-ai",
		"amazon-bedrock": "bedrock", "aws.bedrock": "bedrock", "bedrock.anthropic.messages": "bedrock",
		"my.own": "my.own", "house.chat": "house", "chat": "chat", ".chat": ".chat", "": "",
	} {
		if got := providerCalled(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestReadReportsEveryField(t *testing.T) {
	t.Parallel()
	s := Read(&otlp.ReceivedSpan{
		Origin: []otlp.Attr{{Key: "service.name", Value: "shop"}}, Status: otlp.StatusError, Message: "too many",
		Attrs: attrs(map[string]any{"gen_ai.operation.name": "chat", "error.type": "429", "enduser.id": "ada", "session.id": "s1", "gen_ai.agent.id": "a1", "gateway.metadata.team": "blue", "gen_ai.request.stream": true,
			"gen_ai.response.time_to_first_chunk": 0.25, "gen_ai.response.finish_reasons": []any{"stop"}, "custom": int64(1), "gen_ai.input.messages": `[{"role":"user"}]`, "gen_ai.response.id": "r1", "gen_ai.request.model": "m"}),
		Events: []otlp.ReceivedEvent{{Name: "x", Attrs: attrs(map[string]any{"gen_ai.output.messages": []any{map[string]any{"role": "assistant"}}})}},
	})
	if s.Status != 429 || s.User != "ada" || s.Session != "s1" || s.Agent != "a1" || !s.Stream || s.FirstByte != 250*time.Millisecond || s.Finish != "stop" || s.LoggedHere {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(map[string]string{"_user": "ada", "team": "blue", "service.name": "shop"}, s.Metadata); diff != "" {
		t.Error(diff)
	}
	if got := string(s.Request()); got != `{"attributes":{"custom":1},"messages":[{"role":"user"}],"model":"m"}` {
		t.Error(got)
	}
	if got := string(s.Response()); got != `{"error":"too many","id":"r1","messages":[{"role":"assistant"}]}` {
		t.Error(got)
	}
	flat := Read(&otlp.ReceivedSpan{Attrs: attrs(map[string]any{"gen_ai.prompt.1.content": "b", "gen_ai.prompt.0.role": "user", "gen_ai.completion.0.content": "c"})})
	if string(flat.Request()) != `{"messages":[{"role":"user"},{"content":"b"}]}` || string(flat.Response()) != `{"messages":[{"content":"c"}]}` {
		t.Errorf("%s %s", flat.Request(), flat.Response())
	}
}

func FuzzRead(f *testing.F) {
	f.Add("gen_ai.usage.input_tokens", "7", int64(7), 1.5)
	f.Fuzz(func(t *testing.T, key, text string, n int64, x float64) {
		for _, v := range []any{text, n, x, []any{text}, map[string]any{text: n}, nil} {
			s := Read(&otlp.ReceivedSpan{Attrs: attrs(map[string]any{key: v, "gen_ai.operation.name": "chat"}), Events: []otlp.ReceivedEvent{{Name: key, Attrs: attrs(map[string]any{key: v})}}, Message: text, Status: otlp.StatusError})
			if !json.Valid(s.Request()) || !json.Valid(s.Response()) || s.Usage.InputTokens() < 0 || s.Status < 100 || s.Status > 599 {
				t.Errorf("%+v", s)
			}
		}
	})
}

package provider

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gateway/shared/chat"
)

func TestWhatModelsCannotDo(t *testing.T) {
	text := chat.Limits{NoTools: true, NoImages: true, NoDocuments: true, NoAudio: true}
	for _, c := range []struct {
		provider, model string
		want            chat.Limits
	}{
		{"openai", "gpt-4o", chat.Limits{NoAudio: true, NoThinking: true}},
		{"openai", "gpt-4o-audio-preview", chat.Limits{NoImages: true, NoThinking: true}},
		{"openai", "gpt-4", chat.Limits{NoImages: true, NoDocuments: true, NoAudio: true, NoThinking: true}},
		{"openai", "gpt-4-0314", chat.Limits{NoTools: true, NoImages: true, NoDocuments: true, NoAudio: true, NoJSON: true, NoThinking: true}},
		{"openai", "o1-mini", chat.Limits{NoTools: true, NoImages: true, NoDocuments: true, NoAudio: true, NoJSON: true, NoLogprobs: true}},
		{"openai", "o3", chat.Limits{NoAudio: true, NoLogprobs: true}},
		{"openai", "gpt-5", chat.Limits{}},
		{"openai", "gpt-4.5-preview", chat.Limits{}},
		{"openai", "ft:gpt-3.5-turbo:org", chat.Limits{}},
		{"azure-openai", "gpt-4", chat.Limits{}},
		{"anthropic", "claude-2.1", func() chat.Limits { l := text; l.NoThinking = true; return l }()},
		{"anthropic", "claude-3-5-haiku-latest", chat.Limits{NoAudio: true, NoThinking: true}},
		{"anthropic", "claude-3-7-sonnet-latest", chat.Limits{NoAudio: true}},
		{"anthropic", "claude-next", chat.Limits{NoAudio: true}},
		{"claude-platform-aws", "claude-3-opus-20240229", chat.Limits{NoAudio: true, NoThinking: true}},
		{"vertex-ai", "anthropic.claude-3-5-sonnet", chat.Limits{NoAudio: true, NoThinking: true}},
		{"vertex-ai", "google.gemini-2.0-flash", chat.Limits{NoThinking: true}},
		{"google", "models/gemini-2.5-flash-image", chat.Limits{NoTools: true, NoThinking: true}},
		{"google", "gemini-9", chat.Limits{}},
		{"bedrock", "us.meta.llama3-2-1b-instruct-v1:0", chat.Limits{NoImages: true, NoAudio: true, NoThinking: true}},
		{"bedrock", "us.meta.llama3-2-11b-instruct-v1:0", chat.Limits{}},
		{"bedrock", "arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-micro-v1:0", chat.Limits{NoImages: true, NoDocuments: true, NoAudio: true, NoThinking: true}},
		{"bedrock", "amazon.nova-pro-v1:0", chat.Limits{}},
		{"bedrock", "ai21.j2-mid-v1", func() chat.Limits { l := text; l.NoSeveral, l.NoJSON, l.NoThinking = true, true, true; return l }()},
		{"bedrock", "cohere.command-light-text-v14:7:4k", func() chat.Limits { l := text; l.NoJSON, l.NoThinking = true, true; return l }()},
		{"bedrock", "arn:aws:bedrock:us-east-1:1:application-inference-profile/x", chat.Limits{}},
		{"cohere", "command-a-reasoning-08-2025", chat.Limits{NoImages: true, NoAudio: true}},
		{"cohere", "command-a-vision-07-2025", chat.Limits{NoAudio: true, NoThinking: true}},
		{"cohere", "command-x", chat.Limits{}},
		{"groq", "llama-3.3-70b-versatile", chat.Limits{NoImages: true, NoDocuments: true, NoAudio: true, NoSeveral: true, NoLogprobs: true}},
		{"groq", "meta-llama/llama-4-scout-17b-16e-instruct", chat.Limits{NoSeveral: true, NoLogprobs: true}},
		{"mistral-ai", "mistral-medium-latest", chat.Limits{NoLogprobs: true}},
		{"perplexity-ai", "sonar-pro", chat.Limits{NoTools: true, NoAudio: true}},
		{"deepseek", "deepseek-chat", chat.Limits{NoImages: true, NoDocuments: true, NoAudio: true}},
		{"z-ai", "glm-4.6", chat.Limits{NoImages: true, NoAudio: true}},
		{"z-ai", "glm-4.6v", chat.Limits{}},
		{"together-ai", "meta-llama/Llama-3.3-70B-Instruct-Turbo", chat.Limits{NoImages: true, NoAudio: true}},
		{"together-ai", "Qwen/Qwen3-VL-32B-Instruct", chat.Limits{}},
		{"vllm", "Llama-3.3-70B-Instruct", chat.Limits{}},
		{"openrouter", "openai/gpt-4", chat.Limits{}},
		{"reka-ai", "reka-flash", chat.Limits{NoTools: true}},
	} {
		if got := row(t, c.provider).Traits(c.model).Limits; got != c.want {
			t.Errorf("%s %s: %+v", c.provider, c.model, got)
		}
		target := Target{Provider: row(t, c.provider)}
		if got := target.TraitsFor(context.Background(), c.model).Limits; got != c.want {
			t.Errorf("%s %s for a target: %+v", c.provider, c.model, got)
		}
	}
	for provider, model := range map[string]string{"openai": "gpt-3.5-turbo-0125", "deepseek": "deepseek-chat", "anthropic": "claude-2"} {
		if row(t, provider).Traits(model).Schema != chat.SchemaNone {
			t.Errorf("%s %s answers in a schema", provider, model)
		}
	}
}

// TestUnknownModelsAreNotRefused: a name that no row speaks of has no limits but
// those of its host.
func TestUnknownModelsAreNotRefused(t *testing.T) {
	hosts := map[string]chat.Limits{
		"groq": {NoSeveral: true, NoLogprobs: true}, "mistral-ai": {NoLogprobs: true}, "reka-ai": {NoTools: true}, "bytez": {NoTools: true},
		"palm": {NoTools: true, NoImages: true, NoDocuments: true, NoAudio: true, NoThinking: true},
	}
	for _, p := range All() {
		for _, model := range []string{"", "a-model-of-tomorrow", "maker/a-model-of-tomorrow", "a.model.of-tomorrow"} {
			if got := p.Traits(model).Limits; got != hosts[p.ID] {
				t.Errorf("%s %q: %+v", p.ID, model, got)
			}
		}
	}
}

func TestRulesAreReached(t *testing.T) {
	lists := map[string][]rule{"open models": openModels}
	for id, rules := range capabilities {
		if _, ok := ByID(id); !ok {
			t.Errorf("%s is no provider", id)
		}
		lists[id] = rules
	}
	for id := range openHosts {
		if _, ok := ByID(id); !ok {
			t.Errorf("%s is no provider", id)
		}
	}
	for id, rules := range lists {
		for i := range rules {
			for _, name := range rules[i].names {
				model := strings.TrimSuffix(name, "$")
				first := slices.IndexFunc(rules, func(r rule) bool { return r.fits(model) })
				if first != i {
					t.Errorf("%s: the row %d takes %q before its own row %d", id, first, name, i)
				}
			}
		}
	}
}

func TestLimitsCostNoMemory(t *testing.T) {
	p := row(t, "openai")
	body := []byte(strings.Repeat(`{"role":"user","content":"an image of tools"},`, 100))
	if n := testing.AllocsPerRun(100, func() {
		var traits chat.Traits
		p.limit(&traits, "gpt-4o-mini")
		if traits.MayExceed(body, nil) {
			t.Error("exceeds")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

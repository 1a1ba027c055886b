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
	for provider, model := range map[string]string{"openai": "gpt-3.5-turbo-0125", "anthropic": "claude-2"} {
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

// tomorrow are models that is unknown yet, of known makers and unknown ones.
var tomorrow = map[string][]string{
	"openai":              {"gpt-6", "gpt-6-omni", "gpt-4x", "o5", "o365-helper"},
	"azure-openai":        {"gpt-4-of-our-own", "o365-helper", "prod"},
	"azure-ai":            {"claude-ours", "prod"},
	"anthropic":           {"claude-9", "claude-opus-9", "claude-story-1"},
	"claude-platform-aws": {"claude-9", "claude-opus-9"},
	"bedrock": {
		"acme.model-1", "us.acme.model-1", "anthropic.claude-9", "eu.anthropic.claude-opus-9-v1:0", "anthropic.fable-9", "amazon.nova-9-pro", "meta.llama9-8b", "cohere.north-1",
		"ai21.jurassic-9", "mistral.next-1", "openai.gpt-9", "qwen.qwen9", "deepseek.v9", "google.gemma-9", "model-of-mine",
		"arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc", "arn:aws:bedrock:us-east-1:111122223333:imported-model/abc",
		"arn:aws:bedrock:us-east-1:111122223333:custom-model-deployment/abc", "arn:aws:bedrock:us-east-1::foundation-model/acme.model-1",
	},
	"bedrock-mantle": {"anthropic.claude-9", "acme.model-1"},
	"google":         {"gemini-9", "models/gemini-9-pro", "gemma-4-31b-it", "gemma-9", "tunedModels/mine"},
	"vertex-ai":      {"gemini-9", "google.gemma-9", "anthropic.claude-9", "meta.llama-9", "mistralai.next", "endpoints.1234"},
	"cohere":         {"command-rs", "command-z", "c4ai-north", "command-a-09-2027"},
	"deepseek":       {"deepseek-v9"},
	"groq":           {"maker/model"},
	"mistral-ai":     {"mistral-next", "ministral-9b"},
	"moonshot":       {"kimi-k9", "moonshot-v9"},
	"x-ai":           {"grok-9"},
	"zhipu":          {"glm-9", "glm-4.9"},
	"together-ai":    {"maker/llama-9", "maker/gemma-9-it"},
}

// TestUnknownModelsMeetNoGate tries every table of what models accept with names that are
// in none of them: nothing is rejected or omitted.
func TestUnknownModelsMeetNoGate(t *testing.T) {
	t.Parallel()
	hosts := map[string]chat.Limits{
		"groq": {NoSeveral: true, NoLogprobs: true}, "mistral-ai": {NoLogprobs: true}, "reka-ai": {NoTools: true}, "bytez": {NoTools: true},
		"palm":      {NoTools: true, NoImages: true, NoDocuments: true, NoAudio: true, NoThinking: true},
		"anthropic": {NoAudio: true}, "claude-platform-aws": {NoAudio: true}, // their wire has no audio
	}
	for _, p := range All() {
		for _, model := range append(tomorrow[p.ID], "a-model-of-tomorrow", "maker/a-model-of-tomorrow") {
			for _, own := range []string{"", "https://models.example.com"} {
				target := Target{Provider: p, Credential: sample(p), CustomHost: own}
				if p.ID == "azure-ai" {
					target.Credential.Fields["azure_foundry_url"] = "https://x.services.ai.azure.com/anthropic"
				}
				got := target.TraitsFor(context.Background(), model)
				want := hosts[p.ID]
				switch {
				case p.Dialect == AnthropicMessages && (own != "" || !strings.HasPrefix(model, "claude-")),
					p.ID == "groq" && own != "":
					want = chat.Limits{NoLogprobs: p.ID == "groq"}
				case p.ID == "vertex-ai" && strings.HasPrefix(model, "mistralai.") && own == "":
					want = chat.Limits{NoLogprobs: true}
				case p.ID == "vertex-ai" && strings.HasPrefix(model, "anthropic.") && own == "":
					want = chat.Limits{NoAudio: true}
				}
				if got.Limits != want {
					t.Errorf("%s %s at %q: %+v", p.ID, model, own, got.Limits)
				}
				if got.Schema == chat.SchemaNone || got.Thinking == chat.ThinksNever || got.Sampling != chat.SamplingFree || got.NoEffort || got.Efforts != "" {
					t.Errorf("%s %s at %q: schema %d, thinking %d, sampling %d, no effort %t", p.ID, model, own, got.Schema, got.Thinking, got.Sampling, got.NoEffort)
				}
				if (p.ID == "bedrock" || p.Dialect == AnthropicMessages || p.ID == "azure-ai") && (got.NoCacheControl || got.NoLongCache || got.NoStrictTools) {
					t.Errorf("%s %s at %q: cache, long cache or strict tools are left out", p.ID, model, own)
				}
			}
		}
	}
}

// TestNoTableHoldsForAHostOfTheCallers: what is certain of a model is certain at its maker,
// not at any host that uses the name.
func TestNoTableHoldsForAHostOfTheCallers(t *testing.T) {
	t.Parallel()
	for id, rules := range capabilities {
		p := row(t, id)
		if p.Dialect == "reka" || p.Dialect == "palm" || p.Dialect == "bytez" {
			continue // limits of their wires
		}
		for i := range rules {
			for _, name := range rules[i].names {
				model := strings.TrimSuffix(name, "$")
				if invoked(model + "-") {
					continue // of another wire
				}
				for _, target := range []Target{
					{Provider: p, Credential: sample(p), CustomHost: "https://models.example.com"},
					{Provider: p, Credential: Credential{Key: "k", Fields: sample(p).Fields, CustomHost: "https://models.example.com"}},
				} {
					got := target.TraitsFor(context.Background(), model)
					if got.Limits != (chat.Limits{NoLogprobs: p.Quirks.drops("logprobs")}) || got.Schema == chat.SchemaNone {
						t.Errorf("%s %s: %+v, schema %d", id, model, got.Limits, got.Schema)
					}
				}
			}
		}
	}
}

func TestWhatIsAHostOfTheCallers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, host string
		own            bool
	}{
		{"openai", "", false}, {"openai", "https://eu.api.openai.com/v1", false}, {"openai", "http://127.0.0.1:8000/v1", true}, {"openai", "https://llm.example.com", true},
		{"bedrock", "https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com", false}, {"bedrock", "https://models.example.com", true},
		{"anthropic", "https://api.anthropic.com.example.com", true}, {"vllm", "http://gpu:8000", true},
	} {
		if got := (&Target{Provider: row(t, c.provider), CustomHost: c.host}).ownHost(); got != c.own {
			t.Errorf("%s at %q: %t", c.provider, c.host, got)
		}
	}
	saved := Target{Provider: row(t, "huggingface"), Credential: Credential{Fields: map[string]string{"huggingface_base_url": "https://x.endpoints.example.com"}}}
	if !saved.ownHost() {
		t.Error("an endpoint of Hugging Face's own is none of the caller's")
	}
}

// TestVariantsWithVisionOrAudio: the beginning of a name says nothing about a variant whose
// name says what it accepts.
func TestVariantsWithVisionOrAudio(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, model string
		want            chat.Limits
	}{
		{"zhipu", "glm-4-voice", chat.Limits{NoImages: true}},
		{"z-ai", "glm-4-voice", chat.Limits{NoImages: true}},
		{"zhipu", "glm-4-plus", chat.Limits{NoImages: true, NoAudio: true}},
		{"nebius", "nvidia/Llama-3.1-Nemotron-Nano-VL-8B-V1", chat.Limits{NoAudio: true}},
		{"nebius", "nvidia/Llama-3.1-Nemotron-Ultra-253B-v1", chat.Limits{NoImages: true, NoAudio: true}},
		{"deepinfra", "nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL", chat.Limits{}},
		{"fireworks-ai", "accounts/fireworks/models/nemotron-nano-v2-12b-vl", chat.Limits{}},
		{"deepinfra", "maker/deepseek-v3-vision", chat.Limits{NoAudio: true}},
		{"siliconflow", "Qwen/Qwen3-30B-A3B-Omni", chat.Limits{}},
	} {
		if got := row(t, c.provider).Traits(c.model).Limits; got != c.want {
			t.Errorf("%s %s: %+v", c.provider, c.model, got)
		}
	}
	if got := row(t, "google").Traits("gemma-4-31b-it"); got.NoTools || got.Schema != chat.SchemaNative {
		t.Errorf("Gemma 4: %+v", got)
	}
}

package provider

import (
	"context"
	"testing"

	"gateway/shared/chat"
)

// TestRooms: each widened bound at the row that widens it, and nowhere else.
func TestRooms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, model, host string
		want                  chat.ExtendedLimits
	}{
		{"deepseek", "deepseek-chat", "", chat.ExtendedLimits{Stops: 16}},
		{"cohere", "command-a-03-2025", "", chat.ExtendedLimits{Stops: 5}},
		{"google", "gemini-2.5-pro", "", chat.ExtendedLimits{Stops: 5, Tools: 512}},
		{"vertex-ai", "gemini-2.5-pro", "", chat.ExtendedLimits{Stops: 5, Tools: 512}},
		{"vertex-ai", "anthropic.claude-sonnet-4-5", "", widenings["anthropic"]},
		{"vertex-ai", "mistralai.mistral-large", "", chat.ExtendedLimits{}},
		{"vertex-ai", "meta.llama-4", "", chat.ExtendedLimits{}},
		{"vertex-ai", "endpoints.123", "", chat.Unbounded},
		{"anthropic", "claude-sonnet-4-5", "", widenings["anthropic"]},
		{"claude-platform-aws", "claude-sonnet-4-5", "", widenings["anthropic"]},
		{"bedrock-mantle", "anthropic.claude-sonnet-4-5", "", widenings["anthropic"]},
		{"together-ai", "maker/model", "", chat.ExtendedLimits{CountedLogprobs: 20}},
		{"mistral-ai", "mistral-large-latest", "", chat.ExtendedLimits{}},
		{"openai", "gpt-4o", "", chat.ExtendedLimits{}},
		{"openai", "gpt-4o", "https://eu.api.openai.com/v1", chat.ExtendedLimits{}},
		{"openai", "gpt-4o", "http://gpu:8000/v1", chat.Unbounded},
		{"vllm", "m", "http://gpu:8000/v1", chat.Unbounded},
		{"ollama", "m", "http://gpu:11434", chat.Unbounded},
		{"bedrock", "anthropic.claude-sonnet-4-5", "", chat.ExtendedLimits{}},
		{"groq", "m", "", chat.ExtendedLimits{}},
	} {
		target := Target{Provider: row(t, c.provider), Credential: sample(row(t, c.provider)), CustomHost: c.host}
		if got := target.TraitsFor(context.Background(), c.model).Extended; got != c.want {
			t.Errorf("%s %s at %q: %+v", c.provider, c.model, c.host, got)
		}
	}
	for id := range widenings {
		if _, ok := ByID(id); !ok {
			t.Errorf("%s is no provider", id)
		}
	}
}

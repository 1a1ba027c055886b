package openai_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/testkit/golden"
)

// TestPromptCacheKeyIsOfTheConversation: the key that is made for a host that accepts one
// stays the same while a conversation continues, and is different for another
// conversation.
func TestPromptCacheKeyIsOfTheConversation(t *testing.T) {
	key := func(system, first, rest string) string {
		t.Helper()
		body := fmt.Sprintf(`{"model":"m","max_tokens":10,"system":%q,"messages":[{"role":"user","content":%q}%s]}`, system, first, rest)
		up := golden.Encode(t, anthropic.Messages{}, openai.Chat{}, body, chat.Traits{PromptCacheKey: true}, nil)
		var sent struct {
			Key string `json:"prompt_cache_key"`
		}
		if err := json.Unmarshal(up, &sent); err != nil || sent.Key == "" {
			t.Fatalf("no key (%v): %s", err, up)
		}
		return sent.Key
	}
	first := key("s", "a", "")
	if next := key("s", "a", `,{"role":"assistant","content":"b"},{"role":"user","content":"c"}`); next != first {
		t.Errorf("the key of the next turn is %q, not %q", next, first)
	}
	if other := key("s", "b", ""); other == first {
		t.Errorf("another conversation has the key %q too", other)
	}
	if other := key("t", "a", ""); other == first {
		t.Errorf("another system prompt has the key %q too", other)
	}
}

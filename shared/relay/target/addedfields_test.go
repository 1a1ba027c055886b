package target

import (
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
)

// The key for the prompt cache is only sent to the vendors' own hosts, which no test calls. This
// tests the memory of a rejection, and the fields omitted afterwards.
func TestARefusedCacheKeyIsLeftOut(t *testing.T) {
	t.Parallel()
	refusal := func(status int, message, param string) *fault.Fault {
		f := fault.New(fault.ProviderError, "", "refused").WithCause(&chat.ProviderError{Status: status, Message: message, Param: param})
		f.Source = fault.SourceProvider
		return f
	}
	for name, c := range map[string]struct {
		a       *fault.Fault
		own     bool // the client wrote the field itself
		refused added
	}{
		"by its words":          {refusal(400, "Unknown parameter: 'prompt_cache_key'.", ""), false, addedCacheKey},
		"by its parameter":      {refusal(422, "no", "prompt_cache_key"), false, addedCacheKey},
		"another member":        {refusal(400, "Unknown parameter: 'seed'.", "seed"), false, 0},
		"another status":        {refusal(500, "prompt_cache_key", ""), false, 0},
		"the client's own":      {refusal(400, "prompt_cache_key", ""), true, 0},
		"what was not added":    {refusal(400, "stream_options", ""), false, 0},
		"no answer of the host": {fault.New(fault.ProviderUnreachable, "", "x"), false, 0},
	} {
		call := newTarget(&Deps{})
		call.Req.Route = &routes.Route{BodyMode: routes.Unified, Client: anthropic.Messages{}}
		call.Choice.Target.Provider, _ = provider.ByID("openai")
		call.Choice.Dialect, call.Choice.Traits.PromptCacheKey = openai.Chat{}, true
		call.Decoded = &chat.Request{}
		if c.own {
			call.Decoded.Extra = append(call.Decoded.Extra, chat.Field{Name: "prompt_cache_key", Raw: []byte(`"k"`)})
		}
		if got := call.RejectedFields(c.a); got != c.refused {
			t.Errorf("%s: %b, want %b", name, got, c.refused)
			continue
		}
		call.Choice.leaveOut(c.refused)
		if call.Choice.Traits.PromptCacheKey == (c.refused != 0) {
			t.Errorf("%s: the key is sent: %v", name, call.Choice.Traits.PromptCacheKey)
		}
	}
}

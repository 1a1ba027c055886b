package provider

import (
	"math"

	"gateway/shared/chat"
)

// Hosts with limits wider than the specification's. Each row names its source. Other hosts have
// the specification's limits.
var rooms = map[string]chat.ExtendedLimits{
	// "Up to 16 sequences": api-docs.deepseek.com, Create Chat Completion, stop.
	"deepseek": {Stops: 16},
	// "A list of up to 5 strings": docs.cohere.com, Chat, stop_sequences.
	"cohere": {Stops: 5},
	// "Up to 5": ai.google.dev, GenerationConfig, stopSequences. "At most 512 function
	// declarations can be specified": the Gemini API's own refusal, as in
	// github.com/google-gemini/gemini-cli/issues/19083 and 25440. "Maximum 512 function
	// declarations can be provided": Vertex AI, REST reference, Tool (older ones say 64
	// and 128).
	"google":    {Stops: 5, Tools: 512},
	"vertex-ai": {Stops: 5, Tools: 512},
	// The Messages API does not bound its lists: docs.anthropic.com, Create a Message.
	"anthropic":           {Tools: math.MaxInt},
	"claude-platform-aws": {Tools: math.MaxInt},
	// "Integer that controls the number of top logprobs, 0 to 20": docs.together.ai,
	// Create Chat Completion, logprobs.
	"together-ai": {CountedLogprobs: 20},
}

// room returns how much wider than the specification the target's limits are.
func (t *Target) room(model string) chat.ExtendedLimits {
	switch {
	case t.ownHost():
		return chat.Unbounded
	case t.DialectOf(Chat, model) == AnthropicMessages:
		return rooms["anthropic"] // for any host of Claude
	case t.Provider.ID == "vertex-ai":
		switch publisher, _ := vertexModel(model); publisher {
		case "mistralai":
			return chat.ExtendedLimits{}
		case "endpoints":
			return chat.Unbounded // a caller's own machine
		case "meta":
			return chat.ExtendedLimits{}
		}
	}
	return rooms[t.Provider.ID]
}

// Package promptruns is the family that uses saved prompts: it renders them and sends the
// result to models.
package promptruns

import (
	"gateway/shared/dialect/openai"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// completions is the scope of calls of models.
const completions = "completions.write"

// Routes are the family's routes.
func Routes() []relay.Route {
	chat := relay.Route{
		Method: "POST", Path: "/prompts/{promptId}/completions", Endpoint: "chatComplete", Shape: relay.Unified, Scope: completions,
		Client: openai.Chat{}, Operation: provider.Chat,
	}
	text := chat
	text.Endpoint, text.Client, text.Operation = "complete", openai.Completions{}, provider.Completions
	asking := relay.Route{
		Method: "POST", Path: "/prompts/{promptId}/completions", Endpoint: "promptCompletions", Shape: relay.Unified, Scope: completions,
		Errors: openai.Chat{}, Handler: &relay.Prompt{Chat: &chat, Completion: &text},
	}
	return []relay.Route{
		asking,
		{
			Method: "POST", Path: "/prompts/{promptId}/test", Endpoint: "promptTest", Shape: relay.Unified, Scope: completions, MaxBody: 1 << 20,
			NoModel: true, Free: true, NoOutput: true, Errors: openai.Chat{}, Handler: &relay.Composed{Of: &asking, Answer: test},
		},
		{
			Method: "POST", Path: "/prompts/{promptId}/render", Endpoint: "promptRender", Shape: relay.Unified, Scope: "prompts.render",
			NoModel: true, Free: true, NoOutput: true, Handler: &relay.Prompt{Render: true},
		},
	}
}

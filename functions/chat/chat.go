// Package chat is the family of chat and text completions in the OpenAI shape.
package chat

import (
	"gateway/shared/dialect/openai"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{
		{
			Method: "POST", Path: "/chat/completions", Endpoint: "chatComplete", BodyMode: relay.Unified, Scope: "completions.write",
			Client: openai.Chat{}, Operation: provider.Chat,
		},
		{
			Method: "POST", Path: "/completions", Endpoint: "complete", BodyMode: relay.Unified, Scope: "completions.write",
			Client: openai.Completions{}, Operation: provider.Completions,
		},
	}
}

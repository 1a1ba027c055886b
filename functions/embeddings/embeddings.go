// Package embeddings is the family of embeddings in the OpenAI shape.
package embeddings

import (
	"gateway/shared/dialect/openai"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{{
		Method: "POST", Path: "/embeddings", Endpoint: "embed", BodyMode: relay.Unified, Scope: "completions.write",
		Operation: provider.Embeddings, Check: openai.CheckEmbeddings, Meter: openai.MeterEmbeddings, NoOutput: true,
	}}
}

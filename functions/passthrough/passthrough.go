// Package passthrough is the family of all provider paths that no other family
// takes: path, query, body and answer are forwarded byte for byte. The conversations of
// Gemini's, Bedrock's and Cohere's own clients are translated for targets that speak
// another shape.
package passthrough

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes: every path below the base URL, and below
// /proxy for paths that the gateway's own routes shadow.
func Routes() []relay.Route {
	return []relay.Route{{
		Methods: []string{"POST", "GET", "PUT", "DELETE"}, Path: relay.AnyPath,
		Endpoint: "proxy", Shape: relay.Raw, Scope: "completions.write",
		Native: []relay.Route{
			native("/v1beta/models/{model+}:generateContent", gemini.Generate{}, false),
			native("/v1beta/models/{model+}:streamGenerateContent", gemini.Generate{}, true),
			native("/model/{model+}/converse", converse.Converse{}, false),
			native("/model/{model+}/converse-stream", converse.Converse{}, true),
			native("/v2/chat", cohere.Chat{}, false),
		},
	}}
}

// native is a conversation of clients that speak a provider's own shape: Gemini's,
// Bedrock's and Cohere's.
func native(path string, client chat.Spoken, streams bool) relay.Route {
	return relay.Route{
		Method: "POST", Path: path, Endpoint: "chatComplete", Shape: relay.Unified, Scope: "completions.write",
		Client: client, Operation: provider.Chat, Streams: streams,
	}
}

// Package passthrough is the family of all provider paths that no other family
// takes: path, query, body and answer are forwarded byte for byte. The conversations of
// Gemini's, Bedrock's and Cohere's own clients are translated for targets that speak
// another shape.
package passthrough

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/relay/response"
)

// Routes are the family's routes: every path below the base URL, and below
// /proxy for paths that the gateway's own routes shadow.
func Routes() []relay.Route {
	return []relay.Route{{
		Methods: []string{"POST", "GET", "PUT", "DELETE"}, Path: relay.AnyPath,
		Endpoint: "proxy", BodyMode: relay.Raw, Scope: "completions.write",
		Native: []relay.Route{
			native("/v1beta/models/{model+}:generateContent", gemini.Generate{}, false),
			native("/v1beta/models/{model+}:streamGenerateContent", gemini.Generate{}, true),
			countTokens("/v1beta/models/{model+}:countTokens"),
			native("/model/{model+}/converse", converse.Converse{}, false),
			native("/model/{model+}/converse-stream", converse.Converse{}, true),
			native("/v2/chat", cohere.Chat{}, false),
		},
	}}
}

// native is a conversation of clients that speak a provider's own shape: Gemini's,
// Bedrock's and Cohere's.
func native(path string, client chat.TwoWayDialect, streams bool) relay.Route {
	return relay.Route{
		Method: "POST", Path: path, Endpoint: "chatComplete", BodyMode: relay.Unified, Scope: "completions.write",
		Client: client, Operation: provider.Chat, Streams: streams,
	}
}

// countTokens is how Gemini's clients count. Google answers itself; for other targets the
// gateway estimates.
func countTokens(path string) relay.Route {
	return relay.Route{
		Method: "POST", Path: path, Endpoint: "messagesCountTokens", BodyMode: relay.Unified, Scope: "completions.write",
		Errors: gemini.Generate{}, Operation: provider.GeminiCountTokens, NoOutput: true, Free: true, Local: estimate, Meter: nothing,
	}
}

// nothing is what counting uses.
func nothing([]byte) chat.Meter {
	m := chat.Meter{Complete: true, Started: true}
	m.Usage.Set(pricing.Input, 0)
	return m
}

// estimate counts the tokens of a body of :countTokens. The response reports that it is no count of
// Google's.
func estimate(body []byte) ([]byte, error) {
	r, err := gemini.DecodeCounted(body)
	if err != nil {
		return nil, err
	}
	out := strconv.AppendInt([]byte(`{"totalTokens":`), response.EstimateTokens(r), 10)
	return append(out, `,"estimated":true}`...), nil
}

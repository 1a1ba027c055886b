// Package messages is the family of conversations in the Anthropic shape.
package messages

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/relay/response"
)

// Routes are the family's routes, without the loop of package tools.
func Routes() []relay.Route {
	return []relay.Route{
		{
			Method: "POST", Path: "/messages", Endpoint: "messages", BodyMode: relay.Unified, Scope: "completions.write",
			Client: anthropic.Messages{}, Verbatim: true, Operation: provider.Messages,
		},
		{
			Method: "POST", Path: "/messages/count_tokens", Endpoint: "messagesCountTokens", BodyMode: relay.Unified, Scope: "completions.write",
			Errors: anthropic.Messages{}, Verbatim: true, Operation: provider.MessagesCountTokens, Check: anthropic.CheckCount, NoOutput: true, Free: true, Local: estimate, Meter: nothing,
		},
	}
}

// nothing is what counting uses.
func nothing([]byte) chat.Meter {
	m := chat.Meter{Complete: true, Started: true}
	m.Usage.Set(pricing.Input, 0)
	return m
}

// estimate counts tokens for providers that cannot. The response says that it is an estimate:
// {"input_tokens":n,"estimated":true}.
func estimate(body []byte) ([]byte, error) {
	r, err := anthropic.Messages{}.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	out := strconv.AppendInt([]byte(`{"input_tokens":`), response.EstimateTokens(r), 10)
	return append(out, `,"estimated":true}`...), nil
}

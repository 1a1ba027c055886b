// Package messages is the family of conversations in the Anthropic shape.
package messages

import (
	"gateway/shared/dialect/anthropic"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{{
		Method: "POST", Path: "/messages", Endpoint: "messages", Shape: relay.Unified, Scope: "completions.write",
		Client: anthropic.Messages{}, Operation: provider.Messages,
	}}
}

// Package responses is the family of conversations in the shape of OpenAI's
// responses.
package responses

import (
	"gateway/shared/dialect/responses"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return append([]relay.Route{{
		Method: "POST", Path: "/responses", Endpoint: "createModelResponse", Shape: relay.Unified, Scope: "completions.write",
		Client: responses.Responses{}, Operation: provider.ResponsesCreate,
	}}, stored()...)
}

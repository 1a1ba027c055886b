package relay

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// prompted tells whether a request names no model because the prompt that its
// provider keeps does: a body of responses with a prompt.
func (ch *chooser) prompted() bool {
	return ch.Route.Client != nil && ch.Route.Client.Name() == provider.OpenAIResponses && ch.to.model == "" && ch.Has("prompt")
}

// needsModel refuses a request without a model, where nobody else names it.
func (ch *chooser) needsModel() error {
	if ch.to.model == "" && !ch.Nameless() && !ch.prompted() {
		return fault.Invalid("model", "is required")
	}
	return nil
}

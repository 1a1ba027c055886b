package chosen

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// prompted tells whether a Responses request names no model because it names a prompt that
// its provider keeps, and that prompt has one.
func (ch *Chooser) prompted() bool {
	return ch.Route.Client != nil && ch.Route.Client.Name() == provider.OpenAIResponses && ch.To.Model == "" && ch.Has("prompt")
}

// needsModel refuses a request without a model, where nobody else names it.
func (ch *Chooser) needsModel() error {
	if ch.To.Model == "" && !ch.Nameless() && !ch.prompted() {
		return fault.Invalid("model", "is required")
	}
	return nil
}

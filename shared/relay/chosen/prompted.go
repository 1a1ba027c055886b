package chosen

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// prompted tells whether a Responses request names no model because it names a prompt that
// its provider keeps, and that prompt has one.
func (ch *Chooser) prompted() bool {
	return ch.Target.Req.Route.Client != nil && ch.Target.Req.Route.Client.Name() == provider.OpenAIResponses && ch.Target.To.Model == "" && ch.Target.Body.Has("prompt")
}

// needsModel refuses a request without a model, where nobody else names it.
func (ch *Chooser) needsModel() error {
	if ch.Target.To.Model == "" && !ch.Target.Body.Nameless() && !ch.prompted() {
		return fault.Invalid("model", "is required")
	}
	return nil
}

package target

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// prompted tells whether a Responses request names no model because it names a prompt that
// its provider keeps, and that prompt has one.
func prompted(tg *Target) bool {
	return tg.Req.Route.Client != nil && tg.Req.Route.Client.Name() == provider.OpenAIResponses && tg.To.Model == "" && tg.Body.Has("prompt")
}

// needsModel refuses a request without a model, where nobody else names it.
func needsModel(tg *Target) error {
	if tg.To.Model == "" && !tg.Body.Nameless() && !prompted(tg) {
		return fault.Invalid("model", "is required")
	}
	return nil
}

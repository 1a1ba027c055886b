package target

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// prompted reports whether a Responses request names no model because it names a prompt stored
// at its provider, which has one.
func prompted(tg *Target) bool {
	return tg.Req.Route.Client != nil && tg.Req.Route.Client.Name() == provider.OpenAIResponses && tg.To.Model == "" && tg.Body.Has("prompt")
}

// needsModel rejects a request without a model, unless the model is determined elsewhere.
func needsModel(tg *Target) error {
	if tg.To.Model == "" && !tg.Body.Nameless() && !prompted(tg) {
		return fault.Invalid("model", "is required")
	}
	return nil
}

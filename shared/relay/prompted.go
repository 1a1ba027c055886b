package relay

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
)

// prompted tells whether a request names no model because the prompt that its
// provider keeps does: a body of responses with a prompt.
func (c *call) prompted() bool {
	return c.rt.Client != nil && c.rt.Client.Name() == provider.OpenAIResponses && c.to.model == "" && c.checked.Span("prompt").Present(c.in)
}

// needsModel refuses a request without a model, where nobody else names it.
func (c *call) needsModel() error {
	if c.to.model == "" && !c.nameless() && !c.prompted() {
		return fault.Invalid("model", "is required")
	}
	return nil
}

package relay

import (
	"gateway/shared/dialect/citation"
	"gateway/shared/provider"
)

// adapt is Target.Adapt, without the citations of other providers in a Messages body, which no
// host of Claude accepts. dropped are the paths of the omitted fields. body is a valid JSON
// object in dialect.
func adapt(t *provider.Target, op provider.Operation, dialect, model string, body []byte) (adapted []byte, dropped []string) {
	var theirs []string
	if dialect == provider.AnthropicMessages {
		body, theirs = citation.Unsigned(body)
	}
	adapted, dropped = t.Adapt(op, dialect, model, body)
	return adapted, append(theirs, dropped...)
}

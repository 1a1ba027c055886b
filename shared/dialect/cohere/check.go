package cohere

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

var keys = wire.NewKeySet("model", "messages", "stream", "max_tokens", "temperature")

// check tests that a body is an object with a model and messages.
func check(body []byte, c *chat.Checked) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i, want := range [...]wire.Kind{wire.KindString, wire.KindArray, wire.KindBool, wire.KindNumber, wire.KindNumber} {
		key, span := keys.Keys()[i], c.Walk.Spans[i]
		switch {
		case !span.Present(body) && i < 2:
			return fault.Invalid(key, "%s is required", key)
		case span.Present(body) && wire.KindOf(span.Of(body)) != want:
			return fault.Invalid(key, "%s must be %s, not %s", key, want, wire.KindOf(span.Of(body)))
		}
	}
	return nil
}

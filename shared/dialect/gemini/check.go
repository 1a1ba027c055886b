package gemini

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

var keys = wire.NewKeySet("contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings")

var kinds = [...]wire.Kind{wire.KindArray, wire.KindObject, wire.KindArray, wire.KindObject, wire.KindObject, wire.KindArray}

// check tests that a body is a request: the members that count have their type.
func check(body []byte, c *chat.Checked) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i, key := range keys.Keys() {
		span := c.Walk.Spans[i]
		if !span.Present(body) {
			if key == "contents" {
				return fault.Invalid(key, "%s is required", key)
			}
			continue
		}
		if got := wire.KindOf(span.Of(body)); got != kinds[i] {
			return fault.Invalid(key, "%s must be %s, not %s", key, kinds[i], got)
		}
	}
	return nil
}

package converse

import (
	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

var keys = wire.NewKeySet("messages", "system", "inferenceConfig", "toolConfig", "additionalModelRequestFields")

var kinds = [...]wire.Kind{wire.KindArray, wire.KindArray, wire.KindObject, wire.KindObject, wire.KindObject}

// Check implements chat.RequestReader: the members that count have their type.
func (Converse) Check(body []byte, c *chat.Checked) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i, key := range keys.Keys() {
		span := c.Walk.Spans[i]
		switch {
		case !span.Present(body) && key == "messages":
			return fault.Invalid(key, "%s is required", key)
		case span.Present(body) && !wire.IsNull(span.Of(body)) && wire.KindOf(span.Of(body)) != kinds[i]:
			return fault.Invalid(key, "%s must be %s, not %s", key, kinds[i], wire.KindOf(span.Of(body)))
		}
	}
	return nil
}

var streamType = []string{"application/vnd.amazon.eventstream"}

// StreamType implements chat.FramedWriter.
func (Converse) StreamType() []string { return streamType }

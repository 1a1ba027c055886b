package relay

import "gateway/shared/chat"

// remember keeps the signed reasoning of an answer whose client cannot return it.
func (c *call) remember(signed []chat.Signed) {
	if !c.strict() {
		return
	}
	for _, s := range signed {
		if err := c.memory.Put(c.ctx, c.who.Scope, s); err != nil {
			c.fail("remember reasoning", err)
		}
	}
}

// recall is given to the dialect that encodes the next turn.
func (c *call) recall(toolCallID string) []chat.Part {
	parts, err := c.memory.Get(c.ctx, c.who.Scope, toolCallID)
	if err != nil {
		c.fail("recall reasoning", err)
	}
	return parts
}

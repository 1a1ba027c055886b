package relay

import (
	"gateway/shared/chat"
)

// effective makes the body that the target's config makes of the client's, and
// goes by it from here on: whether the answer is a stream, whether usage is told
// in it, and what it may cost.
func (c *call) effective() error {
	c.demands = c.own
	if len(c.in) == 0 || c.to.leaf.Plain() {
		return c.withinBounds(c.checked.Excess)
	}
	body, err := c.to.leaf.Apply(nil, c.in)
	if err != nil {
		return err
	}
	c.to.body = body
	if c.rt.Shape != Unified {
		return nil
	}
	if c.rt.Client != nil {
		// What a config makes of a body keeps to the same bounds.
		checked := chat.Checked{ByTarget: true}
		if err := c.rt.Client.Check(body, &checked); err != nil {
			return err
		}
		if err := c.withinBounds(checked.Excess); err != nil {
			return err
		}
	}
	if err := bodyKeys.Walk(body, &c.edited); err != nil {
		return err
	}
	c.demands = c.demandsOf(body, &c.edited, c.rt.Demand)
	return nil
}

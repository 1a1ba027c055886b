package relay

// admit takes the request up to the point where a target may be called: known
// caller, well-formed headers and body, a resolved route, rates counted.
func admit(c *call) error {
	if err := c.req.Admit(); err != nil {
		return err
	}
	if err := c.body.Read(); err != nil {
		return err
	}
	if c.req.Route.Protocol != nil {
		return nil // nothing is routed, and the protocol itself says what is counted
	}
	if wantsTools(c) {
		return nil // each call of the model is a request of its own, which is routed and counted
	}
	if err := c.plan.Resolve(c.relay.sources); err != nil {
		return err
	}
	c.target.Demands = c.body.Own
	if c.req.Route.Turns != "" || c.req.Route.Opens() || c.req.Settles() {
		return c.bill.ReadPolicies() // a session's responses are counted instead; what was begun before is counted already
	}
	return c.bill.CountRequest()
}

package relay

// admit takes the request up to the point where a target may be called: known
// caller, well-formed headers and body, a resolved route, rates counted.
func (c *call) admit() error {
	if err := c.Admit(); err != nil {
		return err
	}
	if err := c.Read(); err != nil {
		return err
	}
	if c.Route.Protocol != nil {
		return nil // nothing is routed, and the protocol itself says what is counted
	}
	if c.wantsTools() {
		return nil // each call of the model is a request of its own, which is routed and counted
	}
	if err := c.Resolve(c.sources); err != nil {
		return err
	}
	c.Demands = c.Own
	if c.Route.Turns != "" || c.Route.Opens() || c.Settles() {
		return c.ReadPolicies() // a session's responses are counted instead; what was begun before is counted already
	}
	return c.CountRequest()
}

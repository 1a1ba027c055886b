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
		return nil // nothing is routed, and what counts the protocol says
	}
	if c.wantsTools() {
		return nil // likewise, for its parts
	}
	if err := c.Resolve(c.sources); err != nil {
		return err
	}
	c.Demands = c.Own
	if c.Route.Turns != "" || c.Route.Opens() || c.Settles() {
		return c.ReadPolicies() // its responses are counted; what is settled has been
	}
	return c.CountRequest()
}

package relay

// admit finds the caller and reads headers and body. What else is needed before a target is called
// depends on the handler of the route.
func admit(c *call) error {
	if err := c.req.Admit(); err != nil {
		return err
	}
	if err := c.body.Read(); err != nil {
		return err
	}
	return nil
}

// planned finds the targets of the request and counts it against rates. counted is false for a
// connection whose messages are counted instead; what ends work that was counted before is not
// counted again.
func planned(c *call, counted bool) error {
	if err := c.plan.Resolve(c.relay.sources); err != nil {
		return err
	}
	c.target.Demands = c.body.Own
	if !counted || c.req.Settles() {
		return c.bill.ReadPolicies()
	}
	return c.bill.CountRequest()
}

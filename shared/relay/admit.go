package relay

// admit authenticates the caller and reads headers and body. The further steps before a target
// is called depend on the handler of the route.
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
// connection with messages that are counted instead; a request that settles earlier work was
// counted with that.
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

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
	if err := c.Resolve(c.sources); err != nil {
		return err
	}
	c.Demands = c.Own
	return c.countRequest()
}

// countRequest counts the request against the rates of key and workspace.
func (bk *books) countRequest() error {
	return bk.purse.CountRequest(bk.Ctx, bk.Ledger, bk.Who.Subject, bk.WS.Subject)
}

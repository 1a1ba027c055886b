package relay

import "gateway/shared/ledger"

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
	if err := c.Resolve(c.sources); err != nil {
		return err
	}
	c.Demands = c.Own
	return c.countRequest()
}

// countRequest counts the request against the rates of key, workspace and policies.
func (bk *books) countRequest() error {
	if err := bk.readPolicies(); err != nil {
		return err
	}
	return bk.purse.CountRequest(bk.Ctx, bk.Ledger, bk.Who.KeyID, append([]*ledger.Subject{bk.Who.Subject, bk.WS.Subject}, bk.early...)...)
}

package relay

import (
	"gateway/shared/relay/asked"
)

// admit takes the request up to the point where a target may be called: known
// caller, well-formed headers and body, a resolved route, rates counted.
func (c *call) admit() error {
	if err := c.Identify(); err != nil {
		// The trace id is sent back even to callers that are refused.
		c.Ask.TraceID, _ = asked.Identifier(c.Req.Header, asked.TraceID, asked.MaxTraceID)
		c.Trace()
		return err
	}
	headerErr := c.Ask.Read(c.Req.Header)
	c.Trace()
	if headerErr != nil {
		return headerErr
	}
	if err := c.Read(); err != nil {
		return err
	}
	c.Demands = c.Own
	if err := c.Resolve(c.sources); err != nil {
		return err
	}
	return c.countRequest()
}

// countRequest counts the request against the rates of key and workspace.
func (bk *books) countRequest() error {
	return bk.purse.CountRequest(bk.Ctx, bk.Ledger, bk.Who.Subject, bk.WS.Subject)
}

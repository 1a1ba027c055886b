package relay

import "gateway/shared/relay/target"

// rotates reports whether the target is called again because another of its credentials can
// take the place of the one that the provider refused or limited. Each credential is tried at
// most once before the target counts as failed.
func rotates(c *call, a *answer) bool {
	switch {
	case c.reply.headSent || c.out.bodySpent || a.connectFailed():
		return false // nothing can be sent again, or nothing was said of the credential
	case c.req.Req.Context().Err() != nil || c.bill.CoverAgain() != nil:
		return false
	}
	return target.NextCredential(&c.target, a.status())
}

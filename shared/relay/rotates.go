package relay

import "gateway/shared/relay/target"

// rotates reports whether the target is called again because another of its credentials can
// replace the one that the provider rejected or limited. Each credential is tried at most once
// before the target counts as failed.
func rotates(c *call, a *answer) bool {
	switch {
	case !target.Rotates(&c.target, a.status()):
		return false // before the budget is asked to cover another call
	case c.reply.headSent || c.out.bodySpent || a.connectFailed():
		return false // the request cannot be repeated, or the credential was not judged
	case c.req.Req.Context().Err() != nil || c.req.Ctx.Err() != nil || c.bill.CoverAgain() != nil:
		return false
	}
	return target.NextCredential(&c.target, a.status())
}

package relay

// askAgain retries at a host that rejected added parameters without them, once for each. ok is
// false if there were none to omit.
func askAgain(c *call, a *answer) (again answer, body []byte, ok bool) {
	if a.fault == nil {
		return *a, nil, false
	}
	again = *a
	left := c.target.RefusedAdded(nil)
	for again.fault != nil && !c.reply.headSent && !c.out.bodySpent && !again.refused() {
		refused := c.target.RefusedAdded(again.fault)
		if refused == 0 {
			break
		}
		before := c.target.To
		c.target.LeaveOut(refused)
		plain, err := upstreamBody(c.relay, &c.target, &c.out, &c.log)
		if err != nil { // the target requires it: its rejection remains
			c.target.To = before
			if restored, err := upstreamBody(c.relay, &c.target, &c.out, &c.log); err == nil { // the attempt may have overwritten it
				body, ok = restored, true
			}
			break
		}
		again.drop()
		again, body, ok = attempt(c, plain), plain, true
		left |= refused
	}
	if ok && (again.fault == nil || c.reply.headSent) {
		c.target.LearnRefused(left)
	}
	return again, body, ok
}

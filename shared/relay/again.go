package relay

// askAgain asks a host that refused what was added again without it, each of it once.
// ok is false when there was nothing to leave out.
func (x *exchanges) askAgain(a *answer) (again answer, body []byte, ok bool) {
	if a.fault == nil {
		return *a, nil, false
	}
	again = *a
	left := x.RefusedAdded(nil)
	for again.fault != nil && !x.headSent && !x.bodySpent && !again.refused() {
		refused := x.RefusedAdded(again.fault)
		if refused == 0 {
			break
		}
		before := x.To
		x.LeaveOut(refused)
		plain, err := x.upstreamBody()
		if err != nil { // without it the target cannot be asked: its refusal stands
			x.To = before
			if restored, err := x.upstreamBody(); err == nil { // the attempt may have written over it
				body, ok = restored, true
			}
			break
		}
		again.drop()
		again, body, ok = x.attempt(plain), plain, true
		left |= refused
	}
	if ok && (again.fault == nil || x.headSent) {
		x.LearnRefused(left)
	}
	return again, body, ok
}

package relay

// askAgain asks a host that refused what was added once more, without it. ok is
// false when there is nothing to leave out.
func (x *exchanges) askAgain(a *answer) (again answer, body []byte, ok bool) {
	if a.fault == nil || x.bodySpent || a.refused() {
		return *a, nil, false
	}
	refused := x.RefusedAdded(a.fault)
	if refused == 0 {
		return *a, nil, false
	}
	x.LeaveOut(refused)
	body, err := x.upstreamBody()
	if err != nil {
		return *a, nil, false
	}
	a.drop()
	again = x.attempt(body)
	if again.fault == nil || x.headSent {
		x.LearnRefused(refused)
	}
	return again, body, true
}

package metered

import (
	"net/http"

	"gateway/shared/pricing"
	"gateway/shared/relay/came"
	"gateway/shared/relay/tail"
)

// estimates tells whether unreported usage is guessed: it is when a budget is in force,
// which may be settled at an estimate but never at nothing.
func (me *Meters) estimates() bool {
	return me.Purse.Holds() && me.OutBound > 0 && me.Model != "" && me.Req.Method == http.MethodPost
}

// LearnRaw takes over what a passed-through answer reported. Elsewhere than on the
// paths that meterRaw knows, usage that is not reported is not guessed: the paths
// of pass-through have no common shape.
func (me *Meters) LearnRaw(m *tail.Meter, status int) {
	var u pricing.Usage
	unread := m.Unpack()
	if status >= 200 && status < 300 {
		got := me.meterRaw(m)
		me.Heard.Hear(got)
		if got.Model != "" && me.To.Model == "" {
			me.Heard.Priced = got.Model
		}
		me.Heard.Finish = got.Finish
		var told bool
		if u, told = me.usedRaw(m, got); !told || u.Known() && u == got.Usage {
			if came, ok := me.cutRaw(m); ok {
				u, told = came, true
			}
		}
		if !told && me.estimates() {
			made := came.Tokens(int(m.Total))
			if unread {
				made = min(10*made, me.OutBound) // text shrinks to a tenth at most
			}
			u = me.Estimate(made)
		}
	}
	u.Add(pricing.Requests, 1)
	me.Charge(u)
	if me.Purse.Cost > 0 && me.CostsNothing() {
		me.Spend() // of a run that has ended
	}
}

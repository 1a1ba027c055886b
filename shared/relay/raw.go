package relay

import (
	"net/http"

	"gateway/shared/pricing"
	"gateway/shared/relay/came"
	"gateway/shared/relay/tail"
)

// learnRaw takes over what a passed-through answer reported. Elsewhere than on the
// paths that meterRaw knows, usage that is not reported is not guessed: the paths
// of pass-through have no common shape.
func (me *meters) learnRaw(m *tail.Meter, status int) {
	var u pricing.Usage
	unread := m.Unpack()
	if status >= 200 && status < 300 {
		got := me.meterRaw(m)
		me.heard.hear(got)
		if got.Model != "" && me.To.Model == "" {
			me.heard.priced = got.Model
		}
		me.heard.finish = got.Finish
		var told bool
		if u, told = me.usedRaw(m, got); !told || u.Known() && u == got.Usage {
			if came, ok := me.cutRaw(m); ok {
				u, told = came, true
			}
		}
		if !told && me.purse.Holds() && me.OutBound > 0 && me.Model != "" && me.Req.Method == http.MethodPost {
			// A budget is in force: it is settled at an estimate, never at nothing.
			made := came.Tokens(int(m.Total))
			if unread {
				made = min(10*made, me.OutBound) // text shrinks to a tenth at most
			}
			u = me.estimate(made)
		}
	}
	u.Add(pricing.Requests, 1)
	me.charge(u)
	if me.purse.Cost > 0 && me.CostsNothing() {
		me.spend() // of a run that has ended
	}
}

package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/came"
)

// madeWhole adds an estimate to usage within which an answer broke off.
func (me *Meters) madeWhole(u pricing.Usage, m chat.Meter) pricing.Usage {
	if e := me.Estimate(0); u.InputTokens() == 0 {
		u.Add(pricing.Input, e.N(pricing.Input))
	}
	if !me.Target.Req.Route.NoOutput {
		came.MadeUp(&u, m)
	}
	u.Estimated = true
	return u
}

// ChargeWhatCame books an answer that is not whole or cannot be read: by the usage that it
// tells, or by an estimate from what came. Where nothing came, nothing is charged, and charged
// is false.
func (me *Meters) ChargeWhatCame(body []byte) (charged bool) {
	m, in, answered := me.whatCame(body)
	u := m.Usage
	switch {
	case u.Known() && !in:
		me.Learn(m)
		return true
	case u.Known():
		u = me.madeWhole(u, m) // it broke off within the usage: what is missing is estimated
	case !answered:
		return false
	case me.Target.Req.Route.Client == nil && me.Target.Wanted.Assumed.Known():
		u = me.Target.Wanted.Assumed
		u.Estimated = true
	default:
		u = me.Estimate(m.OutputEstimate())
	}
	me.Bill.Heard.Hear(m)
	u.Add(pricing.Requests, 1)
	me.Bill.Charge(u)
	return true
}

// whatCame reads the beginning of an answer. within tells that it broke off within
// its usage, answered that something of an answer is in it.
func (me *Meters) whatCame(body []byte) (m chat.Meter, within, answered bool) {
	if len(body) > came.MaxRead {
		m.OutputBytes = int64(len(body))
		return m, false, true
	}
	d := me.Target.To.Dialect
	if d == nil {
		d = me.Target.Req.Route.Client
	}
	var b came.Beginning
	switch {
	case me.Target.To.Carrier != nil:
		b, _ = came.Carried(me.Target.To.Carrier, me.Target.Carried(), body)
	case d == nil:
		b, _ = came.Operation(me.Target.Req.Route.Meter, body)
	default:
		b, _ = came.Conversation(d, &me.Target.To.Traits, body)
	}
	return b.Meter, b.Within, b.Answered()
}

package metered

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
	if !me.Route.NoOutput {
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
	case me.Route.Client == nil && me.Wanted.Assumed.Known():
		u = me.Wanted.Assumed
		u.Estimated = true
	default:
		u = me.Estimate(m.OutputEstimate())
	}
	me.Heard.Hear(m)
	u.Add(pricing.Requests, 1)
	me.Charge(u)
	return true
}

// whatCame reads the beginning of an answer. within tells that it broke off within
// its usage, answered that something of an answer is in it.
func (me *Meters) whatCame(body []byte) (m chat.Meter, within, answered bool) {
	if len(body) > came.MaxRead {
		m.OutputBytes = int64(len(body))
		return m, false, true
	}
	d := me.To.Dialect
	if d == nil {
		d = me.Route.Client
	}
	var b came.Beginning
	switch {
	case me.To.Carrier != nil:
		b, _ = came.Carried(me.To.Carrier, me.Carried(), body)
	case d == nil:
		b, _ = came.Operation(me.Route.Meter, body)
	default:
		b, _ = came.Conversation(d, &me.To.Traits, body)
	}
	return b.Meter, b.Within, b.Answered()
}

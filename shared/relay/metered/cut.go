package metered

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/came"
	"gateway/shared/relay/tail"
)

// cutRaw is what a passed-through JSON answer used that broke off before it told so: the
// usage that it did tell, and an estimate from what came. ok is false where nothing came or
// its shape is unknown.
func (me *Meters) cutRaw(m *tail.Meter) (u pricing.Usage, ok bool) {
	if !m.Cut || !m.JSON || m.Total > came.MaxRead || int64(len(m.Kept)) != m.Total || me.Req.Method != http.MethodPost {
		return u, false
	}
	d := me.rawConversation()
	if d == nil {
		return u, false
	}
	b, ok := came.Conversation(d, &me.To.Traits, m.Kept)
	if !ok || b.Refused {
		return u, false
	}
	got := b.Meter
	me.Heard.Hear(got)
	if got.Model != "" && me.To.Model == "" {
		me.Heard.Priced = got.Model
	}
	switch {
	case got.Usage.Known() && b.Within:
		return me.madeWhole(got.Usage, got), true
	case got.Usage.Known():
		return got.Usage, true
	case !b.Made:
		return u, false
	}
	return me.Estimate(got.OutputEstimate()), true
}

// rawConversation reads the conversations of what is passed through; nil: none does.
func (me *Meters) rawConversation() chat.Provider {
	if like := me.Like(); like != nil {
		if like.Client == nil {
			return nil
		}
		return like.Client
	}
	if d := me.Means.Dialects[me.To.Target.DialectOf(provider.Chat, me.ModelOf())]; d != nil {
		return d
	}
	return me.Means.Dialects[me.To.Target.Provider.Dialect]
}

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
// tells, or by an estimate from what came. Where nothing came, nothing is charged.
func (me *Meters) ChargeWhatCame(body []byte) {
	m, in, answered := me.whatCame(body)
	u := m.Usage
	switch {
	case u.Known() && !in:
		me.Learn(m)
		return
	case u.Known():
		u = me.madeWhole(u, m) // it broke off within the usage: what is missing is estimated
	case !answered:
		return
	case me.Route.Client == nil && me.Wanted.Assumed.Known():
		u = me.Wanted.Assumed
		u.Estimated = true
	default:
		u = me.Estimate(m.OutputEstimate())
	}
	me.Heard.Hear(m)
	u.Add(pricing.Requests, 1)
	me.Charge(u)
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

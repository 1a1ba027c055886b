package relay

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/came"
)

// used is the usage of an answer: as reported, with an estimate for what is
// missing.
func (me *meters) used(m chat.Meter) pricing.Usage {
	if me.makesLater() {
		return me.UsedLater(m)
	}
	u := m.Usage
	if !u.Known() {
		return me.estimate(m.OutputEstimate())
	}
	if me.Stream && !m.Complete && !me.Route.NoOutput {
		came.MadeUp(&u, m)
	}
	return u
}

// estimate is usage without any report of the provider.
func (me *meters) estimate(output int64) pricing.Usage {
	var u pricing.Usage
	u.Set(pricing.Input, me.estimateInput())
	if !me.Route.NoOutput {
		u.Set(pricing.Output, output)
	}
	u.Estimated = true
	return u
}

// estimateInput counts the text of a conversation, a token for four bytes and
// four for each message; other bodies count as they are.
func (me *meters) estimateInput() int64 {
	r := me.Decoded
	if r == nil && me.Route.Client != nil {
		r, _ = me.Route.Client.DecodeRequest(me.In) // a body that was answered can be read
	}
	if r == nil {
		return came.Tokens(len(me.In))
	}
	return came.TokensOf(r)
}

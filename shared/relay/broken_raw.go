package relay

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/came"
	"gateway/shared/relay/tail"
)

// cutRaw is what a passed-through JSON answer used that broke off before it had told
// so: what it tells, and an estimate of what came of it. ok is false where nothing of
// an answer came, or its shape is not known.
func (me *meters) cutRaw(m *tail.Meter) (u pricing.Usage, ok bool) {
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
	me.heard.hear(got)
	if got.Model != "" && me.To.Model == "" {
		me.heard.priced = got.Model
	}
	switch {
	case got.Usage.Known() && b.Within:
		return me.madeWhole(got.Usage, got), true
	case got.Usage.Known():
		return got.Usage, true
	case !b.Made:
		return u, false
	}
	return me.estimate(got.OutputEstimate()), true
}

// rawConversation reads the conversations of what is passed through; nil: none does.
func (me *meters) rawConversation() chat.Provider {
	if like := me.Like(); like != nil {
		if like.Client == nil {
			return nil
		}
		return like.Client
	}
	if d := me.dialects[me.To.Target.DialectOf(provider.Chat, me.modelOf())]; d != nil {
		return d
	}
	return me.dialects[me.To.Target.Provider.Dialect]
}

// madeWhole adds an estimate to usage within which an answer broke off.
func (me *meters) madeWhole(u pricing.Usage, m chat.Meter) pricing.Usage {
	if e := me.estimate(0); u.InputTokens() == 0 {
		u.Add(pricing.Input, e.N(pricing.Input))
	}
	if !me.Route.NoOutput {
		came.MadeUp(&u, m)
	}
	u.Estimated = true
	return u
}

package metered

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/came"
	"gateway/shared/relay/tail"
)

// meterRaw reads the usage of a passed-through answer: as the gateway's own route of the
// same path does, or else in the provider's dialect. Where the answer tells none, it is
// estimated if the path tells its shape.
func (me *Meters) meterRaw(m *tail.Meter) (got chat.Meter) {
	if me.interacts() {
		got, _ = interaction(m)
		return got
	}
	like := me.Like()
	switch {
	case like == nil:
	case like.Client != nil:
		got = m.Read(like.Client)
		if !got.Usage.Known() && m.Stream && len(m.Kept) > 0 && got.Err == nil {
			// The tail holds the last of its pieces only.
			got.Usage = me.Estimate(got.OutputEstimate() * max(m.Total/int64(len(m.Kept)), 1))
			if r, err := like.Client.DecodeRequest(me.In); err == nil {
				got.Usage.Set(pricing.Input, came.TokensOf(r))
			}
		}
	case m.JSON && like.Meter != nil && len(m.Kept) > 0:
		got = like.Meter(m.Kept)
	case m.Stream && like.Meter != nil:
		got = tail.MeterEvents(like.Meter, m.WholeEvents())
	}
	if got.Usage.Known() {
		return got
	}
	native := m.Read(me.rawDialect())
	switch {
	case native.Usage.Known():
	case like != nil && like.Client == nil && me.Wanted.Assumed.Known():
		got.Usage = me.Wanted.Assumed
		return got
	case me.embedsUntold(m):
		native.Usage.Set(pricing.Input, came.Tokens(max(len(me.In), int(me.Req.ContentLength))))
		native.Usage.Estimated = true
	}
	return native
}

// embedsUntold tells whether the answer has vectors from an API that tells no tokens.
func (me *Meters) embedsUntold(m *tail.Meter) bool {
	if !m.JSON || me.Req.Method != http.MethodPost || me.To.Target.Provider.Dialect != provider.Gemini {
		return false
	}
	path := me.RawPath()
	return strings.HasSuffix(path, ":embedContent") || strings.HasSuffix(path, ":batchEmbedContents")
}

// rawDialect reads what is passed through: that in which the provider serves the
// model, or its usual one.
func (me *Meters) rawDialect() chat.Passer {
	if d := me.Means.Dialects[me.To.Target.DialectOf(provider.Chat, me.ModelOf())]; d != nil {
		return upstream.Passer(d)
	}
	return upstream.Passer(me.Means.Dialects[me.To.Target.Provider.Dialect])
}

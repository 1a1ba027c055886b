package relay

import (
	"bytes"

	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/inbound"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/tail"
	"gateway/shared/wire"
)

// A response that is made in the background is made by the provider in its own
// time: the answer to its creation is a ticket without usage. It is charged once,
// with the answer that first tells what it used: a read of it, or the end of the
// stream that it was created with.

var backgroundName = []byte(`"background"`)

// makesLater tells whether the request has the provider make a response in the
// background.
func (me *meters) makesLater() bool {
	rt := me.Route
	if rt.Shape == routes.Raw {
		rt = me.Like()
	}
	if rt == nil || rt.Operation != provider.ResponsesCreate || rt == me.Route && !me.SameDialect() {
		return false
	}
	body := me.In
	if me.To.Body != nil {
		body = me.To.Body // what the config makes of it
	}
	return bytes.Contains(body, backgroundName) && inbound.AsksBackground(body)
}

// usedByResponse is the usage of a response made in the background, read from the
// provider, that no answer has told before.
func (me *meters) usedByResponse(answer []byte) (u pricing.Usage) {
	d := me.dialects[provider.OpenAIResponses]
	if d == nil || !kept.Background(answer) {
		return u
	}
	m := upstream.Passer(d).MeterResponse(answer)
	if u = me.UsedLater(m); u.Known() {
		me.heard.asPriced(m)
	}
	return u
}

// usedByStream is usedByResponse of the last event that holds a whole response.
func (me *meters) usedByStream(events []byte) pricing.Usage {
	var last []byte
	tail.EachEvent(events, func(data []byte) {
		if response := kept.BackgroundIn(data); response != nil {
			last = append(last[:0], response...)
		}
	})
	if wire.KindOf(last) != wire.KindObject {
		return pricing.Usage{}
	}
	return me.usedByResponse(last)
}

// settleResponse books a response made in the background with the request that
// first reads its end.
func (me *meters) settleResponse(answer []byte, stream bool) {
	if op := me.Route.Operation; op != provider.ResponsesGet && op != provider.ResponsesCancel {
		return
	}
	var u pricing.Usage
	if stream {
		u = me.usedByStream(answer)
	} else {
		u = me.usedByResponse(answer)
	}
	if u.Known() {
		me.charge(u)
		me.spend()
	}
}

package relay

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/wire"
)

// A response that is made in the background is made by the provider in its own
// time: the answer to its creation is a ticket without usage. It is charged once,
// with the answer that first tells what it used: a read of it, or the end of the
// stream that it was created with.

var backgroundName = []byte(`"background"`)

// makesLater tells whether the request has the provider make a response in the
// background.
func (c *call) makesLater() bool {
	rt := c.rt
	if rt.Shape == Raw {
		rt = c.like()
	}
	if rt == nil || rt.Operation != provider.ResponsesCreate || rt == c.rt && !c.sameDialect() {
		return false
	}
	body := c.in
	if c.to.body != nil {
		body = c.to.body // what the config makes of it
	}
	return bytes.Contains(body, backgroundName) && asksBackground(body)
}

// usedLater is what the answer to the creation of such a response is charged.
func (c *call) usedLater(m chat.Meter) (u pricing.Usage) {
	if !m.Usage.Known() || m.ID == "" || len(m.ID) > maxID || !c.claimBooking(m.ID) {
		return u
	}
	return m.Usage
}

var keptResponse = wire.NewKeySet("object", "background")

// usedByResponse is the usage of a response made in the background, read from the
// provider, that no answer has told before.
func (c *call) usedByResponse(answer []byte) (u pricing.Usage) {
	d := c.dialects[provider.OpenAIResponses]
	var w wire.Walk
	if d == nil || !bytes.Contains(answer, backgroundName) || keptResponse.Walk(answer, &w) != nil ||
		!w.Spans[0].Present(answer) || string(w.Spans[1].Of(answer)) != "true" {
		return u
	}
	if object, err := wire.ScanString(w.Spans[0].Of(answer), "object"); err != nil || object != "response" {
		return u
	}
	m := d.MeterResponse(answer)
	if u = c.usedLater(m); u.Known() && m.Model != "" {
		c.rec.Model, c.to.model = m.Model, m.Model
	}
	return u
}

// usedByStream is usedByResponse of the last event that holds a whole response.
func (c *call) usedByStream(events []byte) pricing.Usage {
	var last []byte
	eachEvent(events, func(data []byte) {
		var w wire.Walk
		if bytes.Contains(data, backgroundName) && madeKeys.Walk(data, &w) == nil && w.Spans[0].Present(data) {
			last = append(last[:0], w.Spans[0].Of(data)...)
		}
	})
	if wire.KindOf(last) != wire.KindObject {
		return pricing.Usage{}
	}
	return c.usedByResponse(last)
}

// settleResponse books a response made in the background with the request that
// first reads its end.
func (c *call) settleResponse(answer []byte, stream bool) {
	if c.rt.Operation != provider.ResponsesGet {
		return
	}
	var u pricing.Usage
	if stream {
		u = c.usedByStream(answer)
	} else {
		u = c.usedByResponse(answer)
	}
	if u.Known() {
		c.charge(u)
		c.spend()
	}
}

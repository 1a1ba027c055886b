package cohere

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// MeterResponse implements chat.Passer. Responses of the provider's other operations and
// of its first version are passed through too. Their meta contains the billed units:
// embeddings, rankings, texts. The last object of a stream of the first version contains
// such a response as response.
func (c Chat) MeterResponse(body []byte) chat.Meter {
	m := upstream.Meter(c, body)
	if m.Usage.Known() {
		return m
	}
	var u counts
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return m
	}
	each(d, u.ofAnswer(d, true))
	if d.End() != nil {
		return m
	}
	native := u.bill()
	if u.searches.Set {
		native.Set(pricing.Pages, u.searches.Value)
	}
	if u.images.Set {
		native.Set(pricing.InputImages, u.images.Value)
	}
	if !native.Known() {
		native = u.tokens()
	}
	if !native.Known() {
		return m
	}
	return chat.Meter{Usage: native, Started: true, Complete: true}
}

// ofAnswer reads the members of an answer that concern usage.
func (c *counts) ofAnswer(d *wire.Decoder, outermost bool) func(string) {
	return func(key string) {
		switch {
		case key == "meta" || key == "usage":
			c.read(d)
		case key == "response" && outermost:
			each(d, c.ofAnswer(d, false))
		}
	}
}

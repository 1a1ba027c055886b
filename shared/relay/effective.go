package relay

import (
	"gateway/shared/chat"
	"gateway/shared/wire"
)

// ownDemands are what the client's own body asks for. A target's config may ask
// for other things; the next target starts from these again.
type ownDemands struct {
	stream, wantUsage bool
	outBound          int64
	outAssumed        bool
	wanted            Demand
}

// effective makes the body that the target's config makes of the client's, and
// goes by it from here on: whether the answer is a stream, whether usage is told
// in it, and what it may cost.
func (c *call) effective() error {
	own := &c.routing.own
	if !c.routing.begun {
		*own, c.routing.begun = ownDemands{c.stream, c.wantUsage, c.outBound, c.outAssumed, c.wanted}, true
	} else {
		c.stream, c.wantUsage, c.outBound, c.outAssumed, c.wanted = own.stream, own.wantUsage, own.outBound, own.outAssumed, own.wanted
	}
	c.rec.Stream = c.stream
	if len(c.in) == 0 || c.to.leaf.Plain() {
		return c.withinBounds(c.checked.Excess)
	}
	body, err := c.to.leaf.Apply(nil, c.in)
	if err != nil {
		return err
	}
	c.to.body = body
	if c.rt.Shape != Unified {
		return nil
	}
	if c.rt.Client != nil {
		// What a config makes of a body keeps to the same bounds.
		checked := chat.Checked{ByTarget: true}
		if err := c.rt.Client.Check(body, &checked); err != nil {
			return err
		}
		if err := c.withinBounds(checked.Excess); err != nil {
			return err
		}
	}
	if err := bodyKeys.Walk(body, &c.edited); err != nil {
		return err
	}
	in := c.in
	c.in, c.walk, c.edited = body, c.edited, c.walk
	c.demands()
	c.in, c.walk, c.edited = in, c.edited, c.walk
	c.rec.Stream = c.stream
	return nil
}

// demands reads what the body that stands in c.in and c.walk asks for.
func (c *call) demands() {
	c.stream = false
	if v := c.walk.Spans[keyStream]; v.Present(c.in) {
		c.stream, _ = wire.ScanBool(v.Of(c.in), "stream")
	}
	c.wantUsage = c.usageAsked()
	c.outBound = c.outputBound()
	if c.rt.Demand != nil {
		c.wanted = c.rt.Demand(c.text, int64(len(c.in)))
	}
}

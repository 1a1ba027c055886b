package relay

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Some hosts answer the other way than they were asked: whole where a stream was
// wanted, or the other way round. Their bodies tell, as their headers often do
// not. The client gets what it asked for.

// pass gives the next bytes of an answer to whatever handles the stream.
func (c *call) pass(a *answer, in []byte) ([]byte, error) {
	if !a.opened {
		if first := bytes.TrimLeft(in, " \t\r\n"); len(first) > 0 {
			a.opened = true
			if first[0] == '{' && a.readsEvents() {
				c.takeWhole(a)
			}
		}
	}
	out, err := a.pass(in)
	if err == nil {
		err = c.backlog.came(c.ctx, c.lease, len(in), len(out))
	}
	return out, err
}

// readsEvents tells whether server-sent events are expected, none of which can
// begin like an object.
func (a *answer) readsEvents() bool {
	if a.turn == nil {
		return true
	}
	switch a.turn.parser.(type) {
	case *wire.SSEParser, *upstream.Events:
		return true
	}
	return false
}

// takeWhole makes a an answer that comes whole and is replayed as a stream.
func (c *call) takeWhole(a *answer) {
	dec := upstream.NewWhole(c.to.dialect, &c.to.traits)
	o := c.options()
	if a.turn != nil {
		dec = chat.Promised(c.decoded, dec)
	} else {
		o.Request = c.legacyOnly()
	}
	a.filter, a.gather = nil, nil
	c.startTurn(a, dec, o)
	c.gather(a)
}

// cameAsEvents tells whether the body of a conversation's plain answer is a
// stream that nobody asked for.
func (c *call) cameAsEvents(body []byte) bool {
	if c.rt.Client == nil || c.to.dialect == nil {
		return false
	}
	body = bytes.TrimLeft(body, " \t\r\n")
	return bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte("event:")) || bytes.HasPrefix(body, []byte(":"))
}

// decodeWhole reads an answer of the provider's dialect: a plain one, or a stream
// that is put together.
func (c *call) decodeWhole(body []byte) (*chat.Response, chat.Meter, []chat.Signed, error) {
	if !c.cameAsEvents(body) {
		r, err := c.to.dialect.DecodeResponse(body, &c.to.traits)
		if err != nil {
			return nil, chat.Meter{}, nil, err
		}
		return r, r.Meter(), r.Signed(), nil
	}
	dec := c.to.dialect.NewStreamDecoder(&c.to.traits)
	parser := chat.EventParser(new(wire.SSEParser))
	if framed, ok := dec.(chat.Framed); ok {
		parser = framed.Parser()
	}
	var into chat.Collector
	onDelta := func(d *chat.Delta) error { into.Add(d); return nil }
	onEvent := func(name string, data []byte) error { return dec.Event(name, data, onDelta) }
	err := parser.Feed(body, onEvent)
	if err == nil {
		err = parser.End(onEvent)
	}
	if err == nil {
		err = dec.End()
	}
	m := dec.Meter()
	return into.Response(), m, dec.Signed(), err
}

// eventsBroke answers for a stream that nobody asked for and that cannot be put
// together. What came of it was made, and is paid for.
func (c *call) eventsBroke(err error, m chat.Meter, body []byte) error {
	f := c.streamBroke(err)
	f.Source = fault.SourceProvider
	hide(body, c.secrets())
	c.keepReceived(body)
	if m.Usage.Known() || m.OutputEstimate() > 0 {
		u := c.used(m)
		madeUp(&u, m)
		c.charge(u)
	}
	return f
}

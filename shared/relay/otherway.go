package relay

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/relay/came"
	"gateway/shared/relay/record"
	"gateway/shared/relay/turn"
	"gateway/shared/wire/mask"
)

// Some hosts send a whole answer where a stream was asked for, or the reverse. The body
// shows it, often against its headers. The client gets what it asked for.

// pass gives the next bytes of an answer to whatever handles the stream.
func pass(c *call, a *answer, in []byte) ([]byte, error) {
	if a.stream.ComesWhole(in) {
		takeWhole(c, a)
	}
	unnoted := a.made.Feed(in)
	out, err := a.stream.Feed(in)
	if unnoted != nil { // nothing of it may be shown, but all is charged
		a.made = nil
		return nil, unnoted
	}
	if err == nil {
		err = c.stream.backlog.Came(c.req.Ctx, c.req.Lease, len(in), len(out))
	}
	return out, err
}

// takeWhole makes a an answer that came whole and is replayed to the client as a stream.
func takeWhole(c *call, a *answer) {
	dec := upstream.NewWhole(c.target.To.Dialect, &c.target.To.Traits)
	o := options(c)
	if !a.stream.Translated() {
		o.Request = c.body.LegacyOnly()
	}
	a.stream.Instead(translate(c, guardedDecoder(c, verified(c, dec, o), o), o))
	gather(c, a)
}

// cameAsEvents tells whether the body of a conversation's plain answer is a
// stream that nobody asked for.
func cameAsEvents(c *call, body []byte) bool {
	if c.req.Route.Client == nil || c.target.To.Dialect == nil {
		return false
	}
	return turn.IsEvents(body)
}

// decodeWhole reads an answer of the provider's dialect: a plain one, or a stream
// that is put together.
func decodeWhole(c *call, body []byte) (*chat.Response, chat.Meter, []chat.Signed, error) {
	if !cameAsEvents(c, body) {
		r, err := c.target.To.Dialect.DecodeResponse(body, &c.target.To.Traits)
		if err != nil {
			return nil, chat.Meter{}, nil, err
		}
		return r, r.Meter(), r.Signed(), nil
	}
	return turn.Collect(c.target.To.Dialect.NewStreamDecoder(&c.target.To.Traits), body)
}

// eventsBroke answers for a stream that nobody asked for and that cannot be put
// together. What came of it was made, and is paid for.
func eventsBroke(c *call, err error, m chat.Meter, body []byte) error {
	f := c.target.To.StreamBroke(err)
	f.Source = fault.SourceProvider
	mask.Bytes(body, c.mask.Secrets())
	c.log.Body(record.Received, body)
	if m.Usage.Known() || m.OutputEstimate() > 0 {
		c.bill.Heard.Hear(m)
		u := c.metered.Used(m)
		came.MadeUp(&u, m)
		c.bill.Charge(u)
	}
	return f
}

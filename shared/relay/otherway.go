package relay

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/relay/mask"
	"gateway/shared/wire"
)

// Some hosts answer the other way than they were asked: whole where a stream was
// wanted, or the other way round. Their bodies tell, as their headers often do
// not. The client gets what it asked for.

// pass gives the next bytes of an answer to whatever handles the stream.
func (st *streams) pass(a *answer, in []byte) ([]byte, error) {
	if !a.opened {
		if first := bytes.TrimLeft(in, " \t\r\n"); len(first) > 0 {
			a.opened = true
			if first[0] == '{' && a.readsEvents() {
				st.takeWhole(a)
			}
		}
	}
	out, err := a.pass(in)
	if err == nil {
		err = st.backlog.came(st.Ctx, st.Lease, len(in), len(out))
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
func (st *streams) takeWhole(a *answer) {
	dec := upstream.NewWhole(st.To.Dialect, &st.To.Traits)
	o := st.options()
	if a.turn != nil {
		dec = chat.Promised(st.Decoded, dec)
	} else {
		o.Request = st.LegacyOnly()
	}
	a.filter, a.gather = nil, nil
	st.startTurn(a, dec, o)
	st.gather(a)
}

// cameAsEvents tells whether the body of a conversation's plain answer is a
// stream that nobody asked for.
func (me *meters) cameAsEvents(body []byte) bool {
	if me.Route.Client == nil || me.To.Dialect == nil {
		return false
	}
	body = bytes.TrimLeft(body, " \t\r\n")
	return bytes.HasPrefix(body, []byte("data:")) || bytes.HasPrefix(body, []byte("event:")) || bytes.HasPrefix(body, []byte(":"))
}

// decodeWhole reads an answer of the provider's dialect: a plain one, or a stream
// that is put together.
func (me *meters) decodeWhole(body []byte) (*chat.Response, chat.Meter, []chat.Signed, error) {
	if !me.cameAsEvents(body) {
		r, err := me.To.Dialect.DecodeResponse(body, &me.To.Traits)
		if err != nil {
			return nil, chat.Meter{}, nil, err
		}
		return r, r.Meter(), r.Signed(), nil
	}
	dec := me.To.Dialect.NewStreamDecoder(&me.To.Traits)
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
func (me *meters) eventsBroke(err error, m chat.Meter, body []byte) error {
	f := me.StreamBroke(err)
	f.Source = fault.SourceProvider
	mask.Bytes(body, me.secrets())
	me.keepReceived(body)
	if m.Usage.Known() || m.OutputEstimate() > 0 {
		u := me.used(m)
		madeUp(&u, m)
		me.charge(u)
	}
	return f
}

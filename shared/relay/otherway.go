package relay

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/relay/came"
	"gateway/shared/relay/turn"
	"gateway/shared/wire/mask"
)

// Some hosts send a whole answer where a stream was asked for, or the reverse. The body
// shows it, often against its headers. The client gets what it asked for.

// pass gives the next bytes of an answer to whatever handles the stream.
func (st *streams) pass(a *answer, in []byte) ([]byte, error) {
	if a.stream.ComesWhole(in) {
		st.takeWhole(a)
	}
	unnoted := a.made.Feed(in)
	out, err := a.stream.Feed(in)
	if unnoted != nil { // nothing of it may be shown, but all is charged
		a.made = nil
		return nil, unnoted
	}
	if err == nil {
		err = st.backlog.Came(st.Ctx, st.Lease, len(in), len(out))
	}
	return out, err
}

// takeWhole makes a an answer that came whole and is replayed to the client as a stream.
func (st *streams) takeWhole(a *answer) {
	dec := upstream.NewWhole(st.To.Dialect, &st.To.Traits)
	o := st.options()
	if !a.stream.Translated() {
		o.Request = st.LegacyOnly()
	}
	a.stream.Instead(st.translate(st.guarded(verified(st, dec, o), o), o))
	st.gather(a)
}

// cameAsEvents tells whether the body of a conversation's plain answer is a
// stream that nobody asked for.
func (pl *plains) cameAsEvents(body []byte) bool {
	if pl.Route.Client == nil || pl.To.Dialect == nil {
		return false
	}
	return turn.IsEvents(body)
}

// decodeWhole reads an answer of the provider's dialect: a plain one, or a stream
// that is put together.
func (pl *plains) decodeWhole(body []byte) (*chat.Response, chat.Meter, []chat.Signed, error) {
	if !pl.cameAsEvents(body) {
		r, err := pl.To.Dialect.DecodeResponse(body, &pl.To.Traits)
		if err != nil {
			return nil, chat.Meter{}, nil, err
		}
		return r, r.Meter(), r.Signed(), nil
	}
	return turn.Collect(pl.To.Dialect.NewStreamDecoder(&pl.To.Traits), body)
}

// eventsBroke answers for a stream that nobody asked for and that cannot be put
// together. What came of it was made, and is paid for.
func (me *meters) eventsBroke(err error, m chat.Meter, body []byte) error {
	f := me.To.StreamBroke(err)
	f.Source = fault.SourceProvider
	mask.Bytes(body, me.stars.Secrets())
	me.keepReceived(body)
	if m.Usage.Known() || m.OutputEstimate() > 0 {
		me.Heard.Hear(m)
		u := me.Used(m)
		came.MadeUp(&u, m)
		me.Charge(u)
	}
	return f
}

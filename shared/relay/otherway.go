package relay

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/came"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/stars"
	"gateway/shared/relay/target"
	"gateway/shared/wire/mask"
)

// Some hosts send a whole answer where a stream was asked for, or the reverse. The body
// shows it, often against its headers. The client gets what it asked for.

// pass gives the next bytes of an answer to whatever handles the stream.
func pass(tg *target.Target, gs *guardrail.State, ca *reused.Cache, st *streamState, a *answer, in []byte) ([]byte, error) {
	if a.stream.ComesWhole(in) {
		takeWhole(tg, gs, ca, st, a)
	}
	unnoted := a.made.Feed(in)
	out, err := a.stream.Feed(in)
	if unnoted != nil { // nothing of it may be shown, but all is charged
		a.made = nil
		return nil, unnoted
	}
	if err == nil {
		err = st.backlog.Came(tg.Req.Ctx, tg.Req.Lease, len(in), len(out))
	}
	return out, err
}

// takeWhole makes a an answer that came whole and is replayed to the client as a stream.
func takeWhole(tg *target.Target, gs *guardrail.State, ca *reused.Cache, st *streamState, a *answer) {
	dec := upstream.NewWhole(tg.To.Dialect, &tg.To.Traits)
	o := target.Options(tg)
	if !a.stream.Translated() {
		o.Request = tg.Body.LegacyOnly()
	}
	a.stream.Instead(translate(tg, gs, st, guardedDecoder(tg, gs, verified(tg, dec, o), o), o))
	gather(tg, gs, ca, a)
}

// cameAsEvents tells whether the body of a conversation's plain answer is a
// stream that nobody asked for.
func cameAsEvents(tg *target.Target, body []byte) bool {
	if tg.Req.Route.Client == nil || tg.To.Dialect == nil {
		return false
	}
	return response.IsEvents(body)
}

// decodeWhole reads an answer of the provider's dialect: a plain one, or a stream
// that is put together.
func decodeWhole(tg *target.Target, body []byte) (*chat.Response, chat.Meter, []chat.Signed, error) {
	if !cameAsEvents(tg, body) {
		r, err := tg.To.Dialect.DecodeResponse(body, &tg.To.Traits)
		if err != nil {
			return nil, chat.Meter{}, nil, err
		}
		return r, r.Meter(), r.Signed(), nil
	}
	return response.Collect(tg.To.Dialect.NewStreamDecoder(&tg.To.Traits), body)
}

// eventsBroke answers for a stream that nobody asked for and that cannot be put
// together. What came of it was made, and is paid for.
func eventsBroke(tg *target.Target, bill *accounting.Bill, log *record.Log, mk *stars.Mask, err error, m chat.Meter, body []byte) error {
	f := tg.To.StreamBroke(err)
	f.Source = fault.SourceProvider
	mask.Bytes(body, mk.Secrets())
	log.Body(record.Received, body)
	if m.Usage.Known() || m.OutputEstimate() > 0 {
		bill.Heard.Hear(m)
		u := accounting.Used(bill, m)
		came.MadeUp(&u, m)
		bill.Charge(u)
	}
	return f
}

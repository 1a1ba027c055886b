package relay

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/reused"
	"gateway/shared/relay/target"
	"gateway/shared/wire/mask"
)

// Some hosts send a complete response when a stream was requested, or the reverse. The body
// shows it, often in contradiction to its headers. The client gets the requested form.

// pass passes the next bytes of a response to the stream's handler.
func pass(tg *target.Target, gs *guardrail.State, ca *reused.Cache, st *streamState, a *answer, in []byte) ([]byte, error) {
	if a.stream.ComesWhole(in) {
		takeWhole(tg, gs, ca, st, a)
	}
	unnoted := a.made.Feed(in)
	out, err := a.stream.Feed(in)
	if unnoted != nil { // it must not be sent, but is charged completely
		a.made = nil
		return nil, unnoted
	}
	if err == nil {
		err = st.backlog.Record(tg.Req.Ctx, tg.Req.Lease, len(in), len(out))
	}
	return out, err
}

// takeWhole turns a into a complete response that is replayed to the client as a stream.
func takeWhole(tg *target.Target, gs *guardrail.State, ca *reused.Cache, st *streamState, a *answer) {
	dec := upstream.NewWhole(tg.To.Dialect, &tg.To.Traits)
	o := target.Options(tg)
	if !a.stream.Translated() {
		o.Request = tg.Body.LegacyOnly()
	}
	a.stream.Instead(translate(tg, gs, st, guardedDecoder(tg, gs, verified(tg, dec, o), o), o))
	gather(tg, gs, ca, a)
}

// cameAsEvents reports whether the body of a conversation's response is a stream that was not
// requested.
func cameAsEvents(tg *target.Target, body []byte) bool {
	if tg.Req.Route.Client == nil || tg.To.Dialect == nil {
		return false
	}
	return response.IsEvents(body)
}

// decodeWhole reads a response in the provider's dialect: a complete one, or a stream that is
// assembled.
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

// eventsBroke returns the error for a stream that was not requested and cannot be assembled. Its
// content was created, and is charged.
func eventsBroke(tg *target.Target, bill *accounting.Bill, log *record.Log, mk *target.SecretMask, err error, m chat.Meter, body []byte) error {
	f := tg.To.StreamBroke(err)
	f.Source = fault.SourceProvider
	mask.Bytes(body, mk.Secrets())
	log.Body(record.Received, body)
	if m.Usage.Known() || m.OutputEstimate() > 0 {
		bill.Reported.Hear(m)
		u := accounting.Used(bill, m)
		response.EstimateOutput(&u, m)
		bill.Charge(u)
	}
	return f
}

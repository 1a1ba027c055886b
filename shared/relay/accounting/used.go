package accounting

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/relay/came"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/tail"
)

// Used is the usage of an answer: as reported, with an estimate for what is
// missing.
func (me *Meters) Used(m chat.Meter) pricing.Usage {
	if me.MakesLater() {
		return me.laterOrAwaited(m)
	}
	u := m.Usage
	if !u.Known() {
		return me.Estimate(m.OutputEstimate())
	}
	if me.Target.Req.Route.Client != nil {
		u = came.Fill(m, me.estimateInput, me.Target.Req.Route.NoOutput)
	}
	if me.Target.Stream && !m.Complete && !me.Target.Req.Route.NoOutput {
		came.MadeUp(&u, m)
	}
	return u
}

// Estimate is usage without any report of the provider.
func (me *Meters) Estimate(output int64) pricing.Usage {
	var u pricing.Usage
	u.Set(pricing.Input, me.estimateInput())
	if !me.Target.Req.Route.NoOutput {
		u.Set(pricing.Output, output)
	}
	u.Estimated = true
	return u
}

// estimateInput counts the text of a conversation, a token for four bytes and
// four for each message; other bodies count as they are.
func (me *Meters) estimateInput() int64 {
	r, like := me.Target.Decoded, me.Target.Req.Route
	if r == nil && like.Shape == routes.Raw {
		like = me.Target.Body.Like()
	}
	if r == nil && like != nil && like.Client != nil {
		r, _ = like.Client.DecodeRequest(me.Target.Body.In) // a body that was answered can be read
	}
	if r == nil {
		return came.Tokens(len(me.Target.Body.In))
	}
	return came.TokensOf(r)
}

// Meter reads usage and model of an answer in the client's own dialect.
func (me *Meters) Meter(out []byte) chat.Meter {
	if me.Target.Req.Route.Client != nil {
		return me.Target.Req.Route.Client.MeterResponse(out)
	}
	if me.Target.Req.Route.Meter == nil {
		return chat.Meter{Complete: true, Started: true}
	}
	return me.Target.Req.Route.Meter(out)
}

// maxID bounds the id of an answer that stands in the record.
const maxID = 256

// Learn takes over what an answer reported.
func (me *Meters) Learn(m chat.Meter) {
	me.Bill.Heard.Hear(m)
	me.Bill.Heard.Ended(m.Finish)
	if at := me.Bill.Purse.Last(); at != nil && at.RequestID == "" && len(m.ID) <= maxID {
		at.Identify(m.ID) // a translated answer has another
	}
	u := me.Used(m)
	u.Add(pricing.Requests, 1)
	me.Bill.Charge(u)
	noteTurn(me, m)
}

// LearnOperation notes what the answer of an operation reported. What is not reported keeps
// the value that was assumed.
func (me *Meters) LearnOperation(m chat.Meter) {
	me.Bill.Heard.Hear(m)
	u := m.Usage
	if !u.Known() {
		u = me.Target.Wanted.Assumed
	}
	u.Add(pricing.Requests, 1)
	me.Bill.Charge(u)
}

// MeterEvents reads the usage of a stream from its end.
func (me *Meters) MeterEvents(end []byte) (last chat.Meter) {
	if me.Target.Req.Route.Meter == nil {
		return last
	}
	return tail.MeterEvents(me.Target.Req.Route.Meter, end)
}

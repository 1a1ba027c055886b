package relay

import (
	"errors"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/relay/came"
	"gateway/shared/relay/mask"
	"gateway/shared/relay/pooled"
)

// unusable answers for a success that is none. What it tells of its usage was
// billed, though, and what came of an answer was made.
func (me *meters) unusable(err error, body []byte) error {
	f := fault.From(err)
	if f.Code == fault.InternalError {
		f = fault.Newf(fault.InvalidProviderResponse, "", "Invalid response received from %s", me.To.Target.Provider.ID).WithCause(err)
	}
	f.Source = fault.SourceProvider
	mask.Bytes(body, me.secrets())
	me.keepReceived(body)
	me.chargeWhatCame(body)
	return f
}

// brokenAnswer answers for a body that did not arrive whole. body is what came.
func (me *meters) brokenAnswer(err error, body []byte) error {
	mask.Bytes(body, me.secrets())
	me.keepReceived(body)
	if errors.Is(err, pooled.ErrTooLarge) {
		// It is not read for what it tells: that would take its memory twice.
		me.charge(me.estimate(min(came.Tokens(len(body)), me.OutBound)))
		f := fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s is larger than %d bytes", me.To.Target.Provider.ID, int64(maxPlainAnswer))
		f.Source = fault.SourceProvider
		return f
	}
	me.chargeWhatCame(body)
	if f := unreadableAnswer(err); f != nil {
		return f
	}
	f := fault.Newf(fault.InvalidProviderResponse, "", "The answer of %s broke off", me.To.Target.Provider.ID).WithCause(err)
	f.Source = fault.SourceProvider
	return f
}

// chargeWhatCame books an answer that is not whole or that cannot be read: the
// usage that it tells, else an estimate of what came of it. Where nothing of an
// answer came, nothing is charged.
func (me *meters) chargeWhatCame(body []byte) {
	m, in, answered := me.whatCame(body)
	u := m.Usage
	switch {
	case u.Known() && !in:
		me.learn(m)
		return
	case u.Known():
		u = me.madeWhole(u, m) // it broke off within the usage: what is missing is estimated
	case !answered:
		return
	case me.Route.Client == nil && me.Wanted.Assumed.Known():
		u = me.Wanted.Assumed
		u.Estimated = true
	default:
		u = me.estimate(m.OutputEstimate())
	}
	me.heard.hear(m)
	u.Add(pricing.Requests, 1)
	me.charge(u)
}

// whatCame reads the beginning of an answer. within tells that it broke off within
// its usage, answered that something of an answer is in it.
func (me *meters) whatCame(body []byte) (m chat.Meter, within, answered bool) {
	if len(body) > came.MaxRead {
		m.OutputBytes = int64(len(body))
		return m, false, true
	}
	d := me.To.Dialect
	if d == nil {
		d = me.Route.Client
	}
	var b came.Beginning
	switch {
	case me.To.Carrier != nil:
		b, _ = came.Carried(me.To.Carrier, me.Carried(), body)
	case d == nil:
		b, _ = came.Operation(me.Route.Meter, body)
	default:
		b, _ = came.Conversation(d, &me.To.Traits, body)
	}
	return b.Meter, b.Within, b.Answered()
}
